"""Rows of results as they are printed, as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from bench.common.table import table_row
from bench.mirage.measure import MirageRun, SearchRun


@dataclass(frozen=True, slots=True)
class Table:
    """A title, what the columns are called, and texts."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def csv(self) -> str:
        """Return it as CSV."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.header, *self.rows])
        return text.getvalue()

    def markdown(self) -> str:
        """Return it as Markdown, under its title."""
        lines = [self.header, ("---",) * len(self.header), *self.rows]
        body = "".join(f"{table_row(line)}\n" for line in lines)
        return f"## {self.title}\n\n{body}"


HEADER = (
    "benchmark", "kernels at most", "kernels", "configurations", "candidates", "terms", "hits",
    "bounded tests", "other tests", "entry tests", "CPU s", "library µs", "best µs", "ratio",
    "published ratio", "published search",
)  # fmt: skip

SEARCH_HEADER = (
    "benchmark", "operators at most", "without", "processes", "configurations", "candidates", "terms",
    "hits", "CPU s", "wall s", "published",
)  # fmt: skip


def cells(run: MirageRun) -> tuple[str, ...]:
    """Return a run as the texts under ``HEADER``."""
    search = run.search
    return (
        search.case,
        str(search.max_kernels),
        str(run.kernels) if run.kernels else "none",
        f"{search.configurations:,}",
        f"{search.candidates:,}",
        f"{search.terms:,}{'' if search.is_complete else '+'}",
        f"{search.hits:,}",
        str(run.bounded_tests or "-"),
        str(run.other_tests or "-"),
        str(run.entry_tests or "-"),
        f"{run.cpu_s:.1f}",
        f"{run.library_us:.1f}",
        f"{run.best_us:.1f}" if run.kernels else "-",
        f"{run.ratio:.1f}x" if run.kernels else "-",
        run.published or "-",
        run.published_search or "-",
    )


def search_cells(run: SearchRun, published: str) -> tuple[str, ...]:
    """Return a search as the texts under ``SEARCH_HEADER``."""
    made = run.case, str(run.max_operators), ", ".join(run.disabled) or "-", str(run.processes)
    if run.is_left_out:
        return (*made, *["-"] * 4, "over limit", "-", published or "-")
    return (
        *made,
        f"{run.configurations:,}",
        f"{run.candidates:,}",
        f"{run.terms:,}{'' if run.is_complete else '+'}",
        f"{run.hits:,}",
        f"{run.search_cpu_s:.1f}{'' if run.is_complete else '+'}",
        f"{run.search_wall_s:.1f}",
        published or "-",
    )


def line(texts: Sequence[str]) -> str:
    """Return texts side by side, for the screen."""
    first, *middle, last = texts
    return f"{first:<27}" + " ".join(f"{text:>15}" for text in middle) + f"  {last}"
