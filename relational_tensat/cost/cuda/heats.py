"""One heat of a race (``cost.race``) on a GPU: graphs loaded anew in any order, run in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relational_tensat.cost.cuda.graph_timing import Record, Whole, loaded
from relational_tensat.gpu.cuda.cuda_library import CudaLibrary
from relational_tensat.gpu.cuda.timing import Timer
from relational_tensat.tensor import Array, Graph

#: Rounds of a heat, each graph once in each, several times if it is quick.
_ROUNDS = 15
#: A graph is run so long in a round, and once in any case: events tell half a microsecond.
_TURN_US = 500.0
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
    order = rng.permutation(len(graphs)).tolist()
    times_us = np.empty((_ROUNDS, len(graphs)))
    with loaded(library, [graphs[number] for number in order], inputs, math, record) as wholes:
        turns = {
            number: (whole, _repeats(timer, whole))
            for number, whole in zip(order, wholes, strict=True)
        }
        for row in times_us:
            for number in rng.permutation(len(graphs)).tolist():
                row[number] = _run(timer, *turns[number])
    ratios: list[float] = np.median(times_us[:, :1] / times_us, axis=0).tolist()
    return ratios


def _repeats(timer: Timer, whole: Whole) -> int:
    """Warm up; return how many runs fill a turn."""
    spent_us, took_us = 0.0, _TURN_US
    while spent_us < _WARM_UP_US / 2 and took_us:  # as much again runs and is not timed
        took_us = _run(timer, whole, 1)
        spent_us += took_us
    return min(_MOST_REPEATS, max(1, round(_TURN_US / max(took_us, 1e-3))))


def _run(timer: Timer, whole: Whole, times: int) -> float:
    """Return the microseconds of one of so many runs, after one that is not timed."""

    def work() -> None:
        for _ in range(times):
            whole.recorded.start()

    return timer.time_us(whole.recorded.start, work) / times
