"""The file of a synthesis: its tables, and which stages have ended."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.synthesis.vocabulary import TermSetting
from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, first_line
from relational_tensat.tensor.types import AttrItems, TensorType

_SQL = Path(__file__).parent / "sql"
#: What the largest table may take of memory; more goes to the disk.
_MEMORY = "600MB"


class SynthesisStore:
    """A DuckDB file with the tables of ``sql/tables.sql``; in memory without a path."""

    def __init__(self, path: Path | None) -> None:
        """Open or make it.

        Raises:
            InputError: the file is no such database, or another process uses it.
        """
        duckdb.import_package()
        try:
            self.connection = duckdb.open_database(
                path, {"threads": 1, "memory_limit": _MEMORY}, writes=True
            )
            self.connection.execute(_sql("tables"))
        except duckdb.Error as error:
            raise InputError(f"{path}: {first_line(error)}") from error

    def __enter__(self) -> SynthesisStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()

    def rows(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of ``sql/STATEMENT.sql``."""
        return self.connection.execute(_sql(statement), values or None).fetchall()

    def append(self, table: str, columns: Iterable[Any]) -> None:
        """Add rows, given by columns in the table's order."""
        named = {f"c{place}": column for place, column in enumerate(columns)}
        self.connection.register("batch", pa.table(named))
        self.connection.execute(f"-- rows of one batch\nINSERT INTO {table} SELECT * FROM batch")
        self.connection.unregister("batch")

    @contextmanager
    def stage(self, name: str) -> Iterator[list[int]]:
        """Carry a stage out: all of it, or nothing; its block says in the list how many rows it left.

        A block that says nothing has more to do: what it did stays, and the stage has not ended."""
        left: list[int] = []
        start_s = time.process_time()
        self.connection.begin()
        try:
            yield left
            cpu_s = time.process_time() - start_s
            if left:
                self.rows("end_stage", stage=name, rows=sum(left), cpu_s=cpu_s)
            self.connection.commit()
        except BaseException:
            self.connection.rollback()
            raise

    def add_setting(self, number: int, setting: TermSetting) -> None:
        """Keep a setting under a number."""
        inputs = {name: [kind.dtype, kind.shape] for name, kind in setting.inputs.items()}
        self.rows("add_setting", id=number, inputs=json.dumps(inputs), exact=setting.exact)

    def inputs(self, number: int) -> dict[str, TensorType]:
        """Return the inputs of a setting."""
        ((text,),) = self.rows("inputs_of", id=number)
        return {
            name: TensorType(dtype, tuple(shape))
            for name, (dtype, shape) in json.loads(text).items()
        }


@cache
def _sql(name: str) -> str:
    return (_SQL / f"{name}.sql").read_text(encoding="utf-8")


def attrs_text(attrs: AttrItems) -> str:
    """Return attributes as JSON, in which infinities are names."""
    return json.dumps(dict(attrs))


def attrs_of(text: str) -> AttrItems:
    """Return the attributes that ``attrs_text`` wrote."""
    return tuple((name, _tuples(value)) for name, value in json.loads(text).items())


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
