"""One model of ``python -m bench cpu``: original and optimized graph in onnxruntime, interleaved."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from relational_tensat.api import optimize
from relational_tensat.cost.cpu.quiet import Taken, is_quiet, take, thread_us
from relational_tensat.cost.cpu.reference import processor_watch
from relational_tensat.cost.cpu.sampling import percentiles_us
from relational_tensat.cost.cpu.session import OPTIMIZATIONS, prepare
from relational_tensat.fold import fold_weights
from relational_tensat.graph import Array, Graph, Node, TensorType, build_graph
from relational_tensat.load import load_model
from relational_tensat.options import Options
from relational_tensat.verify.reseed import reseed
from relational_tensat.verify.shrinking import RandomWeights, draw_inputs

#: A sample takes at least so long; smaller graphs are run several times for one.
_SAMPLE_US = 2_000.0
_WARM_UP_RUNS = 3
#: However slow a model is, so many rounds are measured.
_FEWEST_ROUNDS = 11
#: Fewer rounds that count, the others being disturbed, say nothing.
_ENOUGH_ROUNDS = 5
#: Samples of calling a session.
_CALLS = 30


@dataclass(frozen=True, slots=True)
class Timing:
    """Original and optimized graph in one mode of onnxruntime.

    Attributes:
        before_us, after_us: thread CPU time of one run, 10th percentile over the rounds.
        speedup: median over the rounds of original / optimized, both of the same round.
        speedup_p10, speedup_p90: its spread.
    """

    before_us: float
    after_us: float
    speedup: float
    speedup_p10: float
    speedup_p90: float
    rounds: int

    @property
    def is_loss(self) -> bool:
        """Whether the optimized graph is slower beyond the noise: in nine rounds of ten, of enough."""
        return self.speedup_p90 < 1.0 and self.rounds >= _ENOUGH_ROUNDS


@dataclass(frozen=True, slots=True)
class CpuRun:
    """What was measured on one model; as JSON, the runs of a saved result.

    Attributes:
        modelled_before_us, modelled_after_us: sums of single operators' times.
        call_us: thread CPU time of a session with next to nothing in it, optimizations off.
        timings: by onnxruntime's graph optimizations, ``off`` and ``all``.
        costs: how many configurations were measured, cached, recorded, estimated.
        seconds: wall, of optimizing; ``measure`` is the part that measuring took.
        rules_used: per rule, how many e-nodes of the optimized graph it made.
    """

    model: str
    modelled_before_us: float
    modelled_after_us: float
    call_us: float
    timings: Mapping[str, Timing]
    costs: Mapping[str, int]
    seconds: Mapping[str, float]
    e_nodes: int
    optimal: bool
    rules_used: Mapping[str, int]

    @property
    def modelled_speedup(self) -> float:
        """How many times faster the optimized graph is by the sums."""
        return self.modelled_before_us / self.modelled_after_us

    @property
    def additivity(self) -> float:
        """The sum of the original's single operators over the whole, optimizations off.

        Calling a session takes its time whatever is in it: that is no operator's, and taken off.
        """
        return self.modelled_before_us / (self.timings["off"].before_us - self.call_us)


def measure_model(name: str, path: Path, options: Options, rounds: int, seconds: float) -> CpuRun:
    """Optimize a model for this machine's processor; time both graphs.

    The weights are drawn anew: files that ship have constant ones, which onnxruntime would make from a
    number at each run. What depends on weights only is folded in both graphs.

    Args:
        rounds: samples of each graph in each mode.
        seconds: wall seconds after which nobody waits for undisturbed moments, and no further round
            begins once there are 11.

    Raises:
        InputError: the file cannot be used.
        VerificationError: the optimized graph computes something else.
    """
    model = load_model(path)
    original = reseed(model, RandomWeights(model, options.seed))
    result = optimize(original, options)
    graphs = (fold_weights(original), result.graph)
    feeds = unmasked(draw_inputs(original, options.seed, 0, {}))
    return CpuRun(
        model=name,
        modelled_before_us=result.cost_before_us,
        modelled_after_us=result.cost_after_us,
        call_us=call_us(),
        timings={
            mode: time_both(graphs, feeds, mode, rounds, seconds / len(OPTIMIZATIONS))
            for mode in OPTIMIZATIONS
        },
        costs={
            what: getattr(result.costs, what)
            for what in ("measured", "cached", "recorded", "estimated")
        },
        seconds=dict(result.seconds),
        e_nodes=result.e_nodes,
        optimal=result.optimal,
        rules_used=dict(sorted(result.rules_used.items(), key=lambda used: (-used[1], used[0]))),
    )


def unmasked(feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Return inputs whose truth values are all false: masks that mask nothing.

    The exponentials of masked scores are denormal numbers, with which processors take far longer: softmax
    of encoder_block's scores 23 µs instead of 6 where half of them are masked. That is a property of
    the data, which no sum over operators knows.
    """
    return {
        name: np.zeros_like(value) if value.dtype == np.bool_ else value
        for name, value in feeds.items()
    }


