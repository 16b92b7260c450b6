"""Rebuild: after unions, make every id canonical and close the e-graph under congruence.

Set at a time (egg, Willsey et al. 2021, section 3, for the invariants): all unions of a phase become
components, all rows that mention a moved class are rewritten, rows that became equal ask for the next
unions; until there are none.
"""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.egraph.database import Database
from relational_tensat.egraph.loading import CHILD_COLUMNS


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a rebuild did.

    Attributes:
        merged: classes merged into others.
        dropped: duplicate e-nodes dropped.
        unions: unions that congruence asked for.
    """

    merged: int = 0
    dropped: int = 0
    unions: int = 0


#: From so many classes on, a list of them all is looked up more slowly than joins with those that moved, a
#: column at a time, rewrite e-nodes (CPU ms: 13 and 16 at 33,000 classes, 51 and 42 at 220,000, 450 and 280
#: at 680,000).
MANY_CLASSES = 150_000

#: Where a phase has rewritten one in so many e-nodes or more, equal ones are looked for among all.
ONE_IN = 10


def rebuild(
    database: Database, *, iteration: int, stamp: int, classes: int = 0, e_nodes: int = 0
) -> RebuildReport:
    """Close the e-graph under the unions of round 0 in the temporary table ``union_pair``.

    Args:
        stamp: the clock that is written into the rows that change.
        classes: about how many there are, which decides how they are looked up.
        e_nodes: the same of e-nodes; 0 where most of them may be rewritten.
    """
    with database.stopwatch.phase("rebuild"):
        are_many = classes >= MANY_CLASSES or database.threads > 1
        return _rebuild(database, iteration, stamp, e_nodes, are_many=are_many)


def _rebuild(
    database: Database, iteration: int, stamp: int, e_nodes: int, *, are_many: bool
) -> RebuildReport:
    merged = unions = dropped = rewritten = round_index = 0
    while True:
        merged += database.change("rebuild/components", round=round_index)
        if are_many:
            database.run("rebuild/union_find_lift")
            database.run("rebuild/union_find_point")
        else:
            database.run("rebuild/union_find")
        rewritten += _canonicalize(database, stamp, by_joins=are_many)
        round_index += 1
        if rewritten * ONE_IN >= e_nodes:
            groups = database.change("rebuild/congruent_many")
        else:
            groups = database.change("rebuild/congruent", stamp=stamp)
        if not groups:
            break
        pairs = database.change("rebuild/congruence_unions", round=round_index)
        if not pairs:
            dropped = database.change("rebuild/drop_duplicates")
            break
        unions += pairs
    database.run("rebuild/log_unions", iteration=iteration)
    return RebuildReport(merged, dropped, unions)


def _canonicalize(database: Database, stamp: int, *, by_joins: bool) -> int:
    """Rewrite the e-nodes whose class or children moved; return how many (about, if by joins)."""
    if not by_joins:
        return database.change("rebuild/canonicalize", stamp=stamp)
    updates = 0
    for column in ("class", *(f"c{i}" for i in range(CHILD_COLUMNS))):
        text = (
            f"-- canonical ids for {column}, for all rules; the stamp makes these rows new to the matcher\n"
            f"UPDATE enode SET {column} = m.new, stamp = $stamp FROM moved AS m\n"
            f"WHERE m.old = enode.{column} AND enode.{column} > 0"
        )
        ((rows,),) = database.execute(text, {"stamp": stamp}, "canonicalize_many")
        updates += int(rows)
    return updates
