"""The e-graph of a finished run, read back from its tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, first_line, unknown
from relational_tensat.base.files import sql
from relational_tensat.egraph.catalogue import Symbol, parse_symbol, parse_type
from relational_tensat.rules.backends.backend import know_kernels
from relational_tensat.tensor.types import ValueType


@dataclass(frozen=True, slots=True)
class StoredSignature:
    """A symbol on operands of given types, and the type of its result."""

    symbol: Symbol
    operands: tuple[ValueType, ...]
    type: ValueType


@dataclass(frozen=True, slots=True)
class StoredNode:
    """An e-node.

    Attributes:
        owner: its class, canonical, as ``children`` are.
        iteration, rule: when it was made and by which rule (by number); 0 is the original graph.
    """

    id: int
    owner: int
    signature: int
    children: tuple[int, ...]
    iteration: int
    rule: int
    filtered: bool


class StoredEGraph:
    """The tables of a run, spelled out; large ones are read on first use.

    Attributes:
        connection: DuckDB's own, for queries of one's own.
        signatures: by number.
        rules: the names of the run's rules, by number.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Read signatures and rules.

        Raises:
            InputError: the database was not written by a run of this program.
        """
        self.connection = connection
        know_kernels()
        try:
            types = {int(n): parse_type(text) for n, text in self._rows("value_type", "id, type")}
            rows = connection.execute(sql("explain/stored_signatures")).fetchall()
            self.rules = {int(n): str(name) for n, name in self._rows("rule", "id, name")}
        except duckdb.Error as error:
            reason = first_line(error)
            raise InputError(f"not a database of a run: {reason}") from error
        self.signatures = {
            int(signature): StoredSignature(
                parse_symbol(op, attrs, len(operands)),
                tuple(types[operand] for operand in operands),
                types[kind],
            )
            for signature, op, attrs, operands, kind in rows
        }

    @cached_property
    def nodes(self) -> dict[int, StoredNode]:
        """All e-nodes by id, filtered ones too."""
        rows = self.connection.execute(sql("explain/stored_nodes")).fetchall()
        return {
            int(row[0]): StoredNode(
                row[0], row[1], row[2], tuple(c for c in row[3] if c), row[4], row[5], row[6]
            )
            for row in rows
        }

    @cached_property
    def names(self) -> dict[int, tuple[str, ...]]:
        """The original graph's values by the class that they are in now."""
        names_by_owner: dict[int, list[str]] = {}
        for owner, name, _, _ in self.connection.execute(sql("egraph/value_names")).fetchall():
            names_by_owner.setdefault(int(owner), []).append(str(name))
        return {owner: tuple(names) for owner, names in names_by_owner.items()}

    def class_of(self, tensor: str) -> int:
        """Return the class of a value of the original graph.

        Raises:
            UsageError: there is no such value; names the nearest.
        """
        for owner, names in self.names.items():
            if tensor in names:
                return owner
        all_names = [name for names in self.names.values() for name in names]
        raise unknown("tensor", tensor, all_names)

    def class_text(self, owner: int) -> str:
        """Return what people call a class: the name of a value that it has, or its id."""
        names = self.names.get(owner)
        return names[0] if names else f"e-class {owner}"

    def _rows(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(f"SELECT {columns} FROM {table} ORDER BY id").fetchall()
