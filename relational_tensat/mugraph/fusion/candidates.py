"""Parts of a model that a kernel is sought for, and which of them are worth a search.

A part is a chain, a region, or a smaller region that one was grown from: which of them become kernels is
for extraction to choose. Graphs that compute the same, and all kernels for their parts, are an e-graph: a
value is given by an operator of one of them, or by a kernel. Where no kernel was sought yet, it is taken to
cost the least that one could be modelled to take. If then the cheapest graph has kernels that are known
only, no other search can make it cheaper; else those that it has are sought next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

import numpy as np

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.problem import UNUSED, ExtractionProblem
from relational_tensat.mugraph.fusion.chains import MOST_INPUTS, chains, dims_of_value, program_of
from relational_tensat.mugraph.graph.arithmetic import COMPARISONS
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.regions.groups import groups
from relational_tensat.mugraph.regions.node_programs import LoweredRegion, lowered
from relational_tensat.mugraph.regions.regions import (
    OF_PROCESSORS,
    Cone,
    Cones,
    Leave,
    RegionRow,
    no_matter,
)
from relational_tensat.tensor import Attrs, Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.types import numpy_dtype


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """The model, or another graph that computes the same.

    Attributes:
        graph: the graph.
        source: its origin, as rows of ``fused_region`` name it: ``model``, ``cheapest`` or ``other``.
        classes: of the values that it computes, by their names. Values of one class are the same in all
            graphs; those without one are the graph's own.
    """

    graph: Graph
    source: str = "model"
    classes: Mapping[str, int] = field(default_factory=dict)


#: Element types that kernels are made for.
_DTYPES = ("float32", "float16")
#: The type that blocks compute in, for operands of all types: casts to it and back need no rounding.
_BLOCK_DTYPE = "float32"
#: What compares, or chooses by a condition.
_CONDITIONAL = frozenset(
    {"keep", "nan_to_zero", "div_or_zero", *COMPARISONS, *(f"is_{name}" for name in COMPARISONS)}
)
#: Operators that no rule matches: only other runtimes know their meaning.
_UNMATCHED = ("opaque",)
#: Operators that only move elements.
_MOVES = frozenset({"reshape", "transpose"})


@dataclass(frozen=True, slots=True)
class KernelCandidate:
    """Nodes of a model that a kernel may stand for.

    Attributes:
        nodes: in topological order; none of them needs what others compute of their results.
        outputs: their results that others read.
        inputs: the model's values that they read, as the program's inputs are; not single numbers.
        program: their program; its tensors are named by their order, so that equal ones are equal.
        orders: of each output the index variables, as the model has them in memory.
        dtype: of all tensors.
        graph: the model, or a graph that computes the same.
        source: which of them, as ``RegionRow`` names it.
        said: attributes that the kernel's function has in place of nodes' own, by what these give.
        within: the program's nodes alone, where the first of ``nodes`` dequantize what these read, or the
            last ones quantize what these give.
        quantized: the element types of the program's operands and results that are integers then.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    program: MuGraph
    orders: tuple[tuple[str, ...], ...]
    dtype: str
    graph: Graph
    source: str = "model"
    said: Mapping[str, Attrs] = field(default_factory=dict)
    within: KernelCandidate | None = None
    quantized: Mapping[str, str] = field(default_factory=dict)

    def is_scaled(self, node: Node) -> bool:
        """Whether a node is one of those that dequantize or quantize around ``within``."""
        return self.within is not None and all(n.outputs != node.outputs for n in self.within.nodes)

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
) -> Iterator[KernelCandidate]:
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
        yield KernelCandidate(
            chain.nodes, chain.outputs, chain.inputs, named, orders, "float32", graph, source
        )


