"""No more than what a configuration costs that nobody has measured.

A choice can be settled with such bounds in place of costs. Replace every unmeasured cost by a bound that
is not above it. Let the cheapest graph under these have measured kernels only. Then its cost is its real
one. Every other graph really costs at least as much as under the bounds, which is no less. So nothing
that is unmeasured is in a cheaper graph (``extract/few_measurements.py`` measures until that is so).

Of any kernel only one thing holds: it takes more than no time. Where an operator has been measured fewer
than ``FEWEST`` times, the bound is 0. Beyond that the bound rests on a premise, which reports state. The
measure is a time per unit of work. A unit is the roofline's time under the base profile. No kernel is
quicker by more than ``MARGIN`` than the quickest of its ``NEAREST``, the kernels of the same operator
nearest in operations and bytes. Each of 2,538 recorded times (xeon-2.5ghz-avx512) was left out in turn: 0.2
% were quicker than that, of 765 of an AMD EPYC 0.4 %. Half of the bounds were above 0.72 / ``MARGIN`` and
0.85 / ``MARGIN`` of the time. With more times the nearest are nearer: all bounds are taken again before the
next choice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relational_tensat.cost.device import Configuration
from relational_tensat.cost.profile import Profile, roofline_us

#: Fewer times of an operator say nothing of the others.
FEWEST = 3
#: So many times as quick as the quickest of the nearest another kernel may be.
MARGIN = 1.5
#: So many kernels are near.
NEAREST = 16
#: Below this, in microseconds, amounts of work are alike.
_LITTLE_US = 0.01


class LeastCosts:
    """Bounds from what has been measured so far.

    Args:
        profile: says what is work.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._sides: dict[Configuration, tuple[float, float]] = {}
        #: Per operator, a row for each time: logarithms of both sides of the work, time per unit of work.
        self._rows: dict[str, list[tuple[float, float, float]]] = {}
        self._arrays: dict[str, NDArray[np.float64]] = {}

    def learn(self, configuration: Configuration, time_us: float) -> None:
        """Take a measured time into account; one of 0, where no kernel runs, says nothing."""
        if time_us > 0:
            row = (*self._place(configuration), time_us / self._work_us(configuration))
            self._rows.setdefault(configuration.op, []).append(row)
            self._arrays.pop(configuration.op, None)

    def least_us(self, configuration: Configuration) -> float:
        """Return the bound of a configuration, in microseconds."""
        op = configuration.op
        if len(self._rows.get(op, ())) < FEWEST:
            return 0.0
        if op not in self._arrays:
            self._arrays[op] = np.array(self._rows[op])
        rows = self._arrays[op]
        if len(rows) > NEAREST:
            distances = ((rows[:, :2] - self._place(configuration)) ** 2).sum(axis=1)
            rows = rows[np.argpartition(distances, NEAREST)[:NEAREST]]
        return float(rows[:, 2].min()) * self._work_us(configuration) / MARGIN

    def _place(self, configuration: Configuration) -> tuple[float, float]:
        compute_us, memory_us = np.log(np.add(self._both(configuration), _LITTLE_US)).tolist()
        return compute_us, memory_us

    def _work_us(self, configuration: Configuration) -> float:
        return max(self._both(configuration)) + self._profile.launch_us

    def _both(self, configuration: Configuration) -> tuple[float, float]:
        """Return the roofline's two sides of a configuration, in microseconds."""
        if configuration not in self._sides:
            self._sides[configuration] = roofline_us(
                self._profile,
                configuration.op,
                configuration.inputs,
                configuration.output,
                dict(configuration.attrs),
            )
        return self._sides[configuration]
