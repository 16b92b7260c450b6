"""Rebuild: after unions, make every id canonical and close the e-graph under congruence.

It works set at a time (egg, Willsey et al. 2021, section 3, for the invariants). All unions of a phase
become components, all rows that mention a moved class are rewritten, and rows that became equal ask for the
next unions, until nothing is left to unite.
"""

from __future__ import annotations

from relational_tensat.base.files import sql
from relational_tensat.base.records import record
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS


@record
class RebuildReport:
    """The counts of a rebuild.

    Attributes:
        merged: classes merged into others.
        unions: unions that congruence asked for.
        has_equal: whether e-nodes of one class became equal: see ``drop_equal``.
    """

    merged: int = 0
    unions: int = 0
    has_equal: bool = False


#: From so many classes on, a list of them all is looked up more slowly than joins with those that moved, a
#: column at a time, rewrite e-nodes (CPU ms: 13 and 16 at 33,000 classes, 51 and 42 at 220,000, 450 and 280
#: at 680,000). The union-find is one update below and two from there on: two are a statement more a round
#: and slower (375 and 420 ms in all of TENSAT's 18 runs), but faster here (a chain of 400,000: 760, 390).
MANY_CLASSES = 150_000


def rebuild(
    database: Database,
    *,
    iteration: int,
    stamp: int,
    classes: int = 0,
    has_labels: bool = True,
) -> RebuildReport:
    """Close the e-graph under the unions of round 0 in the temporary table ``union_pair``.

    Args:
        stamp: the clock that is written into the rows that change.
        classes: about how many there are, which decides how they are looked up.
        has_labels: whether height labels are kept above those of all members.
    """
    are_many = classes >= MANY_CLASSES
    canonical = _canonical_texts(by_joins=are_many)
    rewriting = "canonicalize_many" if are_many else "rebuild/canonicalize"
    merged = unions = round_index = 0
    with database.stopwatch.phase("rebuild"):
        while True:
            merged += database.change("rebuild/components", round=round_index)
            # Moved classes point at the canonical ones, which get the highest label that joins them.
            if has_labels and not are_many:
                database.run("rebuild/union_find")
            else:
                if has_labels:
                    database.run("rebuild/union_find_lift")
                database.run("rebuild/union_find_point")
            for text in canonical:
                database.execute(text, {"stamp": stamp}, rewriting)
            round_index += 1
            has_equal = database.change("rebuild/congruent") > 0
            pairs = has_equal and database.change("rebuild/congruence_unions", round=round_index)
            if not pairs:
                break
            unions += pairs
        database.run("rebuild/log_unions", iteration=iteration)
    return RebuildReport(merged, unions, has_equal)


def drop_equal(database: Database) -> int:
    """Drop all but one of equal e-nodes, which ``congruent`` has after a rebuild; return how many."""
    with database.stopwatch.phase("rebuild"):
        return database.change("rebuild/drop_duplicates")


def _canonical_texts(*, by_joins: bool) -> list[str]:
    """Return the statements that rewrite the e-nodes whose class or children moved."""
    if not by_joins:
        return [sql("rebuild/canonicalize")]
    return [
        f"-- canonical ids for {column}, for all rules; the stamp makes these rows new to the matcher\n"
        f"UPDATE enode SET {column} = m.new, stamp = $stamp FROM moved AS m\n"
        f"WHERE m.old = enode.{column} AND enode.{column} > 0"
        for column in ("class", *(f"c{i}" for i in range(CHILD_COLUMNS)))
    ]
