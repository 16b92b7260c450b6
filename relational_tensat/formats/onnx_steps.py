"""The nodes to write of a graph, in order: in the file's own where its nodes are kept.

Constants are written out, so that no node computes them at inference, unless that takes many more bytes:
a transposed copy of a weight that is needed as it is, too, or a large tensor of equal elements. These are
written as the nodes of the file that compute them. A copy of a constant is that constant by its own name.

Kernels that do several of a file's nodes at once are taken apart into these again. A rule that makes an
activation or a bias part of a product changes a kernel's work, and nothing in the file: ONNX does not have
these products. Neither is a number that rules can see another constant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from relational_tensat.formats.onnx_keep import Kept
from relational_tensat.formats.onnx_opaque import input_names
from relational_tensat.formats.onnx_origin import Origin, Unit
from relational_tensat.tensor import AttrValue, Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.traits import NO_ACTIVATION

#: So many bytes are always written out: a node that computes them takes about as many.
SMALL_BYTES = 128
#: A node less in a file is worth so many more bytes.
_NODE_BYTES = 4096
#: The bytes of a constant in a file beside its elements and its name: type, dimensions, lengths.
_HEADER_BYTES = 16


@dataclass(frozen=True, slots=True)
class _Cone:
    """The part of the file that computes a constant: large constants, by nodes."""

    sources: set[str]
    units: dict[str, Unit]


@dataclass(frozen=True, slots=True)
class ConstantForms:
    """Decides how constants are written.

    Attributes:
        constants: all that are known, by name.
        written_out: those that the file has written out.
        units: the file's ways to compute others, by their names.
    """

    constants: Mapping[str, Weight]
    written_out: Collection[str]
    units: Mapping[str, Unit]

    def computed(self, needed: Collection[str]) -> dict[str, Unit]:
        """Return the constants that stay computed, each with what computes it in the file.

        Values between these and what the file has written out are among them.

        Args:
            needed: the values that are needed, if all constants are written out.
        """
        cones = {name: self._cone(name) for name in needed if self._is_large(name)}
        known_cones = {name: cone for name, cone in cones.items() if cone is not None}
        computed: dict[str, Unit] = {}
        for group in _groups({name: cone.sources for name, cone in known_cones.items()}):
            group_cones = [known_cones[name] for name in group]
            sources = set[str]().union(*(cone.sources for cone in group_cones))
            units = {value: unit for cone in group_cones for value, unit in cone.units.items()}
            saved = sum(self._bytes(name) for name in sources if name not in needed)
            saved += sum(_worth_bytes(unit.node) for unit in dict.fromkeys(units.values()))
            if sum(map(self._bytes, group)) > saved:
                computed |= units
        return computed

    def _bytes(self, name: str) -> int:
        return self.constants[name].type.nbytes + len(name) + _HEADER_BYTES

    def _is_large(self, name: str) -> bool:
        weight = self.constants.get(name)
        return weight is not None and weight.data is not None and weight.type.nbytes > SMALL_BYTES

    def _cone(self, name: str) -> _Cone | None:
        """Return what a constant is computed from; None if it is written out, or not from constants."""
        sources: set[str] = set()
        units: dict[str, Unit] = {}
        stack = [name]
        while stack:
            value = stack.pop()
            if value in self.written_out:
                sources.add(value)
            elif value in self.constants and not self._is_large(value):
                continue
            elif value in self.units:
                if value not in units:
                    units[value] = self.units[value]
                    stack += input_names(units[value].node)
            else:
                return None
        return _Cone(sources, units) if units else None


def _worth_bytes(node: onnx.NodeProto) -> int:
    """Return how many bytes more a file may have if it does without a node: a copy costs nothing.

    A tensor of equal elements has no other short spelling.
    """
    if node.op_type == "Identity":
        return 0
    own_bytes: int = node.ByteSize()
    return own_bytes if node.op_type == "ConstantOfShape" else own_bytes + _NODE_BYTES


def _groups(sources: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the constants in groups that have no source in common."""
    by_source: defaultdict[str, list[str]] = defaultdict(list)
    for name, own in sources.items():
        for source in own:
            by_source[source].append(name)
    grouped: set[str] = set()
    groups: list[list[str]] = []
    for start in sources:
        group: list[str] = []
        stack = [start]
        while stack:
            name = stack.pop()
            if name not in grouped:
                grouped.add(name)
                group.append(name)
                stack += [other for source in sources[name] for other in by_source[source]]
        if group:
            groups.append(group)
    return groups


