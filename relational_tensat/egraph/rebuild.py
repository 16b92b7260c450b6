"""Rebuild: after unions, make every id canonical and close the e-graph under congruence.

Set at a time (egg, Willsey et al. 2021, section 3, for the invariants): all unions of a phase become
components, all rows that mention a moved class are rewritten, rows that became equal ask for the next
unions; until there are none.
"""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.egraph.database import Database


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did.

    Attributes:
        merged: classes merged into others.
        dropped: duplicate e-nodes dropped.
        unions: unions that congruence asked for.
    """

    merged: int = 0
    dropped: int = 0
    unions: int = 0


#: From so many classes on, a list of them all is looked up more slowly than a join answers (CPU µs an
#: e-node: 0.6 and 0.7 at 100,000 e-nodes, 0.9 and 0.7 at 400,000, 2.7 and 0.6 at 4,000,000).
MANY_CLASSES = 300_000

#: Where a phase has rewritten one in so many e-nodes or more, equal ones are looked for among all.
ONE_IN = 10


def rebuild(
    database: Database, *, iteration: int, stamp: int, classes: int = 0, e_nodes: int = 0
) -> Rebuilt:
    """Close the e-graph under the unions of round 0 in the temporary table ``union_pair``.

    Args:
        stamp: the clock that is written into the rows that change.
        classes: about how many there are, which decides how they are looked up.
        e_nodes: the same of e-nodes; 0 where most of them may be rewritten.
    """
    with database.stopwatch.phase("rebuild"):
        by_joins = classes >= MANY_CLASSES or database.threads > 1
        canonicalize = "canonicalize_many" if by_joins else "canonicalize"
        return _rebuild(database, iteration, stamp, canonicalize, e_nodes)


def _rebuild(
    database: Database, iteration: int, stamp: int, canonicalize: str, e_nodes: int
) -> Rebuilt:
    merged = unions = dropped = rewritten = number = 0
    while True:
        merged += database.change("components", round=number)
        database.run("union_find")
        rewritten += database.change(canonicalize, stamp=stamp)
        number += 1
        if rewritten * ONE_IN >= e_nodes:
            groups = database.change("congruent_many")
        else:
            groups = database.change("congruent", stamp=stamp)
        if not groups:
            break
        found = database.change("congruence_unions", round=number)
        if not found:
            dropped = database.change("drop_duplicates")
            break
        unions += found
    database.run("log_unions", iteration=iteration)
    return Rebuilt(merged, dropped, unions)
