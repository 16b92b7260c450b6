"""Graphs of a target's kernels as they are written: by the operators that it makes these kernels of."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from relational_tensat.rules.targets.fused_kernel import FusedKernel
from relational_tensat.tensor import AttrValue, Graph, Node, build_graph
from relational_tensat.tensor.operators import get_operator

#: What says that two nodes compute the same: operator, operands, attributes.
_Application: TypeAlias = tuple[str, tuple[str, ...], tuple[tuple[str, AttrValue], ...]]


def as_written(graph: Graph, original: Graph) -> Graph:
    """Return a graph with the operators that its kernels are; itself where it has none of a target.

    Args:
        original: the graph that it was made of: what it computes there, too, keeps its name.
    """
    if not any(_is_replaced(node) for node in graph.nodes):
        return graph
    return _Writer(graph, original).written()


def _is_replaced(node: Node) -> bool:
    operator = get_operator(node.op)
    return isinstance(operator, FusedKernel) and not operator.is_written


class _Writer:
    def __init__(self, graph: Graph, original: Graph) -> None:
        self._graph = graph
        self._original = original
        self._taken = {*graph.types, *original.types}
        self._defined = set(graph.types)
        self._known = {_application(node): node.outputs[0] for node in original.nodes}
        #: What values of the graph are called, where that is not their name there.
        self._names = self._names_of_same()
        #: What is computed so far.
        self._computed: dict[_Application, str] = {}
        self._nodes: list[Node] = []

    def written(self) -> Graph:
        graph = self._graph
        for node in graph.nodes:
            self._write(node)
        return build_graph(
            graph.name,
            graph.inputs,
            graph.weights,
            self._nodes,
            graph.outputs,
            graph.metadata,
            origin=graph.origin,
        )

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
        """Return what a value is called by now: what it was one with may have another name since."""
        given = self._names.get(name, name)
        return self._names.get(given, given)

    def _computes_nothing(self, node: Node) -> bool:
        operator = get_operator(node.op)
        kinds = tuple(self._graph.types[name] for name in node.inputs)
        return isinstance(operator, FusedKernel) and not operator.parts(kinds, node.attrs)

    def _write(self, node: Node) -> None:
        """Write the nodes that one is written as, but for those that are there already."""
        operator = get_operator(node.op)
        if self._computes_nothing(node):
            return
        values = [self._name_of(name) for name in node.inputs]
        outputs = tuple(self._name_of(name) for name in node.outputs)
        if not _is_replaced(node) or not isinstance(operator, FusedKernel):
            self._write_last(replace(node, inputs=tuple(values), outputs=outputs))
            return
        kinds = tuple(self._graph.types[name] for name in node.inputs)
        *parts, last = operator.typed_parts(kinds, node.attrs)[0]
        for part in parts:
            made = Node(part.op, tuple(values[n] for n in part.operands), (), part.attrs)
            key = _application(made)
            if key not in self._computed:
                self._computed[key] = self._known_name(key) or self._new_name(key, outputs[0])
                self._nodes.append(replace(made, outputs=(self._computed[key],)))
            values.append(self._computed[key])
        operands = tuple(values[n] for n in last.operands)
        self._write_last(Node(last.op, operands, outputs, last.attrs, node.name))

    def _write_last(self, node: Node) -> None:
        """Write what computes a value of the graph, under the original's name for it if that is free."""
        if len(node.outputs) == 1:
            (name,) = node.outputs
            key = _application(node)
            if name not in self._graph.outputs and key in self._computed:
                self._names[name] = self._computed[key]
                return
            known = None if name in self._original.types else self._known_name(key)
            if known is not None:
                self._names[name] = known
                node = replace(node, outputs=(known,))
            self._computed[key] = node.outputs[0]
        self._nodes.append(node)

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


def _application(node: Node) -> _Application:
    return node.op, node.inputs, tuple(node.attrs.items())
