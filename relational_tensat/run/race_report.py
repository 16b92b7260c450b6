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
    """

    without: tuple[str, ...]
    cost_us: float
    standing: Standing

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"without {', '.join(self.without)}" if self.without else "the cheapest"


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
    """

    original_us: float
    contenders: Sequence[Contender]
    winner: int
    final: Standing
    noise: Standing
    fixed_share: float

    @property
    def keeps_original(self) -> bool:
        """Whether no graph is known to be as fast as the original."""
        return not self.final.is_as_fast

    @property
    def outcome(self) -> str:
        """Who won, in a few words."""
        final, noise = self.final, self.noise
        verdict = "faster" if final.is_faster else "as fast" if final.is_as_fast else "not faster"
        return (
            f"{self.contenders[self.winner].name} is {verdict}: {span(final)}; the original against "
            f"itself: {span(noise)}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as an object."""
        kept = "original" if self.keeps_original else "optimized"
        return {**asdict(self), "contenders": [asdict(c) for c in self.contenders], "kept": kept}


def span(standing: Standing) -> str:
    """Return a speed-up and its interval."""
    return f"{standing.speedup:.3f}x [{standing.low:.3f}, {standing.high:.3f}]"