def region_candidates(
    graph: Graph,
    most_steps: int,
    leave: Leave = no_matter,
    source: str = "model",
    without: Collection[str] = (),
    fewest_steps: int = 2,
) -> list[KernelCandidate]:
    """Return the regions of a model that are no chains of functions, and groups of these.

    A group is of regions as they begin, at their last nodes, or as large as they become.

    Args:
        graph: the model.
        most_steps: of a program.
        leave: called for what is no region, or none that a kernel is made of, and for borders.
        source: the graph's origin, for these rows.
        without: operators that no region has; where they are products, regions are as large as they get.
        fewest_steps: of a program, too.
    """
    left = {*_UNMATCHED, *(without or OF_PROCESSORS)}
    cones = Cones(graph, left, most_steps) if without else Cones(graph, left)
    found: list[KernelCandidate | None] = []
    parts: list[tuple[Node, ...]] = []
    for node in reversed(graph.nodes):
        grown: list[Cone] = []
        try:
            grown += cones.grown(node)
        except RelationalTensatError as error:
            leave(RegionRow(source, node.outputs, (node.op,), "left out", str(error)))
        for cone in grown[-1:] if leave is not no_matter else ():
            for row in cones.borders(cone, source):
                leave(row)
        for cone in grown:
            steps = cone.lowered.program.operators
            why = _why_not(cone.nodes, node.outputs, cone.lowered, graph)
            if not why and len(steps) > most_steps:
                why = f"{len(steps)} operators, {most_steps} at most (--set fuse-operators=N)"
            if why:
                leave(
                    RegionRow(
                        source, node.outputs, tuple(step.op for step in steps), "left out", why
                    )
                )
        grown = _with_moves(grown, graph)
        found += [_of_region(c.nodes, c.nodes[-1].outputs, c.lowered, graph) for c in grown]
        parts += [cone.nodes for cone in (*grown[:1], *grown[1:][-1:])]
    for group in groups(graph, parts):
        with suppress(RelationalTensatError):  # they are no program together
            region = lowered(graph, group.nodes, group.outputs[-1], group.outputs)
            found.append(_of_region(group.nodes, group.outputs, region, graph))
    return [
        replace(c, source=source)
        for c in found
        if c is not None and fewest_steps <= len(c.program.operators) <= most_steps
    ]


def _with_moves(grown: list[Cone], graph: Graph) -> list[Cone]:
    """Return regions that end in a node, those with convolutions with all that only moves elements.

    A kernel is as fast without the transposition before it or behind, and takes seconds to be compiled.
    """

    def is_settled(place: int, cone: Cone) -> bool:
        last, steps = cone.nodes[-1].outputs[0], cone.lowered.program.operators
        readers = [node for node in graph.nodes if last in node.inputs]
        is_moved = len(readers) == 1 and readers[0].op in _MOVES and last not in graph.outputs
        others = (each.lowered.program.operators for each in grown[place + 1 :])
        return not is_moved and all(len(other) > len(steps) for other in others)

    return [
        cone
        for place, cone in enumerate(grown)
        if all(node.op != "conv" for node in cone.nodes) or is_settled(place, cone)
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


def pattern_hash(candidate: KernelCandidate) -> str:
    """Return a hash that candidates share which one rule finds: the same program, by the same nodes."""
    types = candidate.graph.types
    places = {name: place for place, name in enumerate(candidate.inputs)}
    nodes = []
    for node in candidate.nodes:
        read = node.inputs[:1] if candidate.is_scaled(node) else node.inputs
        operands = [places.get(name, str(types[name])) for name in read]
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
) -> KernelCandidate | None:
    """Return a region as a candidate; None where no kernel or no rule is made of its like."""
    if _why_not(nodes, outputs, region, graph):
        return None
    program = named_by_order(region.program)
    (dtype,) = _dtypes(outputs, graph)
    return KernelCandidate(nodes, outputs, region.inputs, program, region.orders, dtype, graph)


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


#: A part's pattern, and how many kernels there are for it at most.
Key: TypeAlias = tuple[str, int]

_TIME_LIMIT_S = 5.0


