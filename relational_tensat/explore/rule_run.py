"""A rule at work, on an e-graph that has its sources or on that of a run.

It is recorded while it runs: every statement, with the values of its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.files import sql
from relational_tensat.base.folders import temporary_folder
from relational_tensat.base.records import record
from relational_tensat.egraph.database import FORMAT_VERSION, Database
from relational_tensat.egraph.egraph import EGraph, restore_egraph
from relational_tensat.egraph.schema import create_tables
from relational_tensat.explore import ExplorationOptions, Observer, explore
from relational_tensat.explore.derivation.configurations import generic_configurations
from relational_tensat.explore.derivation.derivation import both_sides
from relational_tensat.rules.model import Rule
from relational_tensat.tensor.graph import Graph
from relational_tensat.tensor.operators.samples import SeededChoices

_PARAMETER = re.compile(r"\$(\w+)")


@record
class RecordedStatement:
    """A statement as it was run.

    Attributes:
        name: its name in statistics.
        text: it, without parameters.
    """

    name: str
    text: str


class RecordingDatabase(Database):
    """A database in memory that records what it runs.

    Attributes:
        recorded: the statements, in order.
        is_recording: whether they are recorded now.
    """

    def __init__(self, attaches: Path | None = None) -> None:
        super().__init__(attaches=attaches)
        self.recorded: list[RecordedStatement] = []
        self.is_recording = False

    def execute(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        name: str = "generated",
        arrays: Any = None,
    ) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows."""
        self._record(name, with_values(text, params or {}))
        return super().execute(text, params, name, arrays)

    def execute_all(self, text: str, name: str) -> None:
        """Run the statements of a text, separated by semicolons."""
        self._record(name, text.strip().removesuffix(";"))
        super().execute_all(text, name)

    def columns(self, name: str, **params: Any) -> dict[str, NDArray[Any]]:
        """Run the query of ``sql/NAME.sql``; return its columns."""
        self._record(name, with_values(sql(name), params))
        return super().columns(name, **params)

    def append(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Append rows."""
        if rows:
            values = ",\n    ".join(f"({', '.join(map(literal, row))})" for row in rows)
            self._record(f"insert {table}", f"INSERT INTO {table} VALUES\n    {values}")
        is_recording, self.is_recording = self.is_recording, False
        super().append(table, rows)
        self.is_recording = is_recording

    def _record(self, name: str, text: str) -> None:
        if self.is_recording:
            self.recorded.append(RecordedStatement(name, text))


def with_values(text: str, params: Mapping[str, Any]) -> str:
    """Return a statement with its parameters written out."""
    return _PARAMETER.sub(lambda match: literal(params[match.group(1)]), text)


def literal(value: Any) -> str:
    """Return a value as SQL writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence):
        return f"[{', '.join(map(literal, value))}]"
    return str(value)


#: So many e-nodes a rule may add where it is shown what it runs.
_NODE_BUDGET = 1_000_000

#: Statements that log what a run did: no part of what a rule runs.
_LOG = frozenset(
    {"egraph/next_ids", "explore/forget_exploration", "insert rule", "match/matches_by_rule"}
)

#: The tables that a rule changes or that patterns are compared by.
CHANGED = ("head", "signature", "enode", "eclass", "union_log")


def run_on_sources(rule: Rule) -> list[RecordedStatement]:
    """Return what a rule runs in an e-graph that has nothing but its sources; nothing if none is found."""
    everywhere = rule.everywhere
    configurations = generic_configurations(everywhere, 1, SeededChoices(rule.name))
    if not configurations:
        return []
    sides = both_sides(everywhere, configurations)
    sources = tuple(dict.fromkeys(source for source, _ in sides.pairs[0]))
    with temporary_folder() as folder:
        path = folder / "sources.duckdb"
        EGraph.create(replace(sides.graph, outputs=sources), path).close()
        return run_on_database(everywhere, path)


def run_on_database(rule: Rule, path: Path) -> list[RecordedStatement]:
    """Return what a rule runs in the e-graph of a run, of which the file is left as it is.

    Raises:
        InputError: the file is no database of a run of this version.
    """
    database = RecordingDatabase(attaches=path)
    try:
        create_tables(database)
        _copy(database, path)
        unknown = Graph("stored", {}, {}, (), (), {})  # a search asks nothing of it
        egraph = restore_egraph(unknown, database)

        def end(_: object) -> None:
            database.is_recording = False

        database.is_recording = True
        limit = egraph.e_nodes + _NODE_BUDGET
        options = ExplorationOptions(iterations=1, node_limit=limit, time_limit_s=None)
        explore(egraph, [rule], options, observer=Observer(progress=end))
        return [recorded for recorded in database.recorded if recorded.name not in _LOG]
    finally:
        database.close()


def _copy(database: RecordingDatabase, path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path}: no such database file")
    connection = database.connection
    try:
        name = literal(duckdb.database_name(path))
        connection.execute(f"ATTACH {name} AS run_file (READ_ONLY)")
        rows = connection.execute(
            "SELECT value FROM run_file.meta WHERE key = 'format_version'"
        ).fetchall()
    except duckdb.Error as error:
        raise InputError(f"{path}: not the database of a run: {first_line(error)}") from error
    version = rows[0][0] if rows else "none"
    if version != FORMAT_VERSION:
        raise InputError(
            f"{path}: the database has format {version}, expected {FORMAT_VERSION}: "
            "run the model again"
        )
    tables = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'memory'"
    ).fetchall()
    try:
        for (table,) in tables:
            connection.execute(f"INSERT INTO {table} SELECT * FROM run_file.{table}")
    except duckdb.Error as error:
        raise InputError(f"{path}: not the database of a run: {first_line(error)}") from error
    connection.execute("DETACH run_file")
