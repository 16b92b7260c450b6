"""Whole graphs on the GPU: how long they take, end to end.

Each is timed as one CUDA graph. A heat of a race (``cost.race``) loads its graphs once more, in any order,
and runs them in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.cost.cuda.protocol import WARM, CudaStopwatch, Settings, Subject, observe
from relational_tensat.cost.device import ENOUGH_ROUNDS, Unmeasurable, WholeTiming
from relational_tensat.cost.race import times_as_fast_as_first
from relational_tensat.gpu.cuda.cuda_library import CudaLibrary, Timer
from relational_tensat.gpu.cuda.gpu import RecordedLaunches, record_launches
from relational_tensat.gpu.plan import Executor, GpuPlan, plan_graph
from relational_tensat.tensor import Array, Graph

#: Records what a function enqueues on a GPU.
Record: TypeAlias = Callable[[Any, Callable[[], None]], RecordedLaunches]

#: Whole graphs are timed as they are, in windows of so many rounds; the caches hold what the run
#: before left in them.
GRAPH_SETTINGS = Settings(short_us=0.0, warm_up_us=50_000.0, modes=(WARM,))


#: Why a graph is not timed.
NO_KERNEL = "a graph takes no time: it launches no kernel"


@dataclass(slots=True)
class Whole:
    """A graph in memory, recorded as one CUDA graph."""

    executor: Executor
    recorded: RecordedLaunches


class WholeStopwatch:
    """The protocol's stopwatch over whole graphs; each is a batch of its own kernels."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer

    def time_us(self, subject: Whole, mode: str, batch: int) -> float:
        """Return the microseconds of ``batch`` runs, after one that is not timed."""

        def work() -> None:
            for _ in range(batch):
                subject.recorded.start()

        return self._timer.time_us(subject.recorded.start, work)

    def reference_us(self) -> float:
        """Return the microseconds of the fixed product."""
        return self._timer.reference_us()


def time_pair(
    library: CudaLibrary,
    timer: Timer,
    graphs: tuple[Graph, Graph],
    inputs: Mapping[str, Array],
    math: str,
    seconds: float,
) -> WholeTiming | Unmeasurable:
    """Time original and optimized graph for so many seconds, interleaved, each as one CUDA graph.

    Raises:
        InputError: there is no kernel for a node, or memory does not hold both graphs.
    """
    with loaded(library, graphs, inputs, math) as wholes:
        stopwatch = WholeStopwatch(timer)
        return compare_pair((wholes[0], wholes[1]), stopwatch, seconds)


def compare_pair(
    pair: tuple[Subject, Subject], stopwatch: CudaStopwatch[Subject], seconds: float
) -> WholeTiming | Unmeasurable:
    """Return how long two subjects take, as far as can be known in so many seconds."""
    times_us = [stopwatch.time_us(plan, WARM, 1) for plan in pair]
    if not all(times_us):
        return Unmeasurable(NO_KERNEL)
    round_s = 2e-6 * sum(times_us)  # as much again is run and not timed
    settings = _settings_for(round_s, seconds)
    if settings is None:
        return Unmeasurable(
            f"{ENOUGH_ROUNDS} rounds of both graphs would take {ENOUGH_ROUNDS * round_s:.0f} s, "
            f"more than {seconds:.0f}"
        )
    before, after = observe(pair, stopwatch, settings)
    if isinstance(before, Unmeasurable):
        return before
    if isinstance(after, Unmeasurable):
        return after
    return WholeTiming.of_rounds(
        before.samples[WARM].median_us,
        after.samples[WARM].median_us,
        [
            one_us / other_us
            for one_us, other_us in zip(before.times_us[WARM], after.times_us[WARM], strict=True)
        ],
    )


def _settings_for(round_s: float, seconds: float) -> Settings | None:
    """Return how two graphs are timed in so many seconds; None where that is too short."""
    rounds = int(seconds / round_s)
    if rounds < ENOUGH_ROUNDS:
        return None
    window = max(1, min(GRAPH_SETTINGS.window, rounds // ENOUGH_ROUNDS))
    return replace(
        GRAPH_SETTINGS,
        fewest_batch=1,
        window=window,
        fewest=max(ENOUGH_ROUNDS, min(GRAPH_SETTINGS.fewest, rounds // 2)),
        most=min(GRAPH_SETTINGS.most, rounds),
        most_windows=min(GRAPH_SETTINGS.most_windows, rounds // window),
    )


@contextmanager
def loaded(
    library: CudaLibrary,
    graphs: Sequence[Graph],
    inputs: Mapping[str, Array],
    math: str,
    record: Record | None = None,
) -> Iterator[list[Whole]]:
    """Hold graphs in memory, ready to be started, while the block runs.

    Raises:
        InputError: there is no kernel for a node, or memory does not hold all graphs.
    """
    loaded_graphs: list[Whole] = []
    try:
        for graph in graphs:  # one by one: those that are loaded are released
            loaded_graph = _load(
                library, plan_graph(graph, math), inputs, record or record_launches
            )
            loaded_graphs += [loaded_graph]
        yield loaded_graphs
    finally:
        for loaded_graph in loaded_graphs:
            loaded_graph.recorded.close()
            loaded_graph.executor.close()


def _load(
    library: CudaLibrary,
    plan: GpuPlan,
    inputs: Mapping[str, Array],
    record: Record,
) -> Whole:
    executor = Executor(plan, library)
    try:
        executor.write_inputs(inputs)
        executor.start()  # once before it is recorded: nothing may be loaded then
        library.synchronize()
        return Whole(executor, record(library.gpu, executor.start))
    except BaseException:
        executor.close()
        raise


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
) -> list[float]:
    """Run graphs, each as one CUDA graph; the caches hold what the run before left in them.

    Args:
        graphs: with data for their weights.
        seed: of the order in which graphs are loaded, and of that in each round.

    Returns:
        Per graph, how many times as fast as the first it is: the median over the rounds.

    Raises:
        InputError: there is no kernel for a node, memory does not hold all graphs, or one launches no
            kernel.
    """
    rng = np.random.default_rng(seed)
    stopwatch = WholeStopwatch(timer)
    order = rng.permutation(len(graphs)).tolist()
    with loaded(library, [graphs[number] for number in order], inputs, math) as wholes:
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
