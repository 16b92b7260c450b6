"""Parts of a model that a kernel is sought for: chains, and regions within regions.

Of a region, each smaller one that it was grown from is a candidate, too: which of them become kernels is
for extraction to choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.mugraph.fusion.chain_program import dims_of_value, program_of
from relational_tensat.mugraph.fusion.chains import MOST_INPUTS, chains
from relational_tensat.mugraph.graph.arithmetic import COMPARISONS
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.regions.finding_regions import Cone, Cones
from relational_tensat.mugraph.regions.groups import groups
from relational_tensat.mugraph.regions.lowering_regions import LoweredRegion, lowered
from relational_tensat.mugraph.regions.region_row import Leave, RegionRow, no_matter
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.types import numpy_dtype

#: Element types that kernels are made for.
_DTYPES = ("float32", "float16")
#: What blocks compute in, whatever their operands' elements are: casts to it and back need no rounding.
_BLOCK_DTYPE = "float32"
#: What compares, or chooses by a condition.
_CONDITIONAL = frozenset(
    {"keep", "nan_to_zero", "div_or_zero", *COMPARISONS, *(f"is_{name}" for name in COMPARISONS)}
)
#: No rule matches these: what they are is known to other runtimes only.
_UNMATCHED = ("opaque",)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Nodes of a model that a kernel may stand for.

    Attributes:
        nodes: in topological order; none of them needs what others compute of their results.
        outputs: their results that others read.
        inputs: the model's values that they read, as the program's inputs are; not single numbers.
        program: what they compute; its tensors are named by their order, so that equal ones are equal.
        orders: of each output the index variables, as the model has them in memory.
        dtype: of all tensors.
        graph: the model, or a graph that computes the same.
        source: which of them, as ``RegionRow`` names it.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    program: MuGraph
    orders: tuple[tuple[str, ...], ...]
    dtype: str
    graph: Graph
    source: str = "model"

    @property
    def is_cast(self) -> bool:
        """Whether some results within have wider elements than operands and results have."""
        return _made_dtypes(self.nodes, self.graph) != {self.dtype}

    @property
    def has_conditions(self) -> bool:
        """Whether it reads bools, or compares, or chooses: chains do not."""
        return bool(self.program.conditions) or any(
            step.op in _CONDITIONAL for step in self.program.operators
        )

    @property
    def has_products(self) -> bool:
        """Whether one of the operators is a product of matrices."""
        return any(step.op == "matmul" for step in self.program.operators)


def chain_candidates(
    graph: Graph, leave: Leave = no_matter, source: str = "model"
) -> Iterator[Candidate]:
    """Yield the chains of a model; leave those that are no program."""
    for chain in chains(graph):
        try:
            program = program_of(chain, graph)
        except InputError as error:
            operators = tuple(node.op for node in chain.nodes)
            leave(RegionRow(source, chain.outputs, operators, "left out", str(error)))
            continue
        orders = tuple(variables(dims_of_value(graph, output)) for output in chain.outputs)
        named = named_by_order(program)
        yield Candidate(
            chain.nodes, chain.outputs, chain.inputs, named, orders, "float32", graph, source
        )


def region_candidates(
    graph: Graph, most_steps: int, leave: Leave = no_matter, source: str = "model"
) -> list[Candidate]:
    """Return the regions of a model that are no chains of functions, and groups of these.

    A group is of regions as they begin, at their last nodes, or as large as they become.

    Args:
        graph: the model.
        most_steps: of a program.
        leave: called for what is no region, or none that a kernel is made of, and for borders.
        source: what the graph is, for these rows.
    """
    cones = Cones(graph, without=_UNMATCHED)
    found: list[Candidate | None] = []
    parts: list[tuple[Node, ...]] = []
    for node in reversed(graph.nodes):
        grown: list[Cone] = []
        try:
            grown += cones.grown(node)
        except RelationalTensatError as error:
            leave(RegionRow(source, node.outputs, (node.op,), "left out", str(error)))
        for cone in grown[-1:]:
            for row in cones.borders(cone, source):
                leave(row)
        for cone in grown:
            steps = cone.lowered.program.operators
            why = _why_not(cone.nodes, node.outputs, cone.lowered, graph)
            if not why and len(steps) > most_steps:
                why = f"{len(steps)} operators, {most_steps} at most (--fuse-operators)"
            if why:
                leave(RegionRow(source, node.outputs, _operators(steps), "left out", why))
        found += [_of_region(c.nodes, c.nodes[-1].outputs, c.lowered, graph) for c in grown]
        parts += [cone.nodes for cone in (*grown[:1], *grown[1:][-1:])]
    for group in groups(graph, parts):
        with suppress(RelationalTensatError):  # they are no program together
            region = lowered(graph, group.nodes, group.outputs[-1], group.outputs)
            found.append(_of_region(group.nodes, group.outputs, region, graph))
    return [
        replace(c, source=source)
        for c in found
        if c is not None and 1 < len(c.program.operators) <= most_steps
    ]


def with_numbers(graph: Graph) -> Graph:
    """Return a graph of an e-graph with weights of one number, as a model has them, where ``fill`` is."""
    numbers: dict[str, Weight] = {}
    for node in graph.nodes:
        kind = graph.types[node.outputs[0]]
        if node.op == "fill" and isinstance(kind, TensorType) and kind.size == 1:
            data = np.full(kind.shape, node.attrs["value"], numpy_dtype(kind.dtype))
            numbers[node.outputs[0]] = Weight(kind, data)
    nodes = [node for node in graph.nodes if node.outputs[0] not in numbers]
    weights = {**graph.weights, **numbers}
    return build_graph(graph.name, graph.inputs, weights, nodes, graph.outputs)


def pattern_hash(candidate: Candidate) -> str:
    """Return a hash that candidates share which one rule finds: the same program, by the same nodes."""
    types = candidate.graph.types
    places = {name: place for place, name in enumerate(candidate.inputs)}
    nodes = []
    for node in candidate.nodes:
        operands = [places.get(name, str(types[name])) for name in node.inputs]
        nodes.append((node.op, operands, sorted(node.attrs.items())))
        first = len(places)
        places.update((name, first + place) for place, name in enumerate(node.outputs))
    shapes = [str(types[name]) for name in candidate.inputs]
    outputs = [places[name] for name in candidate.outputs]
    return f"{content_hash(candidate.program)} {nodes} {shapes} {outputs}"


def named_by_order(program: MuGraph) -> MuGraph:
    """Return a program whose tensors are named by their order."""
    order = [*program.inputs, *(step.outputs[0] for step in program.steps)]
    short = {name: f"t{place}" for place, name in enumerate(order)}
    steps = tuple(
        replace(s, operands=tuple(short[n] for n in s.operands), output=short[s.output])
        for s in cast(Sequence[Operation], program.steps)
    )
    inputs = {short[name]: dims for name, dims in program.inputs.items()}
    outputs = tuple(short[name] for name in program.outputs)
    conditions = frozenset(short[name] for name in program.conditions)
    return MuGraph("region", inputs, steps, outputs, conditions=conditions)


def _of_region(
    nodes: tuple[Node, ...], outputs: tuple[str, ...], region: LoweredRegion, graph: Graph
) -> Candidate | None:
    """Return a region as a candidate; None where no kernel or no rule is made of its like."""
    if _why_not(nodes, outputs, region, graph):
        return None
    program = named_by_order(region.program)
    (dtype,) = _dtypes(outputs, graph)
    return Candidate(nodes, outputs, region.inputs, program, region.orders, dtype, graph)


def _why_not(
    nodes: tuple[Node, ...], outputs: tuple[str, ...], region: LoweredRegion, graph: Graph
) -> str:
    """Return why no kernel or no rule is made of a region; empty where they are."""
    if not 0 < len(region.inputs) <= MOST_INPUTS:
        return f"{len(region.inputs)} operands, expected 1 to {MOST_INPUTS}"
    dtypes = _dtypes((*_numbers_of(region, graph), *outputs), graph)
    if len(dtypes) != 1 or not dtypes <= {*_DTYPES}:
        return f"elements of {', '.join(sorted(dtypes))}, expected {' or '.join(_DTYPES)}"
    made = _made_dtypes(nodes, graph)
    if not made <= dtypes | {_BLOCK_DTYPE}:
        return f"elements of {', '.join(sorted(made - dtypes))} within"
    factors = _dtypes(
        [name for node in nodes if node.op == "matmul" for name in node.inputs], graph
    )
    if not factors <= dtypes:  # blocks have what products read in the kernel's elements
        return f"a product of elements of {', '.join(sorted(factors - dtypes))}"
    return ""


def _numbers_of(region: LoweredRegion, graph: Graph) -> list[str]:
    """Return a region's operands but for bools, which kernels read whatever their elements are."""
    return [name for name in region.inputs if "bool" not in _dtypes([name], graph)]


def _dtypes(names: Sequence[str], graph: Graph) -> set[str]:
    kinds = {graph.types[name] for name in names}
    return {kind.dtype for kind in kinds if isinstance(kind, TensorType)}


def _made_dtypes(nodes: Sequence[Node], graph: Graph) -> set[str]:
    """Return the element types of results within; conditions are no values of a kernel."""
    return _dtypes([name for node in nodes for name in node.outputs], graph) - {"bool"}


def _operators(steps: Sequence[Operation]) -> tuple[str, ...]:
    return tuple(step.op for step in steps)
