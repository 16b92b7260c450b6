"""Where a sequence repeats itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relational_tensat.base.records import record

#: From so many times in a row on, a piece of the sequence is a block that recurs.
LEAST_REPEATS = 3


@record
class Run:
    """A piece of ``length`` elements that stands ``count`` times in a row, from ``start`` on."""

    start: int
    length: int
    count: int

    @property
    def end(self) -> int:
        """The first element after it."""
        return self.start + self.length * self.count


def find_runs(forms: Sequence[int], sizes: Sequence[int], least: int) -> list[Run]:
    """Return disjoint runs, in order: the largest first found, then the largest on either side of it.

    Args:
        forms: equal integers are equal elements.
        sizes: how many e-nodes an element is.
        least: so many e-nodes a piece has at least; shorter periods are taken several times.
    """
    elements = np.asarray(forms, dtype=np.int64)
    weight = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))])
    runs: list[Run] = []
    waiting = [(0, len(forms))]
    while waiting:
        low, high = waiting.pop()
        run = _largest(elements, weight, low, high, least)
        if run is not None:
            runs.append(run)
            waiting += [(low, run.start), (run.end, high)]
    return sorted(runs, key=lambda run: run.start)


def _largest(
    elements: np.ndarray[tuple[int], np.dtype[np.int64]],
    weight: np.ndarray[tuple[int], np.dtype[np.int64]],
    low: int,
    high: int,
    least: int,
) -> Run | None:
    """Return the run within a span that has the most e-nodes; of equal ones the shortest piece."""
    best, most = None, 0
    for period in range(1, (high - low) // LEAST_REPEATS + 1):
        equal = elements[low : high - period] == elements[low + period : high]
        edges = np.flatnonzero(np.diff(np.concatenate([[False], equal, [False]])))
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            start = low + begin
            size = int(weight[start + period] - weight[start])
            length = period * max(1, math.ceil(least / max(size, 1)))
            count = (end - begin + period) // length
            covered = int(weight[start + length * count] - weight[start]) if count else 0
            if count >= LEAST_REPEATS and covered > most:
                best, most = Run(start, length, count), covered
    return best
