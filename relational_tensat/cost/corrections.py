"""What races of whole graphs say about the costs of single kernels: a factor for each kind of kernel.

A race says how many times as fast as the original a graph is. If kernels of kind k cost m_k in the graph,
by the sums, and o_k in the original, and truly f_k times as much, then the sum of f_k m_k is that of f_k
o_k divided by the speed-up. Each race and graph is one such equation, over the original's cost, so that
its error is that of the speed-up. The factors are least squares of all of them, each weighted by its
error, and of f_k = 1 within ``SPREAD``: they say as much as the races do, and are 1 where those say nothing
(Hoerl and Kennard 1970, "Ridge regression"). A race compares graphs, so what all kernels have in common is
not learnt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

#: How far costs of a kind are thought to be off, as a fraction.
SPREAD = 0.15
#: A speed-up is known no better than that, as a fraction: how two runs of one graph differ.
LEAST_ERROR = 0.01
#: No kind is corrected by more.
MOST = 1.5
#: Less is no correction.
LEAST = 0.005


@dataclass(frozen=True, slots=True)
class RaceOutcome:
    """How fast a graph was against the original, and what both cost by sums of measured kernels.

    Attributes:
        model: what was raced.
        before_us, after_us: of the original and the other, microseconds by kind of kernel, uncorrected.
        speedup: how many times as fast the other was.
        error: of the speed-up, as a fraction: a standard deviation.
    """

    model: str
    before_us: Mapping[str, float]
    after_us: Mapping[str, float]
    speedup: float
    error: float


@dataclass(frozen=True, slots=True)
class Corrections:
    """Factors by kind of kernel; kinds that are not in it are right.

    Attributes:
        races: how many outcomes they are from.
    """

    factors: Mapping[str, float]
    races: int

    def of(self, kind: str) -> float:
        """Return the factor of a kind."""
        return self.factors.get(kind, 1.0)

    def describe(self, kinds: Iterable[str]) -> str:
        """Return which of some kinds are corrected, and by how much, in a few words; "" if none is."""
        corrected = [
            f"{kind} {self.factors[kind]:.2f}" for kind in sorted(kinds) if kind in self.factors
        ]
        return ", ".join(corrected)


def corrections_of(outcomes: Sequence[RaceOutcome]) -> Corrections:
    """Return the factors that agree best with all outcomes; see the module."""
    kinds = sorted({kind for each in outcomes for kind in (*each.before_us, *each.after_us)})
    used = [each for each in outcomes if sum(each.before_us.values()) > 0]
    if not used:
        return Corrections({}, 0)
    rows = np.zeros((len(used), len(kinds)))
    errors = np.array([max(each.error, LEAST_ERROR) for each in used])
    for row, each in zip(rows, used, strict=True):
        total_us = sum(each.before_us.values())
        for column, kind in enumerate(kinds):
            before_us = each.before_us.get(kind, 0.0) / each.speedup
            row[column] = (each.after_us.get(kind, 0.0) - before_us) / total_us
    weighted = rows / errors[:, None]
    equations = np.vstack([weighted, np.eye(len(kinds)) / SPREAD])
    right = np.concatenate([-weighted.sum(axis=1), np.zeros(len(kinds))])
    off = np.linalg.lstsq(equations, right, rcond=None)[0]
    factors = np.clip(1.0 + off, 1 / MOST, MOST)
    by_kind = zip(kinds, factors.tolist(), strict=True)
    return Corrections({kind: f for kind, f in by_kind if abs(f - 1.0) >= LEAST}, len(used))
