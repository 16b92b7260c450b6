"""Two graphs timed whole, one after the other in turn, and what that says: gain, tie or loss.

The sum of single operators' times is a model; this measurement checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Fewer rounds say nothing: of 11, ten are slower by chance once in 170 times (of 5, five once in 32).
ENOUGH_ROUNDS = 11


@dataclass(frozen=True, slots=True)
class WholeTiming:
    """Original and optimized graph on a device.

    Attributes:
        before_us, after_us: of one run, by the device's own statistic: on a processor, the 10th
            percentile of the thread's CPU time; on a GPU, the median.
        speedup: median over the rounds of original / optimized, both of the same round.
        speedup_p10, speedup_p90: its spread.
        rounds: how many count.
    """

    before_us: float
    after_us: float
    speedup: float
    speedup_p10: float
    speedup_p90: float
    rounds: int

    @classmethod
    def of_rounds(cls, before_us: float, after_us: float, ratios: Sequence[float]) -> WholeTiming:
        """Return what the ratios original / optimized say, one a round."""
        p10, median, p90 = np.percentile(ratios, (10, 50, 90)).tolist()
        return cls(before_us, after_us, median, p10, p90, len(ratios))

    @property
    def is_loss(self) -> bool:
        """Whether the optimized graph is slower beyond the noise: in nine rounds of ten, of enough."""
        return self.speedup_p90 < 1.0 and self.rounds >= ENOUGH_ROUNDS
