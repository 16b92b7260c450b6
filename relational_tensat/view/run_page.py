"""A run's page, as Python has it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from relational_tensat.view.data.page_data import PageData
from relational_tensat.view.document import page_html, write_page

#: Pixels of a page within a notebook.
_NOTEBOOK_HEIGHT = 760


@dataclass(frozen=True, slots=True, repr=False)
class RunPage:
    """The page of a run: shown where it is the value of a notebook's cell, or saved as a file.

    Attributes:
        data: what it shows.
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
        """Return a frame with the page, which can reach nothing of the notebook around it."""
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{escape(self.html)}" title="run"'
            f' style="width: 100%; height: {_NOTEBOOK_HEIGHT}px; border: 0"></iframe>'
        )
