"""What of a graph runs at inference: nodes that depend on weights only are computed before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from relational_tensat.tensor.graph import Graph, Node
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import ValueType


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
    """Whether a node is one of inference; what unpacks constants belongs to what reads them."""
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
