"""What a rule runs, recorded while it runs: every statement, with the values of its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.files import sql
from relational_tensat.base.records import record
from relational_tensat.egraph.database import Database

_PARAMETER = re.compile(r"\$(\w+)")


@record
class RecordedStatement:
    """A statement as it was run.

    Attributes:
        name: what statistics call it.
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
