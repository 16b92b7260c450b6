"""Original and optimized graphs on the GPU: whether they compute the right thing, and how fast they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relational_tensat.base.errors import VerificationError
from relational_tensat.cost.cuda.graph_times import GRAPH_SETTINGS, Record, WholeStopwatch, loaded
from relational_tensat.cost.cuda.protocol import (
    Observation,
    Settings,
    observe,
)
from relational_tensat.cost.cuda.subject import TOLERANCES, norm_error
from relational_tensat.cost.device import Unmeasurable
from relational_tensat.gpu.calls import KernelLibrary
from relational_tensat.gpu.cuda.cuda_library import CudaLibrary, Timer
from relational_tensat.gpu.plan import Executor, plan_graph
from relational_tensat.tensor import Array, Graph
from relational_tensat.verify.equivalence import check_signatures
from relational_tensat.verify.fold import fold_weights
from relational_tensat.verify.inputs import LAST_STEP, RandomWeights, draw_inputs, reseed
from relational_tensat.verify.outputs import compute_outputs, output_names


def time_graphs(
    library: CudaLibrary,
    timer: Timer,
    graphs: Sequence[Graph],
    inputs: Mapping[str, Array],
    math: str,
    settings: Settings = GRAPH_SETTINGS,
    record: Record | None = None,
) -> list[Observation | Unmeasurable]:
    """Time graphs end to end, interleaved, each as one CUDA graph.

    Args:
        graphs: with data for their weights.
        record: how CUDA graphs are recorded, if not by ``record_launches``.

    Raises:
        InputError: there is no kernel for a node, or memory does not hold all graphs.
    """
    with loaded(library, graphs, inputs, math, record) as wholes:
        return observe(wholes, WholeStopwatch(timer), settings)


#: Rounding adds up along a graph: one kernel's tolerance times this.
_DEPTH = 10.0
#: Results beyond this say nothing: what they are sums of may not fit into the type.
_LARGEST_FLOAT16, _LARGEST_FLOAT32 = 1e3, 1e30


@dataclass(frozen=True, slots=True)
class OnDevice:
    """How close a graph on the device comes to the original in float64.

    Attributes:
        worst_error: ‖found - exact‖ / ‖exact‖ of the worst output.
        tolerance: what it must not exceed.
        implementations: how many calls each library ran, by its name.
    """

    worst_error: float
    tolerance: float
    implementations: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PreparedGraph:
    """Graphs that can run: the original first, then others that should compute the same.

    Attributes:
        graphs: with random data for their weights, what depends on these only folded.
        inputs: by name.
        exact: what the original computes in float64, tuples as their parts.
    """

    graphs: tuple[Graph, ...]
    inputs: Mapping[str, Array]
    exact: tuple[Array, ...]


def prepare_graphs(original: Graph, others: Sequence[Graph], seed: int = 0) -> PreparedGraph:
    """Draw weights, which all graphs share by name, and inputs; compute what should come out.

    They are drawn smaller where results leave the range of the original's element types: attention
    without softmax is cubic in its input.

    Raises:
        VerificationError: a graph returns other tensors than the original.
        InputError: an input or weight cannot be drawn.
    """
    for other in others:
        check_signatures(original, other)
    for step in range(LAST_STEP + 1):
        weights = RandomWeights(original, seed, step)
        inputs = draw_inputs(original, seed, step, {})
        first = reseed(original, weights)
        data = {name: w.data for name, w in first.weights.items() if w.data is not None}
        exact = compute_outputs(first, inputs, data)
        if _in_range(original, exact) or step == LAST_STEP:
            break
    graphs = (first, *(reseed(other, weights) for other in others))
    return PreparedGraph(tuple(fold_weights(graph) for graph in graphs), inputs, tuple(exact))


def _in_range(graph: Graph, outputs: Sequence[Array]) -> bool:
    """Whether all results fit into their element types, with a margin for their intermediate values."""
    for kind, array in zip(graph.output_types(), outputs, strict=True):
        if kind.is_float:
            most = _LARGEST_FLOAT16 if kind.dtype == "float16" else _LARGEST_FLOAT32
            if not np.abs(array).max(initial=0.0) <= most:
                return False
    return True


def verify_on_device(library: KernelLibrary, prepared: PreparedGraph, math: str) -> list[OnDevice]:
    """Run graphs on a device and hold each against the original in float64.

    Raises:
        VerificationError: one returns something else.
        InputError: there is no kernel for a node.
    """
    results = []
    for graph in prepared.graphs:
        with Executor(plan_graph(graph, math), library) as executor:
            outputs = executor.run(prepared.inputs)
            implementations = executor.implementations()
        results.append(OnDevice(*_judge(prepared, graph, outputs, math), implementations))
    return results


def _judge(
    prepared: PreparedGraph, graph: Graph, outputs: Sequence[Array], math: str
) -> tuple[float, float]:
    """Return the worst error and its tolerance.

    Raises:
        VerificationError: an output is off by more than its tolerance.
    """
    worst, limit = 0.0, 0.0
    original = prepared.graphs[0]
    names, kinds = output_names(original), original.output_types()
    for name, kind, output, exact in zip(names, kinds, outputs, prepared.exact, strict=True):
        tf32 = kind.dtype == "float32" and math == "tf32"
        tolerance = _DEPTH * TOLERANCES["tf32" if tf32 else kind.dtype] if kind.is_float else 0.0
        error = norm_error(np.asarray(output, np.float64), np.asarray(exact, np.float64))
        if not error <= tolerance:
            raise VerificationError(
                f"{graph.name} on the device: output {name!r} is off by {error:.1e} relative to "
                f"float64, more than {tolerance:.0e}"
            )
        worst, limit = max(worst, error), max(limit, tolerance)
    return worst, limit
