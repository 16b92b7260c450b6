"""The table of a universe's applications."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from relational_tensat.egraph.arrow_columns import fixed_list_column, list_column
from relational_tensat.egraph.database import Database
from relational_tensat.explore.worlds.applications import STATES, Applications
from relational_tensat.explore.worlds.node_arrays import Ints

if TYPE_CHECKING:
    import pyarrow as pa


def write_applications(database: Database, applications: Applications) -> None:
    """Write all applications that were found, in place of those that the table has."""
    database.execute("-- of the search so far\nDELETE FROM universe_application", name="worlds")
    if applications.count:
        columns = {
            "id": np.arange(1, applications.count + 1, dtype=np.int32),
            "rule": applications.rules,
            "instance": applications.instances,
            "state": np.array(STATES)[applications.states],
            "sources": _lists(applications.sources),
            "targets": _lists(applications.targets),
            "bindings": fixed_list_column(applications.bindings),
        }
        database.insert_arrays("universe_application", columns, "insert universe_application")


def _lists(rows: Ints) -> pa.Array:
    """Return rows of ids as lists, without what fills them up."""
    return list_column(np.cumsum((rows > 0).sum(axis=1), dtype=np.int32), rows[rows > 0])
