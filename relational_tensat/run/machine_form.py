"""The result as onnxruntime saves it on this machine: how it was beside the file that runs anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from relational_tensat.cost.race import Standing
from relational_tensat.run.race_report import span

#: The forms: as onnxruntime saves a model; the same with matrices as its products have packed them.
SAVED, PACKED = "saved", "packed"


@dataclass(frozen=True, slots=True)
class MachineForm:
    """What a race said of the forms that onnxruntime saves, beside the file that is written without.

    Attributes:
        runtime: onnxruntime's name and version.
        processor: what the maker calls it.
        standings: by form, how many times as fast as that file it is; of the winner in heats of its own.
        winner: the form that won.
        noise: that file's standing against itself.
        taken: the form that is written; "" where none is.
        timed_before: when they raced, UTC, if that was before this run.
        data: the file of its weights, once it is written; None where there is none.
    """

    runtime: str
    processor: str
    standings: Mapping[str, Standing]
    winner: str
    noise: Standing
    taken: str = ""
    timed_before: str = ""
    data: Path | None = None

    @property
    def fastest(self) -> str:
        """The form to be written: the winner, if it is faster beyond the noise, or the smaller if that is
        as fast as the winner may be; "" where none is.
        """
        won = self.standings[self.winner]
        if not won.is_faster:
            return ""
        smaller = self.standings.get(SAVED, won)
        return SAVED if smaller.is_faster and smaller.speedup >= won.low else self.winner

    @property
    def outcome(self) -> str:
        """What was found, in one line."""
        date = self.timed_before.partition("T")[0]
        when = f", timed on {date}" if date else ""
        if not self.taken:
            found = f"{span(self.standings[self.winner])}, against itself {span(self.noise)}"
            return f"not saved for this machine: measured, not known to be faster so: {found}{when}"
        where = f", weights in {self.data.name}" if self.data is not None else ""
        packed = ", matrices packed" if self.taken == PACKED else ""
        gain = f"{span(self.standings[self.taken])} as fast as the file without"
        return (
            f"saved for this machine by {self.runtime}{packed}{where}: {gain}{when}; only for this version "
            f"and processors such as this {self.processor}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as an object."""
        data = None if self.data is None else str(self.data)
        return {**asdict(self), "data": data}
