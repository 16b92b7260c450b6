"""Questions of a served page that may take long, each kind with a connection of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cached_property

from relational_tensat.base import duckdb
from relational_tensat.base.errors import UsageError
from relational_tensat.explain.stored import StoredEGraph
from relational_tensat.explain.why_not.funnel import Funnels
from relational_tensat.view.collecting import collect_film
from relational_tensat.view.data.page_data import Answer, FilmAndSearch
from relational_tensat.view.data.search_data import Unused
from relational_tensat.view.forms import Forms
from relational_tensat.view.unused import why_unused

#: A query that takes longer is stopped.
LONGEST_QUERY_S = 30.0
#: What an answer may have at most; a page shows a part of that.
_MOST_BYTES = 8 << 20


class Queries:
    """Answers queries, the last one only: a new query stops the one before.

    Each runs in a process of its own, which has little memory and can be killed: DuckDB computes some
    expressions in one piece, and a single value may be larger than all that a page could show.

    Args:
        connection: to the database, which is a file.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        text = "-- its file\nSELECT path FROM duckdb_databases() WHERE database_name = current_database()"
        ((self._path,),) = connection.execute(text).fetchall()
        self._changing = threading.Lock()  # of what is below
        self._process: subprocess.Popen[bytes] | None = None
        self._last = 0

    def ask(self, query: str) -> Answer:
        """Return the answer to a query.

        Raises:
            UsageError: the query is wrong, would change something, needs too much, or was stopped.
        """
        with self._changing:
            self._stop()
            number, process = self._last, subprocess.Popen(
                [sys.executable, "-m", "relational_tensat.view.query_process", str(self._path)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            self._process = process
        timer = threading.Timer(LONGEST_QUERY_S, process.kill)
        timer.start()
        try:
            return self._answer(process, query)
        except ValueError as error:  # it said nothing more
            if number != self._last:
                raise UsageError(
                    "stopped: another query was asked, or the server has ended"
                ) from error
            is_late = not timer.is_alive()
            limit = f"it took {LONGEST_QUERY_S:.0f} s" if is_late else "it needed too much memory"
            raise UsageError(f"the query was stopped: {limit}") from error
        finally:
            timer.cancel()
            process.kill()
            process.wait()

    def stop(self) -> None:
        """Stop the query that runs."""
        with self._changing:
            self._stop()

    def _stop(self) -> None:
        self._last += 1
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _answer(self, process: subprocess.Popen[bytes], query: str) -> Answer:
        assert process.stdin is not None and process.stdout is not None
        with process.stdin as asked, suppress(BrokenPipeError):
            asked.write(query.encode("utf-8", "replace"))
        with process.stdout as answered:
            text = answered.read(_MOST_BYTES)
            if answered.read(1):
                raise UsageError(f"the answer has more than {_MOST_BYTES >> 20} MB")
        content = json.loads(text)
        if "error" in content:
            raise UsageError(content["error"])
        rows = tuple(tuple(row) for row in content["rows"])
        return Answer(tuple(content["columns"]), rows, content["is_cut"])


class WholeEGraph:
    """Answers what needs the whole e-graph in memory, one question after the other."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, forms: Forms) -> None:
        self._stored = StoredEGraph(connection)
        self._forms = forms
        self._lock = threading.Lock()

    def film(self) -> FilmAndSearch:
        """Return the film, which is found once.

        Raises:
            InputError, NoSolutionError: as ``collect_film``.
        """
        with self._lock:
            return self._film

    def why_unused(self, rule: str) -> Unused:
        """Return why a rule did not change the result.

        Raises:
            UsageError: there is no such rule; names the nearest.
        """
        with self._lock:
            return why_unused(self._funnels, rule)

    @cached_property
    def _film(self) -> FilmAndSearch:
        return collect_film(self._stored, self._forms)

    @cached_property
    def _funnels(self) -> Funnels:
        return Funnels(self._stored)
