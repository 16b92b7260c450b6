"""From chosen e-nodes back to a tensor graph, with the names of the model that it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from relational_tensat.base.records import record
from relational_tensat.egraph.catalogue import Symbol
from relational_tensat.tensor.graph import Graph, Node, build_graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import ValueType, tensors_of


@record
class ChosenNode:
    """The e-node chosen for a class: its id, symbol, type, and child classes."""

    enode: int
    symbol: Symbol
    type: ValueType
    children: tuple[int, ...]


def build_chosen(
    original: Graph,
    choice: Mapping[int, ChosenNode],
    value_names: Iterable[Sequence[Any]],
    outputs: Sequence[Sequence[Any]],
) -> Graph:
    """Return the graph of a choice.

    Args:
        choice: by class; acyclic from the outputs.
        value_names: rows (class, name, e-node, node name) of the original values.
        outputs: rows (name, class) of what the graph returns.
    """
    return build_with_classes(original, choice, value_names, outputs)[0]


def build_with_classes(
    original: Graph,
    choice: Mapping[int, ChosenNode],
    value_names: Iterable[Sequence[Any]],
    outputs: Sequence[Sequence[Any]],
) -> tuple[Graph, dict[str, int]]:
    """Return the graph of a choice, as ``build_chosen`` does, and the class of each computed value's name.

    A result that no ``part`` stands for has none.
    """
    builder = _GraphBuilder(original, choice, value_names, outputs)
    return builder.build(), builder.classes


class _GraphBuilder:
    def __init__(
        self,
        original: Graph,
        choice: Mapping[int, ChosenNode],
        value_names: Iterable[Sequence[Any]],
        outputs: Sequence[Sequence[Any]],
    ) -> None:
        self._original = original
        self._chosen = choice
        self._outputs = [(str(name), int(class_id)) for name, class_id in outputs]
        self._names: dict[int, list[str]] = {}
        self._node_names: dict[int, str] = {}
        for class_id, name, enode, node_name in value_names:
            self._names.setdefault(int(class_id), []).append(str(name))
            self._node_names[int(enode)] = str(node_name)
        for name, class_id in reversed(self._outputs):  # an output's own name comes first
            names = self._names.get(class_id, [])
            if name in names:
                names.remove(name)
                names.insert(0, name)
        self._taken = {*original.inputs, *original.weights}
        self._taken.update(name for names in self._names.values() for name in names)
        self._nodes: list[Node] = []
        #: Names of the tensors of each class: one, or several for a tuple.
        self._tensors: dict[int, tuple[str, ...]] = {}
        self.classes: dict[str, int] = {}
        #: Part classes by (tuple class, index): they name an operator's outputs.
        self._parts = {
            (node.children[0], dict(node.symbol.attrs)["index"]): class_id
            for class_id, node in choice.items()
            if node.symbol.op == "part"
        }

    def build(self) -> Graph:
        for class_id in self._topological():
            self._emit(class_id)
        for name, class_id in self._outputs:
            self._emit_output(name, class_id)
        original = self._original
        used_names = {name for node in self._nodes for name in node.inputs}
        used_names.update(name for name, _ in self._outputs)
        # An output that was a weight may be computed now: a weight of one number is a fill.
        used_names.difference_update(name for node in self._nodes for name in node.outputs)
        weights = {name: w for name, w in original.weights.items() if name in used_names}
        return build_graph(
            original.name,
            original.inputs,
            weights,
            self._nodes,
            original.outputs,
            original.metadata,
            origin=original.origin,
            where=original.name,
        )

    def _topological(self) -> list[int]:
        order: list[int] = []
        emitted: set[int] = set()
        for _, output in self._outputs:
            stack = [output]
            while stack:
                class_id = stack[-1]
                waiting = [c for c in self._chosen[class_id].children if c not in emitted]
                if class_id in emitted or not waiting:
                    stack.pop()
                    if class_id not in emitted:
                        emitted.add(class_id)
                        order.append(class_id)
                    continue
                stack.extend(reversed(waiting))
        return order

    def _emit(self, class_id: int) -> None:
        node = self._chosen[class_id]
        op, attrs = node.symbol.op, dict(node.symbol.attrs)
        operands = tuple(name for child in node.children for name in self._tensors[child])
        if op in ("input", "weight"):
            self._tensors[class_id] = (str(attrs["name"]),)
        elif op == "part":
            index = attrs["index"]
            assert isinstance(index, int)
            self._tensors[class_id] = (self._tensors[node.children[0]][index],)
            self.classes[self._tensors[class_id][0]] = class_id
        elif op == "noop":
            self._tensors[class_id] = operands
        else:
            names = self._output_names(class_id, node)
            self._tensors[class_id] = names
            if not get_operator(op).multi_output:
                self.classes[names[0]] = class_id
            self._nodes.append(Node(op, operands, names, attrs, self._node_name(class_id, node)))

    def _output_names(self, class_id: int, node: ChosenNode) -> tuple[str, ...]:
        if not get_operator(node.symbol.op).multi_output:
            return (self._value_name(class_id, node.symbol.op),)
        names = []
        for index in range(len(tensors_of(node.type))):
            part = self._parts.get((class_id, index))
            if part is None:
                names.append(self._fresh(f"{node.symbol.op}_{class_id}_{index}"))
            else:
                names.append(self._value_name(part, f"{node.symbol.op}_part"))
        return tuple(names)

    def _node_name(self, class_id: int, node: ChosenNode) -> str:
        """Return the name of the original node; that of several outputs is known by its parts."""
        enodes = [node.enode]
        if get_operator(node.symbol.op).multi_output:
            parts = (self._parts.get((class_id, i)) for i in range(len(tensors_of(node.type))))
            enodes += [self._chosen[part].enode for part in parts if part is not None]
        return next((self._node_names[e] for e in enodes if e in self._node_names), "")

    def _value_name(self, class_id: int, op: str) -> str:
        for name in self._names.get(class_id, ()):
            if name not in self._original.inputs and name not in self._original.weights:
                return name
        return self._fresh(f"{op}_{class_id}")

    def _fresh(self, base: str) -> str:
        name, index = base, 1
        while name in self._taken:
            name, index = f"{base}_{index}", index + 1
        self._taken.add(name)
        return name

    def _emit_output(self, name: str, class_id: int) -> None:
        """Make the value of a graph output available under the output's name."""
        tensors = self._tensors[class_id]
        self.classes[name] = class_id
        if isinstance(self._chosen[class_id].type, tuple):
            self._nodes.append(Node("noop", tensors, (name,)))
        elif tensors[0] != name:
            self._nodes.append(Node("identity", tensors, (name,)))
