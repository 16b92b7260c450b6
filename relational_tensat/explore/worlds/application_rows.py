"""The table of a universe's applications: written, and read by a process that resumes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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


def read_applications(database: Database, applications: Applications) -> None:
    """Add the applications that the table has to none."""
    rows = database.run("worlds/applications")
    if not rows:
        return
    rules, instances, states, sources, targets, bindings = zip(*rows, strict=True)
    applications.restore(
        np.array(rules, np.int32),
        np.array(instances, np.int32),
        np.array([STATES.index(state) for state in states], np.int32),
        (_filled(sources), _filled(targets), _filled(bindings)),
    )


def _lists(rows: Ints) -> pa.Array:
    """Return rows of ids as lists, without what fills them up."""
    return list_column(np.cumsum((rows > 0).sum(axis=1), dtype=np.int32), rows[rows > 0])


def _filled(lists: Sequence[Sequence[int]]) -> Ints:
    """Return lists of ids as rows, filled up with 0."""
    lengths: NDArray[np.int64] = np.fromiter(map(len, lists), np.int64, len(lists))
    rows = np.zeros((len(lists), max(int(lengths.max()), 1)), np.int32)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = np.fromiter(
        chain.from_iterable(lists), np.int32
    )
    return rows