def call_us() -> float:
    """Return the thread CPU time of calling a session that does next to nothing."""
    number = TensorType("float32", (1,))
    graph = build_graph("call", {"x": number}, {}, [Node("relu", ("x",), ("y",))], ["y"])
    run, times = _repeated(prepare(graph, {"x": np.ones(number.shape, np.float32)}))
    watch = processor_watch()
    taken = [take(run, _nothing, watch) for _ in range(_CALLS)]
    return float(percentiles_us(taken)[0]) / times


def time_both(
    graphs: tuple[Graph, Graph],
    feeds: Mapping[str, Array],
    optimizations: str,
    rounds: int,
    seconds: float,
) -> Timing:
    """Return how long two graphs take in one mode of onnxruntime: A B A B."""
    watch = processor_watch()
    runs = [_repeated(prepare(graph, feeds, optimizations)) for graph in graphs]
    samples: tuple[list[Taken], list[Taken]] = ([], [])
    give_up = time.perf_counter() + seconds
    for number in range(rounds):
        if number >= _FEWEST_ROUNDS and time.perf_counter() > give_up:
            break
        for (run, times), taken in zip(runs, samples, strict=True):
            is_quiet(watch, give_up)
            one = take(run, _nothing, watch)
            taken.append(replace(one, time_us=one.time_us / times))
    return timing(*samples)


def timing(before: Sequence[Taken], after: Sequence[Taken]) -> Timing:
    """Return what samples of both graphs, one of each a round, say.

    A round in which the processor became more or less disturbed during a sample does not count, unless
    that is so in all.
    """
    pairs = list(zip(before, after, strict=True))
    steady = [pair for pair in pairs if all(each.is_steady for each in pair)] or pairs
    ratios = [one.corrected_us / other.corrected_us for one, other in steady]
    p10, median, p90 = np.percentile(ratios, (10, 50, 90)).tolist()
    return Timing(
        before_us=float(percentiles_us(before)[0]),
        after_us=float(percentiles_us(after)[0]),
        speedup=median,
        speedup_p10=p10,
        speedup_p90=p90,
        rounds=len(ratios),
    )


def _repeated(run: Callable[[], None]) -> tuple[Callable[[], None], int]:
    """Return a function that runs often enough for a sample, and how often that is."""
    for _ in range(_WARM_UP_RUNS):
        run()
    times = max(1, round(_SAMPLE_US / max(thread_us(run), 1.0)))

    def several() -> None:
        for _ in range(times):
            run()

    return several, times


def _nothing() -> None:
    """Leave the caches as they are: the graph before has used them."""


def cpu_options(cache: Path | None, extract_time_limit_s: float) -> Options:
    """Return the settings of a run: measured costs, everything else as it ships."""
    return replace(
        Options(), cost="cpu", cost_cache=cache, extract_time_limit_s=extract_time_limit_s
    )
