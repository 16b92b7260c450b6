"""Graphs timed in rounds, each once in each, in any order: what both kinds of heats do (``cost.race``)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def times_as_fast_as_first(
    rng: np.random.Generator, count: int, rounds: int, time_us: Callable[[int], float]
) -> list[float]:
    """Return how many times as fast as the first each graph is: the median over the rounds.

    Args:
        rng: draws the order in each round.
        count: of graphs.
        time_us: runs a graph, by its number, equally often each.
    """
    times_us = np.empty((rounds, count))
    for row in times_us:
        for number in rng.permutation(count).tolist():
            row[number] = time_us(number)
    ratios: list[float] = np.median(times_us[:, :1] / times_us, axis=0).tolist()
    return ratios
