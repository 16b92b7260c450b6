"""What can be looked at once a run is over: its page, and the tables that pages are made of."""

from __future__ import annotations

from relational_tensat.run.state import RunState
from relational_tensat.view.run_page import RunTables

#: Tables in memory are kept with a result up to so many e-nodes: what is explored by default, some 20 MB.
MOST_KEPT_ENODES = 50_000


def show(state: RunState) -> RunState:
    """Write the page of the run, if it was requested."""
    target = state.options.output.view
    if target is None or state.tables is None:
        return state
    page = state.tables.page()
    page.save(target)
    no_film = page.data.no_film
    return state.noting(f"the page has no steps: {no_film}" if no_film else "")


def kept_tables(state: RunState) -> RunTables | None:
    """Return the tables that stay with the result; None for those in memory that are too large."""
    tables = state.tables
    is_large = state.e_nodes > MOST_KEPT_ENODES
    return None if tables is not None and tables.memory is not None and is_large else tables
