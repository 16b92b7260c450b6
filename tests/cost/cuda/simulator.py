"""A GPU that keeps time: kernels of known length, a clock that moves, gaps between launches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from relational_tensat.cost.cuda.protocol import COLD


@dataclass(frozen=True, slots=True)
class Kernel:
    """What one launch takes at the nominal clock."""

    warm_us: float
    cold_us: float


@dataclass
class SimulatedGpu:
    """Implements ``Stopwatch``.

    Attributes:
        gap_us: what the launch of a batch adds to it, once.
        noise: relative standard deviation of a sample.
        slow: how much longer everything takes, by seconds passed on the device; 1.0 is nominal.
        log: what was timed, in order.
    """

    gap_us: float = 0.0
    noise: float = 0.0
    slow: Callable[[float], float] = lambda seconds: 1.0
    now_s: float = 0.0
    log: list[tuple[object, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(0)

    def time_us(self, subject: Kernel, mode: str, batch: int) -> float:
        self.log.append((subject, mode, batch))
        return self._pass(batch * (subject.cold_us if mode == COLD else subject.warm_us))

    def reference_us(self) -> float:
        self.log.append(("reference", "", 1))
        return self._pass(500.0)

    def _pass(self, work_us: float) -> float:
        factor = self.slow(self.now_s) * (1 + self.noise * abs(self._random.standard_normal()))
        taken_us = work_us * factor + self.gap_us
        self.now_s += (taken_us + 20.0) * 1e-6
        return taken_us
