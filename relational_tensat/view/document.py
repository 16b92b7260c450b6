"""A run's page: as Python has it, made of the tables that the run has left, and as one HTML document.

The document is the built front end, and the data of a run as inert text in it. Names of a model are not
trusted. They are in a JSON block that no parser of HTML can leave, and the front end only ever puts them
into text nodes and attributes. A content security policy allows no script but the front end's own, by its
hash, and no connection to anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, UsageError, first_line
from relational_tensat.base.files import write_aside
from relational_tensat.base.shown_text import escaped

if TYPE_CHECKING:  # few runs are looked at
    from relational_tensat.view.data.kernel_data import KernelPage
    from relational_tensat.view.data.page_data import PageData

_BUNDLE = Path(__file__).resolve().parent / "bundle"


def page_html(data: PageData | KernelPage, server: str = "") -> str:
    """Return the page of a run, or of kernels.

    Args:
        server: the path prefix at which the page may ask its own server; "" where it has none, so that
            it may connect to nothing at all.
    """
    from relational_tensat.view.data.graph_data import shown
    from relational_tensat.view.data.page_data import PageData

    script = (_BUNDLE / "page.js").read_text(encoding="utf-8")
    style = (_BUNDLE / "page.css").read_text(encoding="utf-8")
    title = data.summary.model if isinstance(data, PageData) else data.title
    connections = "'self'" if server else "'none'"
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src 'sha256-{_digest(script)}'",
            "style-src 'unsafe-inline'",  # the plots bring a style sheet of their own
            "img-src data:",
            f"connect-src {connections}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(escaped(title))} · relational_tensat</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n"
        '<div id="page"><noscript>This page draws with JavaScript.</noscript></div>\n'
        f'<script type="application/json" id="data" data-server="{escape(server)}">'
        f"{json_block(shown(data))}</script>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def json_block(data: object) -> str:
    """Return data as JSON that can stand within a ``script`` element: nothing in it looks like a tag."""
    from relational_tensat.view.data.graph_data import to_json

    text = to_json(data)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def write_page(data: PageData | KernelPage, path: Path) -> None:
    """Write a page; readers of the file see the old one until then.

    Raises:
        InputError: it cannot be written.
    """
    with write_aside(path) as folder:
        (folder / path.name).write_bytes(page_html(data).encode("utf-8", "replace"))


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


#: Pixels of a page within a notebook.
_NOTEBOOK_HEIGHT = 760


@dataclass(frozen=True, slots=True, repr=False)
class RunPage:
    """The page of a run: shown where it is the value of a notebook's cell, or saved as a file.

    Attributes:
        data: the page's content.
    """

    data: PageData

    @property
    def html(self) -> str:
        """The self-contained document."""
        return page_html(self.data)

    def save(self, path: str | Path) -> Path:
        """Write the document, and return where it is.

        Raises:
            InputError: it cannot be written.
        """
        write_page(self.data, Path(path))
        return Path(path)

    def __repr__(self) -> str:
        summary = self.data.summary
        return (
            f"RunPage({summary.model}: {summary.gain}, in "
            f"{0 if self.data.film is None else len(self.data.film.steps)} steps)"
        )

    def _repr_html_(self) -> str:
        """Return a frame with the page: it can reach nothing of the notebook around it."""
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{escape(self.html)}" title="run"'
            f' style="width: 100%; height: {_NOTEBOOK_HEIGHT}px; border: 0"></iframe>'
        )


@dataclass(frozen=True, slots=True)
class RunTables:
    """Where the tables of a finished run are: in a file, or in memory, as long as this is there.

    Pickled, it has the file's absolute path; tables in memory do not go along.

    Attributes:
        memory: a connection to those in memory, or None if they are in ``path``.
    """

    path: Path | None = None
    memory: duckdb.DuckDBPyConnection | None = None

    def __reduce__(self) -> tuple[type[RunTables], tuple[Path | None]]:
        return RunTables, (None if self.path is None else self.path.absolute(),)

    @contextmanager
    def opened(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Give a connection that changes nothing.

        Raises:
            UsageError: they were in the memory of the process that this comes from.
            InputError: the file is gone, or another process has it open.
        """
        if self.memory is not None:
            yield self.memory
            return
        if self.path is None:
            raise UsageError(
                "the tables were in the memory of another process: run with the option db, or view"
            )
        try:
            connection = duckdb.open_database(self.path)
        except duckdb.Error as error:
            raise InputError(f"{self.path}: cannot be opened: {first_line(error)}") from error
        with connection:
            yield connection

    def page(self, *, check: bool = False) -> RunPage:
        """Return the run's page.

        Args:
            check: compute every tensor that a step replaces both ways.

        Raises:
            UsageError, InputError: the tables cannot be read, or nothing was extracted.
        """
        from relational_tensat.view.collection import collect  # few runs are looked at

        with self.opened() as connection:
            return RunPage(collect(connection, check=check))
