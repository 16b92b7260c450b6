"""One model of ``python -m bench cpu``: original and optimized graph in onnxruntime, interleaved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.cpu.additivity import Additivity, additivity, empty_session
from relational_tensat.cost.cpu.graph_times import repeated, time_in_turn
from relational_tensat.cost.cpu.onnxruntime_device import OnnxRuntimeDevice
from relational_tensat.cost.cpu.probe import leave_caches
from relational_tensat.cost.cpu.quiet import processor_watch, take
from relational_tensat.cost.cpu.samples import percentiles_us
from relational_tensat.cost.cpu.session import OPTIMIZATIONS, prepare
from relational_tensat.cost.device import WholeTiming
from relational_tensat.formats import load_model
from relational_tensat.run.end_to_end import unmasked
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.uses import weight_bytes
from relational_tensat.verify.fold import fold_weights
from relational_tensat.verify.inputs import RandomWeights, draw_inputs, reseed

#: Samples of calling a session.
_CALLS = 30
#: What comparing single operators with the whole may take, as a share of the time for both graphs.
_ADDITIVITY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class CpuRun:
    """What was measured on one model; as JSON, the runs of a saved result.

    Attributes:
        modelled_before_us, modelled_after_us: sums of single operators' costs, as a run has them.
        call_us: thread CPU time of a session with next to nothing in it, optimizations off.
        additivity: the original's single operators against the whole, timed together.
        timings: by onnxruntime's graph optimizations, ``off`` and ``all``.
        costs: how many configurations were measured, cached, recorded, estimated.
        seconds: wall, of optimizing; ``measure`` is the part that measuring took.
        rules_used: per rule, how many e-nodes of the optimized graph it made.
    """

    model: str
    modelled_before_us: float
    modelled_after_us: float
    call_us: float
    additivity: Additivity
    timings: Mapping[str, WholeTiming]
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
    def modelled_over_whole(self) -> float:
        """The original's modelled cost over what the whole takes, optimizations off.

        Calling a session takes its time whatever is in it: that is no operator's, and taken off.
        """
        return self.modelled_before_us / (self.timings["off"].before_us - self.call_us)


def measure_model(name: str, path: Path, options: Options, rounds: int, seconds: float) -> CpuRun:
    """Optimize a model for this machine's processor; time both graphs.

    The weights are drawn again: files that ship have constant ones, which onnxruntime would make from a
    number at each run. What depends on weights only is folded in both graphs.

    Args:
        rounds: samples of each graph in each mode.
        seconds: wall seconds of both modes together; see ``time_both``.

    Raises:
        InputError: the file cannot be used.
        VerificationError: the optimized graph computes something else.
    """
    model = load_model(path)
    original = reseed(model, RandomWeights(model, options.process.seed))
    result = optimize(original, options)
    graphs = (fold_weights(original), result.graph)
    device = OnnxRuntimeDevice().adapted(weight_bytes(original))  # as the run has it
    feeds = unmasked(draw_inputs(original, options.process.seed, 0, {}))
    return CpuRun(
        model=name,
        modelled_before_us=result.cost_before_us,
        modelled_after_us=result.cost_after_us,
        call_us=call_us(),
        additivity=additivity(graphs[0], feeds, device, seconds * _ADDITIVITY_SHARE),
        timings={
            mode: time_both(graphs, feeds, mode, rounds, seconds / len(OPTIMIZATIONS))
            for mode in OPTIMIZATIONS
        },
        costs={
            origin: getattr(result.costs, origin)
            for origin in ("measured", "cached", "recorded", "estimated")
        },
        seconds=dict(result.seconds),
        e_nodes=result.e_nodes,
        optimal=result.optimal,
        rules_used=dict(sorted(result.rules_used.items(), key=lambda item: (-item[1], item[0]))),
    )


def call_us() -> float:
    """Return the thread CPU time of calling a session that does next to nothing."""
    session = empty_session()
    watch = processor_watch()
    samples = [take(session.run, leave_caches, watch) for _ in range(_CALLS)]
    return float(percentiles_us(samples)[0][0]) / session.times


def cpu_options(cache: Path | None, extract_time_limit_s: float) -> Options:
    """Return the settings of a run: measured costs, everything else as it ships.

    What is cheaper by the sums is wanted whether it is faster whole or not: that is what is measured.
    """
    return Options.of(
        cost="cpu",
        cost_cache=cache,
        extract_time_limit_s=extract_time_limit_s,
        end_to_end=False,
    )


def time_both(
    graphs: tuple[Graph, Graph],
    feeds: Mapping[str, Array],
    optimizations: str,
    rounds: int,
    seconds: float,
) -> WholeTiming:
    """Return how long two graphs take in one mode of onnxruntime.

    Args:
        rounds: that count are enough.
        seconds: as ``time_in_turn`` has them.

    Raises:
        InputError: a graph has no ONNX form.
        Exception: one of ``session.refusals``.
    """
    before, after = (repeated(prepare(graph, feeds, optimizations)) for graph in graphs)
    return time_in_turn((before, after), rounds, seconds)
