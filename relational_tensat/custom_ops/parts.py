"""Kernels for parts of a graph, each timed in onnxruntime beside what that makes of the part itself.

Both are sessions of one call, with all of onnxruntime's own optimizations: one with the kernel's library,
and one without, where the function is inlined. So a kernel is held against the kernels that onnxruntime
has for the part, not against single operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import cast

from relational_tensat.base.errors import MissingDependencyError, RelationalTensatError
from relational_tensat.base.folders import temporary_folder
from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostSource
from relational_tensat.cost.cpu.graph_times import repeated
from relational_tensat.cost.cpu.quiet import clock_of
from relational_tensat.cost.cpu.session import prepare_model, refusals
from relational_tensat.custom_ops.calls import ops_of_file
from relational_tensat.custom_ops.function_check import compared_library, drawn, functions_of
from relational_tensat.custom_ops.overrides import BLOCK, checked_override
from relational_tensat.formats import save_model
from relational_tensat.mugraph.fusion.candidates import (
    KernelCandidate,
    chain_candidates,
    named_by_order,
    pattern_hash,
    region_candidates,
)
from relational_tensat.mugraph.fusion.chains import Chain, dims_of_value, program_of
from relational_tensat.mugraph.fusion.kernel_builder import KernelBuilder, kernel_rule
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
from relational_tensat.mugraph.fusion.savings import SavingsModel
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.kernel_finder import KernelSearcher, SearchEffort
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.rules.model import Apply, Literal
from relational_tensat.tensor import Graph, Node, TensorType, build_graph
from relational_tensat.tensor.operators import get_operator

#: Samples of both, in turn.
_ROUNDS = 11
#: Programs of kernels that the processor runs are as large as this.
_MOST_STEPS = 24
#: These alone may be faster than onnxruntime's.
_FUNCTIONS = frozenset({"gelu", "erf", "exp", "sigmoid", "tanh"})


@dataclass(frozen=True, slots=True, eq=False)
class TimedPart:
    """Equal parts of a graph, and their kernel.

    Attributes:
        places: where in the graph.
        nodes: the node of the kernel in each.
        kernel: what computes them.
        kernel_us, plain_us: what one takes with the kernel, and without; a session's own time is in both.
    """

    places: tuple[KernelCandidate, ...]
    nodes: tuple[Node, ...]
    kernel: OwnKernel
    kernel_us: float
    plain_us: float


@dataclass(frozen=True, slots=True)
class SessionSetting:
    """How a file is run.

    Attributes:
        threads: of a session.
        opset: the version of its operator set: functions of an older one say a norm by ten operators.
    """

    threads: int
    opset: int


@dataclass(frozen=True, slots=True)
class PartRow:
    """What became of equal parts: how long they take, or why there is no kernel.

    Attributes:
        operators: of the program.
        places: how many there are.
    """

    operators: tuple[str, ...]
    places: int
    kernel_us: float | None = None
    plain_us: float | None = None
    reason: str = ""


def timed_parts(
    graph: Graph,
    costs: CostSource,
    setting: SessionSetting,
    watch: Watch,
    rows: list[PartRow],
) -> Iterator[TimedPart]:
    """Yield kernels for parts of a graph, those of the most elements first, until a watch ends it.

    Args:
        graph: with weights of one number where it has numbers.
        costs: what builders of kernels ask for.
        setting: as the file is run.
        watch: ends it.
        rows: what became of each is added here.

    Raises:
        MissingDependencyError: there is no C compiler.
    """
    builder = builder_of(costs)
    parts: dict[str, list[KernelCandidate]] = {}
    for candidate in _candidates(graph):
        parts.setdefault(pattern_hash(candidate), []).append(candidate)
    for places in sorted(parts.values(), key=_elements, reverse=True):
        steps = tuple(step.op for step in places[0].program.operators)
        row = PartRow(steps, len(places))
        if watch.is_over:
            rows.append(replace(row, reason="the time was over before its turn"))
            continue
        try:
            kernel = builder.make(places[0], SearchEffort(1, 0))
            nodes = tuple(node_of(place, kernel.key) for place in places)
            kernel_us, plain_us = _timed(places[0], nodes[0], kernel, setting)
        except MissingDependencyError:
            raise
        except RelationalTensatError as error:
            rows.append(replace(row, reason=str(error)))
            continue
        rows.append(replace(row, kernel_us=kernel_us, plain_us=plain_us))
        yield TimedPart(tuple(places), nodes, kernel, kernel_us, plain_us)


def builder_of(costs: CostSource) -> KernelBuilder:
    """Return what makes kernels for a processor; nothing is searched without products."""
    searcher = KernelSearcher(SearchOptions(), Watch(), None)
    return KernelBuilder(SavingsModel(costs), searcher, is_for_one=True)


def override_kernel(name: str, costs: CostSource) -> MuGraph:
    """Return the kernel that replaces an operator of onnxruntime, for a block of elements.

    Raises:
        RelationalTensatError: there is none.
    """
    kind = TensorType("float32", (BLOCK,))
    operator = get_operator(name.lower())
    node = Node(operator.name, ("x",), ("y",), operator.canonical((kind,), {}))
    graph = build_graph(name, {"x": kind}, {}, [node], ["y"])
    builder = builder_of(costs)
    return checked_override(name, builder.make(_alone(node, graph), SearchEffort(1, 0)).graph)


def _candidates(graph: Graph) -> Iterator[KernelCandidate]:
    """Yield chains, functions alone, and regions without products, of float32: what C says."""
    yield from chain_candidates(graph)
    for node in graph.nodes:
        kind = graph.types[node.outputs[0]]
        if node.op in _FUNCTIONS and isinstance(kind, TensorType) and kind.dtype == "float32":
            yield _alone(node, graph)
    for candidate in region_candidates(graph, _MOST_STEPS):
        if not candidate.has_products and candidate.dtype == "float32" and not candidate.is_cast:
            yield candidate


def _alone(node: Node, graph: Graph) -> KernelCandidate:
    chain = Chain((node,), node.inputs, node.outputs)
    order = variables(dims_of_value(graph, node.outputs[0]))
    program = named_by_order(program_of(chain, graph))
    return KernelCandidate(
        chain.nodes, chain.outputs, chain.inputs, program, (order,), "float32", graph
    )


def _elements(places: Sequence[KernelCandidate]) -> int:
    """Return how many elements the nodes of equal parts give, all together."""
    graph = places[0].graph
    kinds = (graph.types[name] for node in places[0].nodes for name in node.outputs)
    return len(places) * sum(kind.size for kind in kinds if isinstance(kind, TensorType))


def node_of(place: KernelCandidate, key: str) -> Node:
    """Return a kernel's node in the place of a part."""
    target = cast(Apply, cast(Apply, kernel_rule(place, key, "part").targets[0]).children[0])
    attrs = {name: cast(Literal, value).value for name, value in target.attrs}
    return Node("fused", place.inputs, place.outputs, attrs)


