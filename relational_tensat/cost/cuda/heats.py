"""One heat of a race (``cost.race``) on a GPU: graphs loaded anew in any order, run in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.cost.cuda.graph_timing import (
    NO_KERNEL,
    Record,
    Whole,
    WholeStopwatch,
    loaded,
)
from relational_tensat.cost.cuda.protocol import WARM
from relational_tensat.cost.rounds import times_as_fast_as_first
from relational_tensat.gpu.cuda.cuda_library import CudaLibrary, Timer
from relational_tensat.tensor import Array, Graph

#: Rounds of a heat, each graph once in each, all several times if one is quick.
_ROUNDS = 15
#: The quickest graph is run so long in a round, and once in any case: events tell half a microsecond.
_TURN_US = 1000.0
#: So long a clock needs to rise, after memory was written.
_WARM_UP_US = 30_000.0
_MOST_REPEATS = 100


def run_heat(
    library: CudaLibrary,
    timer: Timer,
    graphs: Sequence[Graph],
    inputs: Mapping[str, Array],
    math: str,
    seed: int,
    record: Record | None = None,
) -> list[float]:
    """Run graphs, each as one CUDA graph; the caches hold what the run before left in them.

    Args:
        graphs: with data for their weights.
        seed: of the order in which graphs are loaded, and of that in each round.
        record: how CUDA graphs are recorded, if not by ``record_launches``.

    Returns:
        Per graph, how many times as fast as the first it is: the median over the rounds.

    Raises:
        InputError: there is no kernel for a node, memory does not hold all graphs, or one launches no
            kernel.
    """
    rng = np.random.default_rng(seed)
    stopwatch = WholeStopwatch(timer)
    order = rng.permutation(len(graphs)).tolist()
    with loaded(library, [graphs[number] for number in order], inputs, math, record) as wholes:
        by_number = dict(zip(order, wholes, strict=True))
        once_us = [_warm_up(stopwatch, whole) for whole in wholes]
        if not all(once_us):
            raise InputError(NO_KERNEL)
        repeats = min(_MOST_REPEATS, max(1, round(_TURN_US / min(once_us))))
        return times_as_fast_as_first(
            rng,
            len(graphs),
            _ROUNDS,
            lambda number: stopwatch.time_us(by_number[number], WARM, repeats),
        )


def _warm_up(stopwatch: WholeStopwatch, whole: Whole) -> float:
    """Return the microseconds of the last of some runs; 0.0 where nothing runs."""
    spent_us, took_us = 0.0, 1.0
    while spent_us < _WARM_UP_US / 2 and took_us:  # as much again runs and is not timed
        took_us = stopwatch.time_us(whole, WARM, 1)
        spent_us += took_us
    return took_us