def unfuse(graph: Graph, origin: Origin) -> Graph:
    """Return the graph with the nodes and constants of the file where kernels are these together."""
    return _Unfusing(graph, origin).unfused()


class _Unfusing:
    def __init__(self, graph: Graph, origin: Origin) -> None:
        self._graph = graph
        self._origin = origin
        self._names = {*graph.types, *origin.graph.types, *origin.known}
        self._defined = set(graph.types)
        self._numbers = _numbers(origin.graph.weights)
        #: The file's weights that are used in place of numbers.
        self._weights: dict[str, Weight] = {}
        self._renamed: dict[str, str] = {}

    def unfused(self) -> Graph:
        graph = self._graph
        nodes = [part for node in graph.nodes for part in self._parts(node)]
        if len(nodes) == len(graph.nodes) and not self._weights:
            return graph
        nodes = [
            replace(node, inputs=tuple(self._renamed.get(name, name) for name in node.inputs))
            for node in nodes
        ]
        weights = {**graph.weights, **self._weights}
        return build_graph(
            graph.name,
            graph.inputs,
            weights,
            nodes,
            graph.outputs,
            graph.metadata,
            origin=graph.origin,
        )

    def _parts(self, node: Node) -> Iterator[Node]:
        """Yield the nodes that a node is in the file; itself unless they are there."""
        if node.op == "fill" and self._is_weight(node):
            return
        act = str(node.attrs.get("act", NO_ACTIVATION))
        original = self._origin.producers.get(node.outputs[0])
        if act == NO_ACTIVATION:
            yield from self._product_and_bias(node)
            return
        attrs: dict[str, AttrValue] = {**node.attrs, "act": NO_ACTIVATION}
        name = ""
        if original is not None and original.op == act:
            name = original.inputs[0]
        name = self._name(name, node, attrs)
        yield from self._product_and_bias(replace(node, outputs=(name,), attrs=attrs, name=""))
        yield Node(act, (name,), node.outputs, {}, node.name)

    def _product_and_bias(self, node: Node) -> Iterator[Node]:
        """Yield a node, or the product and the sum that it is in the file."""
        kinds = tuple(self._graph.types[name] for name in node.inputs)
        total = self._origin.producers.get(node.outputs[0])
        is_apart = get_operator(node.op).adds_bias_apart(kinds)
        if not is_apart or total is None or total.op != "add":
            yield node
            return
        product, bias = node.inputs[:2], node.inputs[2]
        for index, operand in enumerate(total.inputs):
            original = self._origin.producers.get(operand)
            if original is not None and original.op == node.op and len(original.inputs) == 2:
                name = self._name(operand, node, node.attrs)
                yield Node(node.op, product, (name,), node.attrs)
                yield replace(
                    total, inputs=(name, bias) if index == 0 else (bias, name), name=node.name
                )
                return
        yield node

    def _name(self, name: str, node: Node, attrs: Mapping[str, AttrValue]) -> str:
        """Return the file's name of a value between the parts, if it may be that one, else another."""
        original = self._origin.producers.get(name)
        is_like = original is not None and (original.op, original.attrs) == (node.op, attrs)
        is_sum = original is not None and original.op == "add"
        if name not in self._defined and (is_like or is_sum):
            self._defined.add(name)
            return name
        base = number = f"{node.outputs[0]}/{node.op}"
        count = 0
        while number in self._names:
            count += 1
            number = f"{base}_{count}"
        self._names.add(number)
        return number

    def _is_weight(self, node: Node) -> bool:
        """Whether a constant is a weight of the file; that is then used in its place."""
        kind, value = self._graph.types[node.outputs[0]], repr(node.attrs["value"])
        name = self._numbers.get((kind, value)) if isinstance(kind, TensorType) else None
        if name is None or node.outputs[0] in self._graph.outputs or self._is_other(name):
            return False
        self._renamed[node.outputs[0]] = name
        if name not in self._graph.weights:
            self._weights[name] = self._origin.graph.weights[name]
        return True

    def _is_other(self, name: str) -> bool:
        """Whether the graph has that name for something else."""
        return name in self._graph.types and name not in self._graph.weights


def _numbers(weights: Mapping[str, Weight]) -> dict[tuple[TensorType, str], str]:
    """Return the weights of a single number by their type and what Python prints for the number.

    That tells -0.0 from 0.0.
    """
    names: dict[tuple[TensorType, str], str] = {}
    for name, weight in weights.items():
        if weight.data is not None and weight.type.size == 1 and weight.type.dtype != "bool":
            number = np.asarray(weight.data).reshape(-1)[0].item()
            if float(number) == number:
                names.setdefault((weight.type, repr(float(number))), name)
    return names


