"""Graphs of a backend's kernels as they are written: by the operators that it makes these kernels of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from relational_tensat.base.errors import ModelError
from relational_tensat.rules.backends.fused_kernel import FusedKernel, FusedPart
from relational_tensat.tensor import AttrValue, Graph, Node, build_graph
from relational_tensat.tensor.operators import get_operator

#: A sum that onnxruntime leaves apart from the norm behind it.
_SUM = "ort_sum"

#: A node as it is at each size.
_Nodes: TypeAlias = tuple[Node, ...]

#: The key of nodes that compute the same: operator, operands, attributes at each size.
_Application: TypeAlias = tuple[str, tuple[str, ...], tuple[tuple[tuple[str, AttrValue], ...], ...]]


def expand_to_onnx(graph: Graph, original: Graph) -> Graph:
    """Return a graph with the operators that its kernels are; itself where it has none of a backend.

    Args:
        original: the graph that it was made of: values that it computes, too, keep their names.
    """
    return expand_alike([graph], [original])[0]


def expand_alike(graphs: Sequence[Graph], originals: Sequence[Graph]) -> list[Graph]:
    """Return a graph that is known at several sizes with the operators that its kernels are, at each.

    All have the same nodes: two that compute the same at some sizes only stay two, and what the original
    computes at some sizes only has a name of its own.

    Args:
        graphs: the same nodes, with other attributes and types.
        originals: the graph that it was made of, at the same sizes.

    Raises:
        ModelError: at another size a kernel is made of other operators.
    """
    if not any(_is_replaced(node) for node in graphs[0].nodes):
        return list(graphs)
    return with_shared_sums(_Expansion(graphs, originals).written())


def with_shared_sums(graphs: Sequence[Graph]) -> list[Graph]:
    """Return a graph, known at several sizes, without sums for a norm alone that others add up, too.

    onnxruntime makes its slow kernel of a norm and an Add that nothing else reads. So such a sum is another
    operator. Where an Add of the same values has other readers, it is no better than that.
    """
    first = graphs[0]
    adds = {frozenset(node.inputs): node for node in first.nodes if node.op == "add"}
    shared = {
        node.outputs[0]: adds[key].outputs[0]
        for node in first.nodes
        if node.op == _SUM and (key := frozenset(node.inputs)) in adds
        if node.outputs[0] not in first.outputs
    }
    return [_with_values(graph, shared) for graph in graphs] if shared else list(graphs)


def _with_values(graph: Graph, shared: Mapping[str, str]) -> Graph:
    """Return a graph that reads values in place of others, each where the first of both was computed."""
    makers = {node.outputs[0]: node for node in graph.nodes}
    nodes: dict[tuple[str, ...], Node] = {}
    for each in graph.nodes:
        node = makers[shared.get(each.outputs[0], each.outputs[0])]
        inputs = tuple(shared.get(name, name) for name in node.inputs)
        nodes.setdefault(node.outputs, replace(node, inputs=inputs))
    return build_graph(
        graph.name,
        graph.inputs,
        graph.weights,
        list(nodes.values()),
        graph.outputs,
        graph.metadata,
        origin=graph.origin,
    )


def _is_replaced(node: Node) -> bool:
    operator = get_operator(node.op)
    return isinstance(operator, FusedKernel) and not operator.is_written


class _Expansion:
    def __init__(self, graphs: Sequence[Graph], originals: Sequence[Graph]) -> None:
        self._graphs = graphs
        self._graph = graph = graphs[0]
        self._original = original = originals[0]
        self._taken = {*graph.types, *original.types}
        self._defined = set(graph.types)
        alike: Iterable[_Nodes] = zip(*(there.nodes for there in originals), strict=True)
        self._known = {_application(nodes): nodes[0].outputs[0] for nodes in alike}
        #: Names of the graph's values, where they differ from the values' own.
        self._names = self._names_of_same()
        #: The values computed so far.
        self._computed: dict[_Application, str] = {}
        #: The nodes written so far, each as it is at all sizes.
        self._nodes: list[_Nodes] = []

    def written(self) -> list[Graph]:
        for nodes in zip(*(graph.nodes for graph in self._graphs), strict=True):
            self._write(nodes)
        return [
            build_graph(
                graph.name,
                graph.inputs,
                graph.weights,
                nodes,
                graph.outputs,
                graph.metadata,
                origin=graph.origin,
            )
            for graph, nodes in zip(self._graphs, zip(*self._nodes, strict=True), strict=True)
        ]

    def _names_of_same(self) -> dict[str, str]:
        """Return the name of each value that is one with others, which kernels only bring elsewhere.

        It is one that is given, or that the graph returns or the original computes, if that is among them.
        """
        graph, original = self._graph, self._original
        groups: dict[str, list[str]] = {}
        group_of: dict[str, str] = {}
        for node in graph.nodes:
            if self._computes_nothing(node):
                first = group_of.get(node.inputs[0], node.inputs[0])
                group_of[node.outputs[0]] = first
                groups.setdefault(first, [first]).append(node.outputs[0])
        preferred = (graph.inputs, graph.weights, graph.outputs, original.types)
        names = {}
        for first, group in groups.items():
            known = [name for names in preferred for name in group if name in names]
            names.update(dict.fromkeys(group, [*known, first][0]))
        return names

    def _name_of(self, name: str) -> str:
        """Return a value's current name: the value it was one with may have been renamed."""
        given = self._names.get(name, name)
        return self._names.get(given, given)

    def _computes_nothing(self, node: Node) -> bool:
        operator = get_operator(node.op)
        kinds = tuple(self._graph.types[name] for name in node.inputs)
        return isinstance(operator, FusedKernel) and not operator.parts(kinds, node.attrs)

    def _write(self, nodes: _Nodes) -> None:
        """Write the nodes that one is written as, but for those that are there already."""
        node = nodes[0]
        if self._computes_nothing(node):
            return
        values = [self._name_of(name) for name in node.inputs]
        outputs = tuple(self._name_of(name) for name in node.outputs)
        if not _is_replaced(node):
            self._write_last(
                tuple(replace(there, inputs=tuple(values), outputs=outputs) for there in nodes)
            )
            return
        *parts, last = self._parts(nodes)
        for part in parts:
            operands = tuple(values[n] for n in part[0].operands)
            made = tuple(Node(there.op, operands, (), there.attrs) for there in part)
            key = _application(made)
            if key not in self._computed:
                self._computed[key] = self._known_name(key) or self._new_name(key, outputs[0])
                self._nodes.append(_named(made, self._computed[key]))
            values.append(self._computed[key])
        operands = tuple(values[n] for n in last[0].operands)
        self._write_last(
            tuple(Node(there.op, operands, outputs, there.attrs, node.name) for there in last)
        )

    def _parts(self, nodes: _Nodes) -> list[tuple[FusedPart, ...]]:
        """Return the operators that a kernel is made of, each as it is at all sizes.

        Raises:
            ModelError: they are others at another size.
        """
        parts = []
        for graph, node in zip(self._graphs, nodes, strict=True):
            operator = get_operator(node.op)
            assert isinstance(operator, FusedKernel)
            kinds = tuple(graph.types[name] for name in node.inputs)
            parts.append(operator.typed_parts(kinds, node.attrs)[0])
        if len({tuple((part.op, part.operands) for part in there) for there in parts}) > 1:
            raise ModelError(
                f"{self._graph.name}: {nodes[0].op} -> {nodes[0].outputs[0]!r} is made of other "
                "operators at another size"
            )
        return list(zip(*parts, strict=True))

    def _write_last(self, nodes: _Nodes) -> None:
        """Write what computes a value of the graph, under the original's name for it if that is free."""
        if len(nodes[0].outputs) == 1:
            (name,) = nodes[0].outputs
            key = _application(nodes)
            if name not in self._graph.outputs and key in self._computed:
                self._names[name] = self._computed[key]
                return
            known = None if name in self._original.types else self._known_name(key)
            if known is not None:
                self._names[name] = known
                nodes = _named(nodes, known)
            self._computed[key] = nodes[0].outputs[0]
        self._nodes.append(nodes)

    def _known_name(self, application: _Application) -> str | None:
        """Return the original's name for a value, unless it is another's."""
        name = self._known.get(application)
        if name is None or name in self._defined:
            return None
        self._defined.add(name)
        return name

    def _new_name(self, application: _Application, base: str) -> str:
        number, name = 0, f"{base}/{application[0]}"
        while name in self._taken:
            number += 1
            name = f"{base}/{application[0]}_{number}"
        self._taken.add(name)
        return name


def _application(nodes: _Nodes) -> _Application:
    node = nodes[0]
    return node.op, node.inputs, tuple(tuple(there.attrs.items()) for there in nodes)


def _named(nodes: _Nodes, output: str) -> _Nodes:
    return tuple(replace(node, outputs=(output,)) for node in nodes)
