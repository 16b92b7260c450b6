"""What a run leaves for others to learn from: the applications that its result needed."""

from __future__ import annotations

from relational_tensat.egraph.database import Database
from relational_tensat.explore.learning import keep_uses

#: Of more unions, nothing is kept: seconds would pass.
_MOST_UNIONS = 50_000


def keep_needed(database: Database) -> None:
    """Write the backward slice of the extracted graph, and how often rules were applied and needed."""
    rows = database.run("explore/asked_unions", most=_MOST_UNIONS + 1)
    if len(rows) > _MOST_UNIONS:
        return
    from relational_tensat.explain.needed import needed_unions  # only runs with a file need it

    needed = needed_unions(database.connection)
    keep_uses(database, [rows[place - 1] for place in needed])