@dataclass(frozen=True, slots=True)
class CheapestPlan:
    """The cheapest graph.

    Attributes:
        cost_us: of it, or no more.
        keys: of the kernels that it has.
    """

    cost_us: float
    keys: frozenset[Key]


@dataclass(frozen=True, slots=True)
class _ENode:
    klass: int
    children: tuple[int, ...]
    pattern: str = ""


class FusionPlan:
    """Graphs that compute the same, as one e-graph, and where in it parts are.

    Args:
        operator_us: the cost of a graph's operator.
    """

    def __init__(self, operator_us: Callable[[Node, Graph], float]) -> None:
        self._operator_us = operator_us
        self._numbers: dict[Hashable, int] = {}
        self._e_nodes: dict[_ENode, float] = {}
        self._outputs: tuple[int, ...] = ()
        self._versions = 0

    def add(self, version: Version, parts: Iterable[tuple[str, KernelCandidate]]) -> None:
        """Add a graph.

        Args:
            version: the graph; it gives the same values as those before.
            parts: all of it that kernels may stand for, with their patterns.
        """
        self._versions += 1
        graph = version.graph
        classes = {name: self._class_of(name, version) for n in graph.nodes for name in n.outputs}
        known = set(graph.weights)
        for node in graph.nodes:
            is_known = known.issuperset(node.inputs)  # folded, so free
            if is_known:
                known.update(node.outputs)
            cost_us = 0.0 if is_known else self._operator_us(node, graph)
            self._add(classes, node.outputs, node.inputs, cost_us)
        for pattern, part in parts:
            self._add(classes, part.outputs, part.inputs, 0.0, pattern)
        self._outputs = self._outputs or _children(classes, graph.outputs)

    def cheapest(self, costs_us: Mapping[Key, float]) -> CheapestPlan:
        """Return the cheapest graph with kernels of these costs."""
        rows: list[tuple[_ENode, Key | None, float]] = []
        for e_node, cost_us in self._e_nodes.items():
            if e_node.pattern:
                keys = [(e_node.pattern, n) for n in (1, 2)]
                rows += [(e_node, key, costs_us[key]) for key in keys if key in costs_us]
            else:
                rows.append((e_node, None, cost_us))
        root = len(self._numbers)
        rows.append((_ENode(root, self._outputs), None, 0.0))
        children = [e_node.children for e_node, _, _ in rows]
        problem = ExtractionProblem(
            np.array([cost_us for _, _, cost_us in rows]),
            np.array([e_node.klass for e_node, _, _ in rows], np.int32),
            np.cumsum([0, *map(len, children)], dtype=np.int32),
            np.array([child for each in children for child in each], np.int32),
            root + 1,
            root,
            np.full(root + 1, UNUSED, np.int32),
        )
        found = extract(problem, ExtractionOptions(time_limit_s=_TIME_LIMIT_S))
        chosen = (rows[number][1] for number in found.choice if number != UNUSED)
        return CheapestPlan(found.cost_us, frozenset(key for key in chosen if key is not None))

    def _class_of(self, name: str, version: Version) -> int:
        own: Hashable = version.classes.get(name, (self._versions, name))
        return self._numbers.setdefault(own, len(self._numbers))

    def _add(
        self,
        classes: Mapping[str, int],
        outputs: Sequence[str],
        inputs: Sequence[str],
        cost_us: float,
        pattern: str = "",
    ) -> None:
        """Add what gives values; several of them are parts of one."""
        values, children = tuple(classes[name] for name in outputs), _children(classes, inputs)
        klass, *others = values
        if others:
            klass = self._numbers.setdefault((values, children), len(self._numbers))
            for value in values:
                self._e_nodes[_ENode(value, (klass,))] = 0.0
        if klass not in children:
            e_node = _ENode(klass, children, pattern)
            self._e_nodes[e_node] = min(cost_us, self._e_nodes.get(e_node, cost_us))


def _children(classes: Mapping[str, int], names: Iterable[str]) -> tuple[int, ...]:
    return tuple(sorted({classes[name] for name in names if name in classes}))
