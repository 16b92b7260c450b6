"""Where a run's time goes: in which statements, in which phase, and how much of it in Python."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from relational_tensat.base.records import record

#: The phase of what runs in no other.
OTHER = "other"


@dataclass(slots=True)
class StatementTime:
    """The time of one statement in all its runs.

    Attributes:
        count: how often it ran.
        rows: that it returned, or changed.
        seconds: wall seconds, fetching the rows included.
    """

    count: int = 0
    rows: int = 0
    seconds: float = 0.0


@record
class TimeSpent:
    """Where the time between two moments went.

    Attributes:
        statements: by phase and name.
        phases: wall seconds of each phase, without those of phases inside it.
    """

    statements: Mapping[tuple[str, str], StatementTime] = field(default_factory=dict)
    phases: Mapping[str, float] = field(default_factory=dict)

    def database_seconds(self, phase: str) -> float:
        """Return the seconds of a phase's statements; the rest of the phase is Python's."""
        return sum(entry.seconds for (where, _), entry in self.statements.items() if where == phase)

    def to_json(self) -> dict[str, Any]:
        """Return the phases' seconds, and an object per phase and statement, the longest first."""
        ordered = sorted(self.statements.items(), key=lambda item: -item[1].seconds)
        return {
            "phases": dict(self.phases),
            "statements": [
                {"phase": phase, "statement": name, **asdict(entry)}
                for (phase, name), entry in ordered
            ],
        }


class Stopwatch:
    """Adds up the time that statements take, each in the phase that is running."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], StatementTime] = {}
        self._phases: dict[str, float] = {}
        self._phase = OTHER
        self._since = time.perf_counter()

    def time_of(self, statement: str) -> StatementTime:
        """Return the entry that a statement which runs now belongs to."""
        key = self._phase, statement
        entry = self._times.get(key)
        if entry is None:
            entry = self._times[key] = StatementTime()
        return entry

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what is inside as a phase's, and no longer as that of the phase around it."""
        around = self._phase
        self._enter(name)
        try:
            yield
        finally:
            self._enter(around)

    def spent(self) -> TimeSpent:
        """Return what was found since the beginning."""
        self._enter(self._phase)
        return TimeSpent(self._times, self._phases)

    def _enter(self, name: str) -> None:
        now = time.perf_counter()
        self._phases[self._phase] = self._phases.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = name, now
