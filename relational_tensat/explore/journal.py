"""What an exploration reports of its iterations, until it is written to the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple

from relational_tensat.base.records import record
from relational_tensat.egraph.database import Database
from relational_tensat.explore.outcome import IterationReport


@record
class Mark:
    """What a journal had at a moment; see ``Journal.undo``."""

    matches: tuple[tuple[int, int, int], ...]
    entries: int
    written: int


class Journal:
    """Rows of ``match_log`` and ``iteration_log``.

    Attributes:
        log: the iterations of this exploration that have ended.
    """

    def __init__(self) -> None:
        self.log: list[IterationReport] = []
        self._written = 0
        self._matches: list[tuple[int, int, int]] = []  # iteration, rule, matches

    def note_matches(self, iteration: int, matches: Mapping[int, int]) -> None:
        """Note how many matches of each rule are worked on."""
        self._matches += [(iteration, rule, count) for rule, count in matches.items()]

    def note_iteration(self, entry: IterationReport) -> None:
        """Note that an iteration has ended."""
        self.log.append(entry)

    def write(self, database: Database) -> None:
        """Write what was noted since this was last done."""
        database.append("match_log", self._matches)
        database.append("iteration_log", [astuple(entry) for entry in self.log[self._written :]])
        self._matches, self._written = [], len(self.log)

    def mark(self) -> Mark:
        """Return what ``undo`` goes back to."""
        return Mark(tuple(self._matches), len(self.log), self._written)

    def undo(self, mark: Mark) -> None:
        """Forget what was noted, and written, since a mark."""
        self._matches = list(mark.matches)
        del self.log[mark.entries :]
        self._written = mark.written
