"""What a race of whole graphs was: who took part, how fast they were, who won."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from relational_tensat.cost.race import Standing


@dataclass(frozen=True, slots=True)
class Contender:
    """A graph that took part.

    Attributes:
        without: the families of rules that it does without; none of the cheapest graph.
        cost_us: what it costs by the sums.
        standing: against the original, whole.
        round: which race of this run it was timed in; 0 for one of a run before.
        is_by_profile: it is the cheapest by the profile alone, and another than that by the sums.
    """

    without: tuple[str, ...]
    cost_us: float
    standing: Standing
    round: int = 1
    is_by_profile: bool = False

    @property
    def name(self) -> str:
        """What reports call it."""
        if self.is_by_profile:
            return "the cheapest by the profile"
        return f"without {', '.join(self.without)}" if self.without else "the cheapest"


@dataclass(frozen=True, slots=True)
class RaceRound:
    """One race of a run.

    Attributes:
        round: 1 for the first.
        graphs: that took part, by the sums of that time.
        winner: the number of the fastest of them.
        final: its standing in heats of its own.
    """

    round: int
    graphs: Sequence[Contender]
    winner: int
    final: Standing


@dataclass(frozen=True, slots=True)
class RaceReport:
    """Graphs raced whole against the original.

    Attributes:
        original_us: what the original costs by the sums.
        contenders: all others, cheapest first.
        winner: the number of the fastest of them.
        final: its standing in heats of its own.
        noise: the original's standing against itself.
        fixed_share: the share of the original's cost that is in kernels which no rule can change: every
            graph of the e-graph has them.
        is_dearer: it costs more than the original by the sums, corrected by what the races said: it then
            has to be faster beyond the noise.
        rounds: races of this run, after each of which costs were corrected and extraction done again; 0
            where all had been timed by runs before.
        timed_before: when the fastest was timed, UTC, if that was before this run.
        is_remembered: it is the choice of a run that this one repeats: nothing was looked for.
        declined: why the fastest is not written although it is as fast; "" where it is.
    """

    original_us: float
    contenders: Sequence[Contender]
    winner: int
    final: Standing
    noise: Standing
    fixed_share: float
    is_dearer: bool = False
    rounds: int = 1
    timed_before: str = ""
    is_remembered: bool = False
    declined: str = ""

    @property
    def keeps_original(self) -> bool:
        """Whether no graph is known to be faster than the original, or as fast and to cost no more."""
        if self.declined:
            return True
        return not self.final.is_faster and (self.is_dearer or not self.final.is_as_fast)

    @property
    def outcome(self) -> str:
        """Who won, in a few words."""
        final, noise = self.final, self.noise
        verdict = "faster" if final.is_faster else "as fast" if final.is_as_fast else "not faster"
        dearer = ", and dearer by the sums" if final.is_as_fast and self.is_dearer else ""
        date = self.timed_before.partition("T")[0]
        whose = "the choice of a run before, " if self.is_remembered else ""
        when = f"; {whose}timed on {date}, --race-again times them anew" if date else ""
        return (
            f"{self.contenders[self.winner].name} is {verdict}{dearer}, measured: {span(final)}; the "
            f"original against itself: {span(noise)}{when}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as an object."""
        kept = "original" if self.keeps_original else "optimized"
        return {**asdict(self), "contenders": [asdict(c) for c in self.contenders], "kept": kept}


def span(standing: Standing) -> str:
    """Return a speed-up and its interval."""
    return f"{standing.speedup:.3f}x [{standing.low:.3f}, {standing.high:.3f}]"
