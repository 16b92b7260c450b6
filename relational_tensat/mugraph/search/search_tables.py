"""A file of DuckDB that keeps the tables of a search, so that a kernel can be asked for its rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from relational_tensat.base.errors import InputError
from relational_tensat.base.resources import sql
from relational_tensat.egraph.database import Database
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import content_hash, encoded
from relational_tensat.mugraph.search.structure import Variable

_OF_LEVELS = ("config", "extent", "term", "derivation")


class SearchTables:
    """The file; a search writes it while it goes on."""

    def __init__(self, path: Path) -> None:
        """Take a file that is not there yet.

        Raises:
            InputError: it is.
        """
        if path.exists():
            raise InputError(f"{path}: is there already; name another database")
        self._path = path
        self._is_begun = False

    def keep(self, database: Database, level: int, variables: Iterable[Variable]) -> None:
        """Keep the tables of a level.

        Args:
            database: of the search.
            level: of kernels, from 1 on.
            variables: all index variables.

        Raises:
            InputError: the file cannot be written.
        """
        if not self._is_begun:
            self._begin(database, variables)
        for table in _OF_LEVELS:
            text = f"SELECT {level}, * FROM {table}"
            self._kept.append(table, database.execute(text, name="mugraph/keep"))

    def _begin(self, database: Database, variables: Iterable[Variable]) -> None:
        self._kept = Database(self._path)  # errors are those of any database
        self._kept.script("mugraph/kept_tables")
        self._kept.append("variable", [(variable.bit, variable.name) for variable in variables])
        self._kept.append("abstract", database.execute("FROM abstract", name="mugraph/keep"))
        self._is_begun = True

    def begin_again(self) -> None:
        """Forget what was kept: another search follows."""
        self._path.unlink(missing_ok=True)
        self._is_begun = False

    def end(self) -> None:
        """Leave the file to others."""
        if self._is_begun:
            self._kept.close()

    def note(self, graph: MuGraph, cost_us: float) -> str:
        """Keep what was found; return its key."""
        key = f"k{content_hash(graph)}"
        database = Database(self._path, keep=True)
        try:
            database.execute_all(sql("schema/kernel_terms"), "schema/kernel_terms")
            database.append(
                "fused_kernel", [(key, cost_us, json.dumps(encoded(graph), ensure_ascii=False))]
            )
        finally:
            database.close()
        return key
