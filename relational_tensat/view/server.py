"""The served view: a page whose e-graph stays in the database, asked for as it is looked at.

It listens on this machine only, under a path with a token that nobody else knows, and changes nothing.

Questions that may take long have connections of their own, one for each kind.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from relational_tensat.base import duckdb
from relational_tensat.base.errors import RelationalTensatError, UsageError, first_line
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.swaps import Swaps
from relational_tensat.explain.why_not.funnel import Funnels
from relational_tensat.view.classes import Classes, OperatorForms
from relational_tensat.view.collection import collect_film, collect_served
from relational_tensat.view.data.graph_data import shown, to_json
from relational_tensat.view.data.page_data import FilmAndSearch, QueryAnswer, Unused
from relational_tensat.view.document import page_html
from relational_tensat.view.frames import why_unused

#: A query that takes longer is stopped.
LONGEST_QUERY_S = 30.0
#: The most rows of an answer; a page shows a part of them.
_MOST_BYTES = 8 << 20


class Queries:
    """Answers queries, the last one only: a new query stops the one before.

    Each runs in a process of its own, with little memory, that can be killed. DuckDB computes some
    expressions in one piece, and a single value may be larger than a page could show.

    Args:
        connection: to the database, which is a file.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        text = "-- its file\nSELECT path FROM duckdb_databases() WHERE database_name = current_database()"
        ((self._path,),) = connection.execute(text).fetchall()
        self._changing = threading.Lock()  # of what is below
        self._process: subprocess.Popen[bytes] | None = None
        self._last = 0

    def ask(self, query: str) -> QueryAnswer:
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
        except UsageError:  # which is a ValueError, too
            raise
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

    def _answer(self, process: subprocess.Popen[bytes], query: str) -> QueryAnswer:
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError), process.stdin as asked:  # closing it writes, too
            asked.write(query.encode("utf-8", "replace"))
        with process.stdout as answered:
            text = answered.read(_MOST_BYTES)
            if answered.read(1):
                raise UsageError(f"the answer has more than {_MOST_BYTES >> 20} MB")
        content = json.loads(text)
        if "error" in content:
            raise UsageError(content["error"])
        rows = tuple(tuple(row) for row in content["rows"])
        return QueryAnswer(tuple(content["columns"]), rows, content["is_cut"])


class WholeEGraph:
    """Answers what needs the whole e-graph in memory, one question after the other."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, forms: OperatorForms) -> None:
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


HOST = "127.0.0.1"
_TOKEN_BYTES = 24
#: Of larger e-graphs, the result's cost with another e-node is not told: all would be read for it.
_MOST_FOR_SWAPS = 50_000
#: Classes that may be asked for at once.
_MOST_CLASSES = 200
#: An id is of 32 bits; of any other text, so many characters are repeated.
_DIGITS, _SHOWN = 9, 80
#: A question that is being answered when the server ends has so long to notice.
_LONGEST_END_S = 2.0
_INTERRUPT_EVERY_S = 0.02
_JSON = "application/json; charset=utf-8"
_HTML = "text/html; charset=utf-8"


class RunView:
    """Answers a page's questions about a run, several at a time.

    A question that is read at once, a class say, has a connection of its own, and so have the questions
    that may
    take long: those of the whole e-graph, one after the other. Of queries, each in a process, a new one, or
    ``stop``, ends the one before.

    Args:
        connection: to the run's database, read-only.
        prefix: of the paths that are answered.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, prefix: str) -> None:
        self._prefix = prefix
        self._lock = threading.Lock()  # of what is read at once
        self._idle = threading.Condition()
        self._being_answered = 0
        self._connections = [connection.cursor() for _ in range(2)]
        own, for_whole = self._connections
        self._stored = StoredEGraph(own)
        self._forms = OperatorForms.of(self._stored)
        self._whole = WholeEGraph(for_whole, self._forms)
        self._queries = Queries(connection)
        self._answers: Mapping[str, Callable[[str], object]] = {
            "classes": self._read_classes,
            "find": self._find,
            "ask": self._queries.ask,
            "stop": lambda _: self._queries.stop(),
            "unused": self._whole.why_unused,
            "film": lambda _: self._whole.film(),
        }

    @cached_property
    def page(self) -> str:
        """The page itself."""
        with self._lock:
            return page_html(collect_served(self._stored, self._forms), self._prefix)

    @cached_property
    def _classes(self) -> Classes:
        """Reads classes; small e-graphs also tell the result's cost with another e-node."""
        rows = self._stored.connection.execute("SELECT count(*) FROM enode").fetchall()
        ((e_nodes,),) = rows
        swaps = Swaps(self._stored) if e_nodes <= _MOST_FOR_SWAPS else None
        return Classes(self._stored, self._forms, swaps)

    def answer(self, name: str, question: str, known: int) -> str:
        """Return the answer to a question as JSON, with the forms that it may name.

        Args:
            known: how many forms the page has.

        Raises:
            UsageError: there is no such question, or its text is wrong, or it was stopped.
        """
        if name not in self._answers:
            raise UsageError(f"no such question: {name!r}")
        with self._answering():
            answer = self._answers[name](question)
            return to_json(shown({"answer": answer, "forms": self._forms.all()[known:]}))

    def close(self) -> None:
        """Interrupt what is being answered, so that the database can be closed."""
        end_s = time.monotonic() + _LONGEST_END_S
        self._queries.stop()
        with self._idle:
            while self._being_answered and time.monotonic() < end_s:
                for connection in self._connections:
                    connection.interrupt()
                self._idle.wait(_INTERRUPT_EVERY_S)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        with self._idle:
            self._being_answered += 1
        try:
            yield
        except duckdb.InterruptException as error:
            raise UsageError("the server has ended") from error
        finally:
            with self._idle:
                self._being_answered -= 1
                self._idle.notify_all()

    def _read_classes(self, text: str) -> object:
        numbers = text.split(",")
        is_id = all(number.isdecimal() and len(number) <= _DIGITS for number in numbers)
        if not is_id or len(numbers) > _MOST_CLASSES:
            raise UsageError(
                f"{text[:_SHOWN]!r}: expected ids of e-classes, at most {_MOST_CLASSES}"
            )
        with self._lock:
            return self._classes.read([int(number) for number in numbers])

    def _find(self, words: str) -> object:
        with self._lock:
            return self._classes.find(words.split())