def _timed(
    place: KernelCandidate, node: Node, kernel: OwnKernel, setting: SessionSetting
) -> tuple[float, float]:
    """Return the microseconds of a call with its kernel, and without.

    Raises:
        RelationalTensatError: there is no C of it, or it computes something else.
    """
    inputs = {name: cast(TensorType, place.graph.types[name]) for name in place.inputs}
    call = build_graph("call", inputs, {}, [node], place.outputs)
    with temporary_folder() as folder:
        file = folder / "call.onnx"
        save_model(call, file, setting.opset)
        ops = ops_of_file(file, call, {kernel.key: kernel.graph})
        if not ops:
            raise RelationalTensatError("no C of it")
        library = compared_library(ops, functions_of(file))
        feeds = dict(zip(inputs, next(drawn(ops[0], ops[0].uses[0])).values(), strict=True))
        clock = clock_of(setting.threads)
        try:
            runs = [
                repeated(prepare_model(file, feeds, "all", setting.threads, own), clock)
                for own in ([library], [])
            ]
        except refusals() as error:
            raise RelationalTensatError(f"onnxruntime refuses it: {error}") from error
    with_kernel, without = runs[0], runs[1].as_often_as(runs[0])
    samples = [(clock(with_kernel.run), clock(without.run)) for _ in range(_ROUNDS)]
    kernel_us, plain_us = (median(times) for times in zip(*samples, strict=True))
    return kernel_us / with_kernel.times, plain_us / without.times
