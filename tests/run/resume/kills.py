"""Runs that end early: what their processes leave, and what must hold of it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest

from bench.kills.kills import broken_invariants
from relational_tensat import Result, resume
from relational_tensat.explore import IterationReport
from relational_tensat.extract.kept_choice import ExtractionEntry
from relational_tensat.run.progress import Silent


class Killed(BaseException):
    """Ends a run where it is."""


class Dies(Silent):
    """Progress that ends the run after so many reports."""

    def __init__(self, events: int) -> None:
        self.left = events

    def phase(self, name: str) -> None:
        self._count()

    def iteration(self, report: IterationReport) -> None:
        self._count()

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        self._count()

    def extracted(self, entry: ExtractionEntry) -> None:
        self._count()

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


class Copies(Silent):
    """Progress that copies the database after some reports: what a process killed then would leave."""

    def __init__(self, database: Path, moments: Sequence[int]) -> None:
        self.copies: list[Path] = []
        self._database = database
        self._moments = moments
        self._count = 0

    def iteration(self, report: IterationReport) -> None:
        self._copy()

    def extracted(self, entry: ExtractionEntry) -> None:
        self._copy()

    def _copy(self) -> None:
        self._count += 1
        if self._count in self._moments:
            self.copies.append(copied(self._database, self._database.with_name(str(self._count))))


def copied(database: Path, folder: Path) -> Path:
    """Copy a database with its log: what a process killed now would leave."""
    folder.mkdir()
    for file in database.parent.glob(f"{database.name}*"):
        if file.is_file():
            shutil.copy(file, folder / file.name)
    return folder / database.name


def known_us(database: Path) -> float:
    """Return what the cheapest graph costs that is known in a database; infinity if none is."""
    query = "SELECT best_us FROM extraction_log ORDER BY rowid DESC LIMIT 1"
    with duckdb.connect(str(database)) as connection:
        rows = connection.execute(query).fetchall()
    return float(rows[0][0]) if rows else float("inf")


def gone_on(database: Path, **changes: object) -> Result:
    """Resume a run, and check what must hold of every one."""
    before_us = known_us(database)
    result = resume(database, **changes)
    assert list(broken_invariants(database)) == []
    assert result.verification.ok or result.unchanged
    assert result.cost_after_us <= before_us or result.cost_after_us == pytest.approx(before_us)
    return result
