"""Results on disk, model by model, so that what was interrupted goes on where it was."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bench.exports.cold_warm import ColdWarm, TimedRun
from bench.exports.of_a_day import DayRow
from bench.exports.times import Timing
from relational_tensat.base.errors import InputError
from relational_tensat.cost.race import Standing

if TYPE_CHECKING:
    from bench.fused.exports import ExportRow

_Row = TypeVar("_Row", bound="Timing | ColdWarm | DayRow | ExportRow")


class Kept(Generic[_Row]):
    """A file with a line of JSON for each model that was timed.

    Args:
        path: the file; None keeps nothing.
        setting: what must be the same for a line to count: options, heats, threads, commit.
        read: makes a row of what was kept of it.
    """

    def __init__(
        self, path: Path | None, setting: Mapping[str, Any], read: Callable[[dict[str, Any]], _Row]
    ) -> None:
        self._path = path
        self._setting = dict(setting)
        self._read = read

    def of(self, name: str) -> list[_Row]:
        """Return a model's rows; none where it was not timed in this setting.

        Raises:
            InputError: the file is none of these.
        """
        if self._path is None or not self._path.exists():
            return []
        timings: list[_Row] = []
        for number, line in enumerate(self._path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                content = json.loads(line)
                if content["setting"] == self._setting and content["name"] == name:
                    timings = [self._read(each) for each in content["timings"]]
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{self._path}:{number}: no kept timing: {error!r}") from error
        return timings

    def keep(self, name: str, timings: Sequence[_Row]) -> None:
        """Add a line."""
        if self._path is None:
            return
        rows = [dataclasses.asdict(timing) for timing in timings]
        line = json.dumps({"name": name, "setting": self._setting, "timings": rows})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def read_timing(content: dict[str, Any]) -> Timing:
    """Return timings as they were kept."""
    standings = {who: Standing(**each) for who, each in content.pop("standings").items()}
    return Timing(**content, standings=standings)


def read_cold_warm(content: dict[str, Any]) -> ColdWarm:
    """Return two runs as they were kept."""
    return ColdWarm(content["name"], TimedRun(**content["cold"]), TimedRun(**content["warm"]))
