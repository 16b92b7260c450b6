"""The uses of a graph's values by operators.

``share_equal_weights`` makes equal weights one: two layers' computations with them may be the same.
``inference_nodes`` leaves out nodes that depend on weights only, which are computed before inference.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from relational_tensat.tensor.graph import Graph, Node, Weight, build_graph
from relational_tensat.tensor.operators import Use, get_operator
from relational_tensat.tensor.types import DTYPE_BYTES, Array, TensorType, ValueType, tensors_of

#: So many elements are compared before all are: most weights of one shape differ in any of them.
_SAMPLE = 16


def share_equal_weights(graph: Graph) -> Graph:
    """Return the graph with one weight in place of those of one type and equal elements.

    The first name stays. Elements are compared bit by bit. Weights without data are left alone. A
    graph without equal weights is returned as it is.
    """
    first_names = _first_names(graph.weights.items())
    first_names |= {name: name for name in graph.outputs}
    if all(name == first_name for name, first_name in first_names.items()):
        return graph
    nodes = [
        replace(node, inputs=tuple(first_names.get(name, name) for name in node.inputs))
        for node in graph.nodes
    ]
    weights = {
        name: weight
        for name, weight in graph.weights.items()
        if first_names.get(name, name) == name
    }
    return build_graph(
        graph.name,
        graph.inputs,
        weights,
        nodes,
        graph.outputs,
        graph.metadata,
        origin=graph.origin,
    )


def distinct_nodes(graph: Graph) -> int:
    """Return how many nodes differ in their operator, their attributes or their operands."""
    first: dict[tuple[str, str, tuple[str, ...]], tuple[str, ...]] = {}
    first_names: dict[str, str] = {}
    for node in graph.nodes:
        inputs = tuple(first_names.get(name, name) for name in node.inputs)
        key = node.op, repr(sorted(node.attrs.items())), inputs
        same = first.setdefault(key, node.outputs)
        first_names.update(zip(node.outputs, same, strict=True))
    return len(first)


def _first_names(weights: Iterable[tuple[str, Weight]]) -> dict[str, str]:
    """Return, per weight, the first of those that equal it."""
    alike: dict[tuple[TensorType, bytes], list[tuple[str, Array]]] = defaultdict(list)
    for name, weight in weights:
        if weight.data is not None:
            array = np.asarray(weight.data)
            alike[weight.type, _sample(array)].append((name, array))
    first_names: dict[str, str] = {}
    for members in alike.values():
        if len(members) > 1:
            names: dict[bytes, str] = {}
            for name, array in members:
                first_names[name] = names.setdefault(array_digest(array), name)
    return first_names


def _sample(array: Array) -> bytes:
    """Return some elements, spread over the whole."""
    places = np.linspace(0, max(array.size - 1, 0), min(_SAMPLE, array.size), dtype=np.int64)
    return repr([array.flat[place] for place in places]).encode()


def array_digest(array: Array) -> bytes:
    """Return a hash of all elements; of a view that repeats one element, of that."""
    single = not any(array.strides) and array.size > 0
    content = array.reshape(-1)[:1] if single and array.ndim else array
    if content.dtype.hasobject:
        return repr(content.tolist()).encode()
    digest = hashlib.sha256(b"one" if single else b"all")
    digest.update(np.ascontiguousarray(content).data)
    return digest.digest()


class Uses:
    """The uses of a value, and the nodes that use it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._consumers: dict[str, list[tuple[Use, Node]]] = defaultdict(list)
        for node in graph.nodes:
            operator = get_operator(node.op)
            for operand, name in enumerate(node.inputs):
                self._consumers[name].append((operator.use_of(operand), node))

    def of(self, name: str) -> Iterator[tuple[Use, Node]]:
        """Yield the uses of a value, also behind operators that only move its elements."""
        pending, visited = [name], {name}
        while pending:
            for use, node in self._consumers[pending.pop()]:
                if use not in (Use.MOVED, Use.JOINED):
                    yield use, node
                    continue
                outputs = [output for output in node.outputs if output not in visited]
                pending += outputs
                visited.update(outputs)

    def index_range(self, name: str) -> int:
        """Return the count of values that integers may have: the size of all indexed axes, or 2."""
        lengths = []
        for use, node in self.of(name):
            if use is Use.INDEX:
                types = tuple(self._graph.types[operand] for operand in node.inputs)
                lengths.append(get_operator(node.op).index_range(types, node.attrs))
        return min(lengths, default=2)


def weight_only_values(graph: Graph) -> frozenset[str]:
    """Return the names of the values that no graph input reaches: known before inference.

    Operators that draw random numbers are not (opaque ones with a key), nor those that unpack what was
    stored to be small, nor is what follows them.
    """
    constant = set(graph.weights)
    for node in graph.nodes:
        operator = get_operator(node.op)
        may_be_constant = bool(node.inputs) or operator.is_constant
        if not may_be_constant or not operator.is_foldable(node.attrs):
            continue
        if all(name in constant for name in node.inputs):
            constant.update(node.outputs)
    return frozenset(constant)


def inference_nodes(graph: Graph) -> Iterator[tuple[Node, tuple[ValueType, ...], ValueType]]:
    """Yield the nodes that run at inference, with the types of their operands and result."""
    constant = weight_only_values(graph)
    for node in graph.nodes:
        if node.outputs[0] not in constant:
            inputs = tuple(graph.types[name] for name in node.inputs)
            yield node, inputs, _result_type(graph, node.outputs)


def graph_flops(graph: Graph) -> int:
    """Return how many floating-point operations a graph takes."""
    total = 0
    for node in graph.nodes:
        kinds = tuple(graph.types[name] for name in node.inputs)
        parts = tuple(part for name in node.outputs for part in tensors_of(graph.types[name]))
        if all(part.dtype in DTYPE_BYTES for part in parts):
            output = parts[0] if len(parts) == 1 else parts
            total += get_operator(node.op).flops(kinds, output, node.attrs)
    return total


def weight_bytes(graph: Graph) -> int:
    """Return the bytes of all weights together."""
    return sum(weight.type.nbytes for weight in graph.weights.values())


def count_inference_ops(graph: Graph) -> dict[str, int]:
    """Return how often each operator runs at inference, by name, most frequent first.

    Those that depend on weights only do not: they are folded before, or unpacked where they are used.
    """
    constant = weight_only_values(graph)
    counts = Counter(node.op for node in graph.nodes if _is_counted(node, constant))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _is_counted(node: Node, constant: frozenset[str]) -> bool:
    """Whether a node is one of inference; nodes that unpack constants belong to their readers."""
    if node.outputs[0] in constant:
        return False
    unpacks = get_operator(node.op).unpacks(node.attrs)
    return not (unpacks and constant.issuperset(node.inputs))


def _result_type(graph: Graph, outputs: tuple[str, ...]) -> ValueType:
    """Return an operator's result type: of several outputs, the tuple of their types."""
    if len(outputs) == 1:
        return graph.types[outputs[0]]
    types = tuple(graph.types[name] for name in outputs)
    return tuple(part for kind in types for part in (kind if isinstance(kind, tuple) else (kind,)))
