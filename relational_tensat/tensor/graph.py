"""The tensor graph: named values, computed by nodes in topological order.

A ``Graph`` is a plain value. ``build_graph`` is the one way to make it: it checks names and order,
infers every type through the operators' descriptions, and says in one line what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from relational_tensat.base.errors import ModelError, RelationalTensatError, nearest
from relational_tensat.base.shown_text import html_table
from relational_tensat.tensor.types import (
    Array,
    Attrs,
    AttrValue,
    TensorType,
    ValueType,
    tensors_of,
)

_MOST_ELEMENTS = 2**63 - 1
#: In a graph's metadata: how long a run took, modelled, of the graph that it was first optimized from. Its
#: costs are of caches as that one leaves them; so a run on a result finds the costs that it was chosen by.
RUN_US_KEY = "relational_tensat.run_us"


@dataclass(frozen=True, slots=True)
class Node:
    """One application of an operator: values in, values out, by name.

    In a checked graph the attributes are complete and canonical.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Attrs = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Weight:
    """A tensor known before inference; ``data`` is None if the model gives only its type.

    ``data`` may be a broadcast view (all strides 0) of one number, so large constants stay small.
    """

    type: TensorType
    data: Array | None = None

    def __repr__(self) -> str:
        return f"Weight({self.type}{'' if self.data is None else ', with data'})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graph:
    """A checked tensor graph.

    Attributes:
        name: the model's name.
        inputs: graph inputs by name, in order.
        weights: weights by name.
        nodes: in topological order.
        outputs: names of the values that the graph returns, in order.
        types: the type of every value (inputs, weights and node outputs).
        metadata: the file's further content (e.g. ONNX opset versions), kept for writing.
        origin: the file's own spelling of the graph, for the format's writer; or None. A caller that gives
            weights other data leaves it out.
    """

    name: str
    inputs: Mapping[str, TensorType]
    weights: Mapping[str, Weight]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    types: Mapping[str, ValueType]
    metadata: Mapping[str, str] = field(default_factory=dict)
    origin: object | None = None

    def output_types(self) -> tuple[TensorType, ...]:
        """Return the tensors that the graph returns; a tuple value (noop) counts as its parts."""
        return tuple(part for name in self.outputs for part in tensors_of(self.types[name]))

    def count_ops(self) -> dict[str, int]:
        """Return how often each operator occurs, by name, most frequent first."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            counts[node.op] = counts.get(node.op, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def __repr__(self) -> str:
        return (
            f"Graph({self.name}: {len(self.inputs)} inputs, {len(self.weights)} weights, "
            f"{len(self.nodes)} nodes, {len(self.outputs)} outputs)"
        )

    def _repr_html_(self) -> str:
        rows = [(op, count) for op, count in self.count_ops().items()]
        return html_table(("operator", "nodes"), rows, repr(self))


def build_graph(
    name: str,
    inputs: Mapping[str, TensorType],
    weights: Mapping[str, Weight],
    nodes: Iterable[Node],
    outputs: Iterable[str],
    metadata: Mapping[str, str] | None = None,
    *,
    origin: object | None = None,
    where: str = "graph",
) -> Graph:
    """Check the parts of a graph, sort its nodes topologically, infer all types.

    Args:
        origin: see ``Graph``.
        where: the file's name, for error messages.

    Raises:
        ModelError: a name is used twice or never defined, the graph is cyclic, an operator is
            unknown, or its operands do not fit; the message names the place.
    """
    types: dict[str, ValueType] = {}
    for key, kind in [*inputs.items(), *((k, w.type) for k, w in weights.items())]:
        if key in types:
            raise ModelError(f"{where}: the value {key!r} is defined twice")
        _check_size(f"{where}: {key!r}", kind)
        types[key] = kind
    ordered = []
    for node in _sort_nodes(list(nodes), types, where):
        attrs, kinds = _check_node(node, types, where)
        ordered.append(Node(node.op, node.inputs, node.outputs, attrs, node.name))
        types.update(zip(node.outputs, kinds, strict=True))
    names = tuple(outputs)
    if not names:
        raise ModelError(f"{where}: the graph has no outputs")
    for output in names:
        if output not in types:
            hint = nearest(output, types)
            raise ModelError(f"{where}: output {output!r} is not computed by any node{hint}")
    return Graph(
        name,
        dict(inputs),
        dict(weights),
        tuple(ordered),
        names,
        types,
        dict(metadata or {}),
        origin,
    )


def describe(node: Node) -> str:
    """Return how messages name a node: its own name, or its operator and first output."""
    return f"node {node.name!r} ({node.op})" if node.name else f"{node.op} -> {node.outputs[0]!r}"


def _check_node(
    node: Node, types: Mapping[str, ValueType], where: str
) -> tuple[dict[str, AttrValue], tuple[ValueType, ...]]:
    """Return a node's canonical attributes and the types of its outputs."""
    # late on purpose: operators describe graphs' nodes
    from relational_tensat.tensor.operators import get_operator, typed

    try:
        operator = get_operator(node.op)
        operands = tuple([types[name] for name in node.inputs])
        attrs, result = typed(operator, operands, node.attrs)
    except RelationalTensatError as error:
        raise ModelError(f"{where}: {describe(node)}: {error}") from error
    _check_size(f"{where}: {describe(node)}", result)
    parts: tuple[ValueType, ...] = tensors_of(result) if operator.multi_output else (result,)
    if len(parts) != len(node.outputs):
        raise ModelError(
            f"{where}: {describe(node)}: has {len(node.outputs)} outputs, expected {len(parts)}"
        )
    return dict(attrs), parts


def _check_size(label: str, kind: ValueType) -> None:
    """Refuse a tensor of more elements than 64 bits count."""
    for part in tensors_of(kind):
        if part.size > _MOST_ELEMENTS:
            raise ModelError(f"{label} is {part}, expected at most {_MOST_ELEMENTS} elements")


def _sort_nodes(nodes: list[Node], types: Mapping[str, ValueType], where: str) -> tuple[Node, ...]:
    """Sort nodes so that values are defined before use, keeping the given order where it can be."""
    producer: dict[str, int] = {}
    for index, node in enumerate(nodes):
        if not node.outputs:
            raise ModelError(f"{where}: a {node.op} node has no outputs")
        for output in node.outputs:
            if output in producer or output in types:
                raise ModelError(f"{where}: the value {output!r} is defined twice")
            producer[output] = index
    for node in nodes:
        for name in node.inputs:
            if name not in producer and name not in types:
                hint = nearest(name, [*producer, *types])
                raise ModelError(f"{where}: {describe(node)}: input {name!r} is not defined{hint}")
    ordered: list[Node] = []
    state = [0] * len(nodes)  # 0 not seen, 1 on the stack, 2 done
    for start in range(len(nodes)):
        stack = [start]
        while stack:
            index = stack[-1]
            if state[index] == 2:
                stack.pop()
                continue
            state[index] = 1
            unsorted = [
                producer[name]
                for name in nodes[index].inputs
                if name in producer and state[producer[name]] != 2
            ]
            if not unsorted:
                state[index] = 2
                ordered.append(nodes[index])
                stack.pop()
                continue
            for operand in unsorted:
                if state[operand] == 1:
                    raise ModelError(
                        f"{where}: {describe(nodes[operand])} depends on itself (cyclic graph)"
                    )
            stack.extend(reversed(unsorted))
    return tuple(ordered)
