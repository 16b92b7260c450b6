"""The gain of a run, and how that is known: timed here, or modelled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from relational_tensat.cost.device import ENOUGH_ROUNDS, WholeTiming
from relational_tensat.cost.race import Standing
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.run.reports import RaceReport

MEASURED, MODELLED = "measured", "modelled"
#: A modelled gain below this share says nothing.
LEAST_MODELLED_GAIN = 1e-3


@dataclass(frozen=True, slots=True)
class Gain:
    """How much less time the result takes than the original.

    Attributes:
        on: the origin of costs: a device, a profile, a table.
        before_us, after_us: by the sums of kernels, without ``beside_us``: a run's time beside these,
            before and after.
        measured: how many times as fast the best graph is, timed whole; None where none was timed.
        from_kernels: the sums are of kernels that were timed one by one.
        is_kept: the original is what is returned.
        place: the opponent that the best was timed against, if not the original where the result runs.
    """

    on: str
    before_us: float
    after_us: float
    measured: Standing | None = None
    beside_us: tuple[float, float] = (0.0, 0.0)
    from_kernels: bool = False
    is_kept: bool = False
    place: str = ""

    @property
    def basis(self) -> str:
        """How it is known."""
        return MODELLED if self.measured is None else MEASURED

    @property
    def speedup(self) -> float:
        """How many times as fast the result is, as measured, or else as modelled; 1 for the original."""
        if self.is_kept:
            return 1.0
        if self.measured is not None:
            return self.measured.speedup
        return self.before_us / self.after_us if self.after_us else 1.0

    @property
    def text(self) -> str:
        """It in one line; "faster" is in it only where graphs were timed."""
        if self.measured is None:
            return self._modelled()
        standing = self.measured
        found = (
            f"{standing.speedup:.3f} times as fast as {self.place or 'the original'} "
            f"[{standing.low:.3f}, {standing.high:.3f}]"
        )
        if self.is_kept:
            return f"measured: the original is kept; the other graph is {found}"
        how = "kernels timed one by one" if self.from_kernels else "modelled"
        return f"measured: {found}; {how}: {_us(self.before_us)} → {_us(self.after_us)} µs"

    def _modelled(self) -> str:
        how = "from timed kernels, whole graphs not timed" if self.from_kernels else ""
        basis = f"modelled for {self.on}, {how or 'not timed here'}"
        if self.is_kept:
            return f"{basis}: the original is kept, {_us(self.before_us)} µs"
        sums = f"{_us(self.before_us)} → {_us(self.after_us)} µs"
        saved = 1 - self.after_us / self.before_us if self.before_us else 0.0
        less = f"{saved:.2%} less" if saved > 0 else "no less, but a smaller graph"
        return f"{basis}: {sums} ({less})"

    @property
    def with_run(self) -> str:
        """How much less it is, as modelled, with what a run takes beside kernels; "" if not known."""
        before, after = self.beside_us
        if not before or self.is_kept or self.measured is not None:
            return ""
        saved = 1 - (self.after_us + after) / (self.before_us + before)
        beside = f"{before:,.1f}" if before == after else f"{before:,.1f} and {after:,.1f}"
        return f"{saved:.2%} less with the {beside} µs that a run takes beside kernels"

    def to_json(self) -> Mapping[str, Any]:
        """Return it as an object; ``timed`` is null where nothing was."""
        return {
            "basis": self.basis,
            "on": self.on,
            "speedup": self.speedup,
            "timed": None if self.measured is None else asdict(self.measured),
            "original_kept": self.is_kept,
            "text": self.text,
        }


def standing_of(race: RaceReport | None, whole: WholeTiming | None) -> Standing | None:
    """Return how the best graph was against the original, timed whole; None where it was not."""
    if race is not None:
        return race.final
    if whole is None:
        return None
    low = whole.speedup_p10 if whole.rounds >= ENOUGH_ROUNDS else 0.0  # else nothing is known
    return Standing(whole.speedup, low, whole.speedup_p90, whole.rounds)


def is_worth_it(standing: Standing, least_speedup: float, *, is_smaller: bool) -> bool:
    """Whether a graph that was timed is written instead of the original.

    Args:
        least_speedup: that it has to be beyond; more than 1 counts size for nothing.
        is_smaller: it has fewer nodes, or bytes, and more of neither.
    """
    if standing.low > least_speedup:
        return True
    return is_smaller and least_speedup <= 1.0 and standing.is_as_fast


def is_worth_it_modelled(
    before_us: float, after_us: float, least_speedup: float, *, is_smaller: bool
) -> bool:
    """Whether a graph that nothing timed is written instead of the original, by what both cost."""
    least_gain = 0.0 if is_smaller else LEAST_MODELLED_GAIN
    most_us = before_us * min(1 - least_gain, 1 / least_speedup)
    return after_us <= most_us * (1 + COST_TOLERANCE)


def _us(time_us: float) -> str:
    """Return microseconds with as many digits as mean something."""
    return f"{time_us:,.0f}" if time_us >= 10_000 else f"{time_us:,.2f}"
