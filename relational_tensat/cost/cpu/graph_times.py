"""Graphs whole in onnxruntime, undisturbed: two in turn (A B A B), or all that are in a race.

Two graphs are compared by CPU time, or by wall time on several threads. A heat of a race (``cost.race``)
loads its graphs into new sessions in any order, and runs them in turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from relational_tensat.base.errors import InputError, first_line
from relational_tensat.cost.cpu.probe import leave_caches
from relational_tensat.cost.cpu.quiet import (
    Clock,
    Taken,
    clock_of,
    is_quiet,
    processor_watch,
    take,
    thread_us,
)
from relational_tensat.cost.cpu.samples import Round, percentiles_us, steady
from relational_tensat.cost.cpu.session import prepare, prepare_model, refusals
from relational_tensat.cost.device import ENOUGH_ROUNDS, Unmeasurable, WholeTiming
from relational_tensat.cost.race import heat_rounds, times_as_fast_as_first
from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.uses import weight_bytes

#: A sample of the original takes at least so long; smaller graphs are run several times for one.
_SAMPLE_US = 2_000.0
#: Runs before anything counts, and the wall seconds after which two have been enough: in the first one
#: onnxruntime learns how much memory it takes, and in the second it takes that at once.
_WARM_UP_RUNS, _WARM_UP_S = 4, 0.2
#: Samples of each graph that count.
_ROUNDS = 40
#: Graphs of which the fewest rounds would take longer are not timed by ``time_whole``.
_MOST_S = 30.0
#: Weights travel through a protobuf file of 2 GiB at most.
MOST_WEIGHT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class RepeatedGraph:
    """A graph that is run several times for one sample.

    Attributes:
        once: runs it once.
        times: how often it is run for a sample.
        wall_s: of one of these times.
        clock: the clock of its times; None for the thread's CPU time.
    """

    once: Callable[[], None]
    times: int
    wall_s: float
    clock: Clock | None = None

    def run(self) -> None:
        """Run it as often as a sample does."""
        for _ in range(self.times):
            self.once()

    def as_often_as(self, other: RepeatedGraph) -> RepeatedGraph:
        """Return the same, run as often for a sample as another graph that it is compared with.

        The first run of a sample finds the least in the caches, as others ran before, the second more. Were
        what is quick run more often, most of its runs would find more than those of what it is compared
        with (ResNet-18 on integers: 2.0 to 2.5 ms as it was, 0.45 to 0.86 optimized, from the fifth run
        to the first: 2.96 times as fast at first, 4.5 in the end, 4.0 with one run against four).
        """
        return replace(self, times=other.times)


def repeated(run: Callable[[], None], clock: Clock | None = None) -> RepeatedGraph:
    """Warm a function up; return it repeated often enough for a sample."""
    spent_s, runs = 0.0, 0
    while runs < 2 or (runs < _WARM_UP_RUNS and spent_s < _WARM_UP_S):
        start_s = time.perf_counter()
        took_us = (clock or thread_us)(run)
        wall_s = time.perf_counter() - start_s
        spent_s, runs = spent_s + wall_s, runs + 1
    return RepeatedGraph(run, max(1, round(_SAMPLE_US / max(took_us, 1.0))), wall_s, clock)


def time_whole(
    graphs: tuple[Graph, Graph],
    feeds: Mapping[str, Array],
    optimizations: str,
    seconds: float,
    threads: int = 1,
) -> WholeTiming | Unmeasurable:
    """Return how long two graphs take, or why that cannot be known.

    Args:
        seconds: as ``time_both``; graphs of which a few rounds take longer have them all the same.
    """
    errors: tuple[type[Exception], ...] = (InputError, *refusals())
    runs: list[RepeatedGraph] = []
    for graph in graphs:
        weights = weight_bytes(graph)
        if weights > MOST_WEIGHT_BYTES:
            return Unmeasurable(f"{weights:,} bytes of weights, more than {MOST_WEIGHT_BYTES:,}")
        try:
            run = prepare(graph, feeds, optimizations, threads)
            runs.append(repeated(run, clock_of(threads)))
        except errors as error:
            return Unmeasurable(f"onnxruntime cannot run {graph.name}: {first_line(error)}")
        least_s = 2 * ENOUGH_ROUNDS * runs[-1].wall_s
        if least_s > _MOST_S:
            return Unmeasurable(
                f"{ENOUGH_ROUNDS} rounds of both graphs would take {least_s:.0f} s, "
                f"more than {_MOST_S:.0f}"
            )
    return time_in_turn((runs[0], runs[1]), _ROUNDS, seconds)


def time_in_turn(
    runs: tuple[RepeatedGraph, RepeatedGraph], rounds: int, seconds: float
) -> WholeTiming:
    """Return how long two functions take: A B A B, both run as often for a sample as A.

    Args:
        rounds: that count; once there are so many, it ends.
        seconds: wall seconds after which no further round begins once there are ``ENOUGH_ROUNDS``;
            after half of them, nobody waits for undisturbed moments.
    """
    watch = processor_watch()
    first, second = runs[0], runs[1].as_often_as(runs[0])
    pairs: list[Round] = []
    start_s = time.perf_counter()

    def sample(repetition: RepeatedGraph) -> Taken:
        is_quiet(watch, start_s + seconds / 2)
        taken = take(repetition.run, leave_caches, watch, repetition.clock)
        return replace(taken, time_us=taken.time_us / repetition.times)

    while len(steady(pairs)) < rounds:
        if len(pairs) >= ENOUGH_ROUNDS and time.perf_counter() > start_s + seconds:
            break
        pairs.append((sample(first), sample(second)))
    return timing(pairs)


def timing(pairs: Sequence[Round]) -> WholeTiming:
    """Return what samples of both graphs, one of each a round, say.

    A round in which the processor became more or less disturbed during a sample does not count, unless
    too few others would be left.
    """
    steady_pairs = steady(pairs)
    valid_pairs = steady_pairs if len(steady_pairs) >= ENOUGH_ROUNDS else pairs
    before, after = percentiles_us(*zip(*valid_pairs, strict=True))
    return WholeTiming.of_rounds(
        float(before[0]),
        float(after[0]),
        [
            before_sample.corrected_us / after_sample.corrected_us
            for before_sample, after_sample in valid_pairs
        ],
    )


def run_heat(
    models: Sequence[bytes | Path],
    feeds: Mapping[str, Array],
    seed: int,
    threads: int = 1,
    libraries: Mapping[int, Sequence[Path]] | None = None,
) -> list[float]:
    """Run models by onnxruntime's defaults: all its optimizations, as users run them.

    Args:
        models: as ONNX writes them, or their files.
        seed: of the order in which sessions are made, and of that in each round.
        threads: that each operator is run by.
        libraries: of custom ops, by the places of models that run with them.

    Returns:
        Per model, how many times as fast as the first it is, by thread CPU time, of several threads by
        wall time: the median over the rounds.

    Raises:
        Exception: one of ``session.refusals``.
    """
    rng = np.random.default_rng(seed)
    clock = clock_of(threads)
    runs = {}
    for number in rng.permutation(len(models)).tolist():
        own = (libraries or {}).get(number, ())
        run = prepare_model(models[number], feeds, "all", threads, own)
        runs[number] = repeated(run, clock)
    runs = {number: each.as_often_as(runs[0]) for number, each in runs.items()}
    round_s = sum(each.wall_s * each.times for each in runs.values())
    rounds = heat_rounds(round_s)
    return times_as_fast_as_first(rng, len(models), rounds, lambda number: clock(runs[number].run))