class Server(ThreadingHTTPServer):
    """Serves one run on this machine.

    Attributes:
        address: the URL for a browser.
    """

    daemon_threads = True

    def __init__(self, connection: duckdb.DuckDBPyConnection, port: int = 0) -> None:
        """Take a port.

        Args:
            port: 0 for any that is free.

        Raises:
            UsageError: the port is taken, or not one.
        """
        self.prefix = f"/{secrets.token_urlsafe(_TOKEN_BYTES)}"
        self.view = RunView(connection, self.prefix)
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(f"port {port}: cannot be listened on: {error}") from error
        self.address = f"http://{HOST}:{self.server_port}{self.prefix}/"

    def server_close(self) -> None:
        """Answer nobody any more."""
        super().server_close()
        self.view.close()


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        """Answer the page, or one of its questions."""
        parts = urlsplit(self.path)
        prefix, _, name = parts.path[1:].partition("/")
        if not self._is_allowed(prefix):
            self._send(HTTPStatus.NOT_FOUND, _JSON, json.dumps({"error": "not found"}))
            return
        query = parse_qs(parts.query)
        question, known = query.get("q", [""])[0], query.get("known", ["0"])[0]
        try:
            if name == "":
                self._send(HTTPStatus.OK, _HTML, self.server.view.page)
            else:
                count = int(known) if known.isdecimal() and len(known) <= _DIGITS else 0
                answer = self.server.view.answer(name.removeprefix("api/"), question, count)
                self._send(HTTPStatus.OK, _JSON, answer)
        except RelationalTensatError as error:
            self._send(HTTPStatus.BAD_REQUEST, _JSON, json.dumps({"error": str(error)}))
        except Exception as error:  # whatever was asked, the next question is answered
            trouble = f"internal error: {type(error).__name__}: {first_line(error)}"
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, _JSON, json.dumps({"error": trouble}))

    def _is_allowed(self, prefix: str) -> bool:
        """Whether a request has the token, and names this machine, as no other site's page could."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        token = self.server.prefix.removeprefix("/")
        return host in (HOST, "localhost") and secrets.compare_digest(
            prefix.encode(), token.encode()
        )

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode("utf-8", "replace")
        with suppress(ConnectionError):  # the browser has gone elsewhere meanwhile
            self._write(status, kind, body)

    def _write(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        headers: dict[str, Any] = {
            "Content-Type": kind,
            "Content-Length": len(body),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "X-Frame-Options": "DENY",
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the address has the token in it."""