@dataclass(frozen=True, slots=True, eq=False)
class ReadStep:
    """Something that is written.

    Attributes:
        inputs, outputs: the values that it takes and gives.
        kept: the file's own node; or else
        node: a node of the graph.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kept: Kept | None = None
    node: Node | None = None

    @property
    def is_copy(self) -> bool:
        """Whether the file's node gives its operand as it is."""
        return self.kept is not None and self.kept.unit.node.op_type == "Identity"


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The nodes and constants that are written.

    Attributes:
        steps: nodes in order.
        constants: those that are written out, by name.
    """

    steps: Sequence[ReadStep]
    constants: Mapping[str, Weight]


class CyclicError(Exception):
    """A call of a function gives what one of its own operands needs."""


def plan_steps(
    graph: Graph, kept: Mapping[str, Kept], origin: Origin | None, units: Mapping[str, Unit]
) -> ReadPlan:
    """Return what the outputs of a graph need.

    Args:
        kept: the file's nodes for values, by these values.
        units: the file's ways to compute constants, by their names.

    Raises:
        CyclicError: the kept nodes cannot be put into an order.
    """
    steps: dict[str, ReadStep] = {}
    as_kept = {own: _kept_step(own) for own in kept.values()}  # one of several nodes, too
    for node in graph.nodes:
        own = next((kept[name] for name in node.outputs if name in kept), None)
        step = as_kept[own] if own else ReadStep(node.inputs, node.outputs, node=node)
        steps.update((name, step) for name in node.outputs)
    constants = {**(origin.known if origin else {}), **graph.weights}
    given = steps.keys() | graph.inputs.keys()
    constants = {name: weight for name, weight in constants.items() if name not in given}
    # Of a graph without a file, nodes that lead to no output are written, too: they may be there to be
    # timed.
    roots = graph.outputs if origin else (*graph.outputs, *steps)
    if origin is not None:
        needed = _needed(roots, steps)
        forms = ConstantForms(constants, origin.tensors.keys(), units)
        computed = forms.computed(needed)
        for unit in dict.fromkeys(computed.values()):
            # A split of a constant gives several: it is written once, and the small ones as constants.
            names = [name for name in unit.node.output if computed.get(name) is unit]
            step = _kept_step(_as_it_is(unit, names))
            for name in names:
                steps.setdefault(name, step)
    needed = _needed(roots, steps)
    ordered = tuple(_ordered(needed, steps))
    written = {name: constants[name] for name in constants if name in needed and name not in steps}
    return ReadPlan(ordered, written)


def _kept_step(kept: Kept) -> ReadStep:
    return ReadStep(tuple(kept.inputs.values()), tuple(kept.outputs.values()), kept)


def _as_it_is(unit: Unit, outputs: Sequence[str]) -> Kept:
    """Return a node with these of its outputs."""
    return Kept(
        unit, {name: name for name in input_names(unit.node)}, {name: name for name in outputs}
    )


def _needed(outputs: Sequence[str], steps: Mapping[str, ReadStep]) -> set[str]:
    needed: set[str] = set()
    stack = list(outputs)
    while stack:
        value = stack.pop()
        if value not in needed:
            needed.add(value)
            if value in steps:
                stack += steps[value].inputs
    return needed


def _ordered(needed: Collection[str], steps: Mapping[str, ReadStep]) -> Iterator[ReadStep]:
    """Yield steps after what they take: the file's in its order, new ones where they are needed."""
    needed_steps = list(dict.fromkeys(step for name, step in steps.items() if name in needed))
    own = [step for step in needed_steps if step.kept is not None]
    own.sort(key=lambda step: step.kept.unit.place if step.kept is not None else 0)
    done: set[ReadStep] = set()
    for start in [*own, *needed_steps]:
        stack, begun = [start], set[ReadStep]()
        while stack:
            step = stack[-1]
            waiting = _operands(step, steps, done)
            if step in done or not waiting:
                stack.pop()
                if step not in done:
                    done.add(step)
                    yield step
                continue
            if step in begun:
                raise CyclicError
            begun.add(step)
            stack.extend(reversed(waiting))


def _operands(
    step: ReadStep, steps: Mapping[str, ReadStep], done: Collection[ReadStep]
) -> list[ReadStep]:
    operands = (steps[name] for name in step.inputs if name in steps)
    return [operand for operand in dict.fromkeys(operands) if operand not in done]
