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
        self._taken = {*graph.types, *original.types}
        self._defined = set(graph.types)
        self._known = {_application(node): node for node in original.nodes}
        #: Values between the operators of a kernel that are there already.
        self._computed: dict[_Application, str] = {
            _application(node): node.outputs[0] for node in graph.nodes
        }

    def written(self) -> Graph:
        graph = self._graph
        nodes = [part for node in graph.nodes for part in self._parts(node)]
        return build_graph(
            graph.name,
            graph.inputs,
            graph.weights,
            nodes,
            graph.outputs,
            graph.metadata,
            origin=graph.origin,
        )

    def _parts(self, node: Node) -> list[Node]:
        """Return the nodes that a node is written as, but for those that are there already."""
        operator = get_operator(node.op)
        if not _is_replaced(node) or not isinstance(operator, FusedKernel):
            return [node]
        kinds = tuple(self._graph.types[name] for name in node.inputs)
        parts, _ = operator.typed_parts(kinds, node.attrs)
        values = list(node.inputs)
        nodes = []
        for part in parts:
            inputs = tuple(values[number] for number in part.operands)
            made = Node(part.op, inputs, (), part.attrs)
            if part is parts[-1]:
                nodes.append(replace(made, outputs=node.outputs, name=node.name))
                break
            key = _application(made)
            if key not in self._computed:
                self._computed[key] = self._name(key, node.outputs[0])
                nodes.append(replace(made, outputs=(self._computed[key],)))
            values.append(self._computed[key])
        return nodes

    def _name(self, application: _Application, base: str) -> str:
        """Return the original's name for a value, or a new one."""
        known = self._known.get(application)
        if known is not None and known.outputs[0] not in self._defined:
            self._defined.add(known.outputs[0])
            return known.outputs[0]
        number, name = 0, f"{base}/{application[0]}"
        while name in self._taken:
            number += 1
            name = f"{base}/{application[0]}_{number}"
        self._taken.add(name)
        return name


def _application(node: Node) -> _Application:
    return node.op, node.inputs, tuple(node.attrs.items())
