"""Questions of a served page that may take long, each kind with a connection of its own."""

from __future__ import annotations

import threading
from functools import cached_property

from relational_tensat.base import duckdb
from relational_tensat.base.errors import UsageError
from relational_tensat.explain.stored import StoredEGraph
from relational_tensat.explain.why_not.funnel import Funnels
from relational_tensat.view.asking import ask
from relational_tensat.view.collecting import collect_film
from relational_tensat.view.data.page_data import Answer, FilmAndSearch
from relational_tensat.view.data.search_data import Unused
from relational_tensat.view.forms import Forms
from relational_tensat.view.unused import why_unused

#: A query that takes longer is stopped.
LONGEST_QUERY_S = 30.0


class Queries:
    """Answers queries, the last one only: a new query stops the one before."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._running = threading.Lock()  # held while one runs
        self._counting = threading.Lock()  # of the number below
        self._last = 0

    def ask(self, query: str) -> Answer:
        """Return the answer to a query.

        Raises:
            UsageError: the query is wrong, would change something, or was stopped.
        """
        number = self.stop()
        with self._running:
            if number != self._last:
                raise UsageError("stopped: another query was asked")
            timer = threading.Timer(LONGEST_QUERY_S, self._connection.interrupt)
            timer.start()
            try:
                return ask(self._connection, query)
            finally:
                timer.cancel()

    def stop(self) -> int:
        """Stop the query that runs, and those that wait; return the number of the next one."""
        with self._counting:
            self._last += 1
            self._connection.interrupt()
            return self._last


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
