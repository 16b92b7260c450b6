"""Names of values: fresh ones, those that a subgraph takes from outside, and renaming."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import onnx

#: Attributes in which an operator names values that are not among its inputs: the values that Gradient
#: derives, and those that it derives by.
_NAMING = {"Gradient": ("xs", "zs", "y")}


class FreshNames:
    """Gives names that are not in use; each only once."""

    def __init__(self, names: Collection[str]) -> None:
        self._used = set(names)
        self._next: dict[str, int] = {}

    def new(self, base: str) -> str:
        """Return ``base``, or ``base_1``, ``base_2``, … when it is in use."""
        name = base
        while name in self._used or not name:
            self._next[base] = self._next.get(base, 0) + 1
            name = f"{base}_{self._next[base]}"
        self._used.add(name)
        return name

    def take(self, name: str) -> None:
        """Give this name to nobody from now on."""
        self._used.add(name)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs among a node's attributes (bodies of If, Loop, Scan)."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(nodes: Collection[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield the nodes and those of their subgraphs."""
    for node in nodes:
        yield node
        for graph in subgraphs(node):
            yield from all_nodes(graph.node)


def defined_names(graph: onnx.GraphProto) -> set[str]:
    """Return the names that a graph defines itself, without its subgraphs."""
    names = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    names |= {tensor.values.name for tensor in graph.sparse_initializer}
    names |= {name for node in graph.node for name in node.output}
    return names - {""}


def all_names(graph: onnx.GraphProto) -> set[str]:
    """Return the names that a graph and its subgraphs define."""
    names = defined_names(graph)
    for node in graph.node:
        for inner in subgraphs(node):
            names |= all_names(inner)
    return names


def names_values(node: onnx.NodeProto) -> bool:
    """Whether a node has attributes that name values."""
    return node.op_type in _NAMING


def _naming_attributes(node: onnx.NodeProto) -> Iterator[onnx.AttributeProto]:
    naming = _NAMING.get(node.op_type, ())
    return (attribute for attribute in node.attribute if attribute.name in naming)


def captured_names(node: onnx.NodeProto) -> tuple[str, ...]:
    """Return the outer values that a node's subgraphs use, in order of first use.

    Those that its attributes name come first.
    """
    if not node.attribute:  # most have none, and are asked often
        return ()
    names: dict[str, None] = {}
    for attribute in _naming_attributes(node):
        names |= {name.decode(): None for name in (attribute.s, *attribute.strings) if name}
    for graph in subgraphs(node):
        names.update(dict.fromkeys(captured_by(graph)))
    return tuple(names)


def captured_by(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Return the outer values that a graph uses, in order of first use."""
    own = defined_names(graph)
    names: list[str] = []
    for node in graph.node:
        names += [*node.input, *captured_names(node)]
    names += [value.name for value in graph.output]
    return tuple(dict.fromkeys(name for name in names if name and name not in own))


def rename_node(
    node: onnx.NodeProto, names: Mapping[str, str], reserved: Collection[str], fresh: FreshNames
) -> None:
    """Rename the values that a node takes and gives, also inside its subgraphs, in place.

    Args:
        names: old to new; others stay.
        reserved: names that values defined inside subgraphs must not have; those that have one
            get a fresh name.
    """
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for attribute in _naming_attributes(node):
        values = [name.decode() for name in attribute.strings]
        attribute.strings[:] = [names.get(name, name).encode() for name in values]
        if attribute.s:
            name = attribute.s.decode()
            attribute.s = names.get(name, name).encode()
    for graph in subgraphs(node):
        _rename_graph(graph, names, reserved, fresh)


def _rename_graph(
    graph: onnx.GraphProto, names: Mapping[str, str], reserved: Collection[str], fresh: FreshNames
) -> None:
    scope = dict(names)
    for name in sorted(defined_names(graph)):
        scope[name] = fresh.new(name) if name in reserved else name
    for value in (*graph.input, *graph.output, *graph.value_info):
        value.name = scope.get(value.name, value.name)
    for tensor in graph.initializer:
        tensor.name = scope.get(tensor.name, tensor.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = scope.get(sparse.values.name, sparse.values.name)
    for node in graph.node:
        rename_node(node, scope, reserved, fresh)
