"""What the search rewrites: graphs of values, and what all graphs of one search share, as small integers.

A *value* is one tensor of the computation, e.g. the product of these two tensors, however it is
computed; a graph maps each of its values to the *entry* that computes it: a symbol (operator and
attributes) and the values that it is applied to. A rule changes the entries of the values that its
sources compute, and adds values in between; so graphs that differ in one place differ in few entries.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from relational_tensat.cost.source import CostModel
from relational_tensat.egraph.catalogue import Catalogue, Symbol
from relational_tensat.egraph.chosen_graph import ChosenNode, build_chosen
from relational_tensat.egraph.enode_rows import LoadedGraph, load_rows
from relational_tensat.tensor import Graph
from relational_tensat.tensor.types import AttrItems, ValueType

#: A symbol, then the values that it is applied to.
Entry: TypeAlias = tuple[int, ...]

#: Costs are whole picoseconds: sums of the same costs are equal, whatever their order.
PS_PER_US = 1_000_000

_BITS = 128


class Universe:
    """Interns symbols, types and values; knows what an entry costs.

    Attributes:
        symbols: (operator, canonical attributes) by symbol.
        types: by type id.
        type_of: per value, its type id.
    """

    def __init__(self, cost: CostModel) -> None:
        self._cost = cost
        self.symbols: list[tuple[str, AttrItems]] = []
        self.types: list[ValueType] = []
        self.type_of: list[int] = []
        self._symbol_ids: dict[tuple[str, AttrItems], int] = {}
        self._type_ids: dict[ValueType, int] = {}
        self._values: dict[Entry, int] = {}
        self._costs: dict[tuple[int, ...], int] = {}
        self._marks: dict[tuple[int, Entry], int] = {}
        self._random = random.Random(0)
        self._watchers: list[Callable[[int], None]] = []

    def watch(self, on_symbol: Callable[[int], None]) -> None:
        """Call a function with every symbol there is, and every one that comes."""
        for symbol in range(len(self.symbols)):
            on_symbol(symbol)
        self._watchers.append(on_symbol)

    def symbol(self, op: str, attrs: AttrItems) -> int:
        """Return the symbol of an operator with canonical attributes."""
        symbol = self._symbol_ids.get((op, attrs))
        if symbol is None:
            symbol = self._symbol_ids[op, attrs] = len(self.symbols)
            self.symbols.append((op, attrs))
            for watcher in self._watchers:
                watcher(symbol)
        return symbol

    def type(self, kind: ValueType) -> int:
        """Return the id of a type."""
        type_id = self._type_ids.get(kind)
        if type_id is None:
            type_id = self._type_ids[kind] = len(self.types)
            self.types.append(kind)
        return type_id

    def new_value(self, entry: Entry, type_id: int) -> int:
        """Return a value of its own for an entry of the original graph."""
        value = len(self.type_of)
        self.type_of.append(type_id)
        self._values.setdefault(entry, value)
        return value

    def value(self, entry: Entry, type_id: int) -> int:
        """Return the value that an entry computes, the same for the same entry."""
        value = self._values.get(entry)
        return self.new_value(entry, type_id) if value is None else value

    def cost_ps(self, value: int, entry: Entry) -> int:
        """Return what computing a value by an entry costs at inference, in picoseconds."""
        key = (self.type_of[value], entry[0], *[self.type_of[child] for child in entry[1:]])
        cost_ps = self._costs.get(key)
        if cost_ps is None:
            op, attrs = self.symbols[entry[0]]
            operands = tuple(self.types[kind] for kind in key[2:])
            us = self._cost.cost_us(op, operands, self.types[key[0]], dict(attrs))
            cost_ps = self._costs[key] = round(us * PS_PER_US)
        return cost_ps

    def mark(self, value: int, entry: Entry) -> int:
        """Return 128 random bits that represent a value being computed by an entry.

        The exclusive or over a graph's values represents the graph.
        """
        mark = self._marks.get((value, entry))
        if mark is None:
            mark = self._marks[value, entry] = self._random.getrandbits(_BITS)
        return mark


#: Joins the outputs and names parts of tuples: no operators of the computation.
_UNCOUNTED = frozenset({"part", "noop"})


class State:
    """A graph: which entry computes each value.

    Attributes:
        entries: by value, those that the outputs depend on, operands before what uses them.
        outputs: the values that the graph returns.
        by_op: values by operator.
        users: per value, the values whose entries use it, as often as they do; an output has ``OUTPUT``
            among them.
        below: per value, a bit set of the values that it depends on, itself included.
        bit: per value, its bit there.
        constant: the values that depend on weights only.
        cost_of: per value, picoseconds at inference; 0 for constant ones.
        cost_ps: of the graph.
        operators: how many there are, inputs and weights not counted.
        mark: represents the graph, see ``Universe.mark``.
    """

    #: The user of an output.
    OUTPUT = -1

    def __init__(
        self, universe: Universe, entries: Mapping[int, Entry], outputs: Sequence[int]
    ) -> None:
        self.universe = universe
        self.outputs = tuple(outputs)
        self.entries: dict[int, Entry] = {}
        self.by_op: dict[str, list[int]] = {}
        self.users: dict[int, list[int]] = {}
        self.below: dict[int, int] = {}
        self.bit: dict[int, int] = {}
        self.constant: set[int] = set()
        self.cost_of: dict[int, int] = {}
        self.cost_ps = 0
        self.operators = 0
        self.mark = 0
        for value in _reachable(entries, self.outputs):
            self._add(value, entries[value])
        for output in self.outputs:
            self.users[output].append(self.OUTPUT)

    def _add(self, value: int, entry: Entry) -> None:
        universe, children = self.universe, entry[1:]
        op = universe.symbols[entry[0]][0]
        bit = 1 << len(self.entries)
        below = bit
        for child in children:
            below |= self.below[child]
            self.users[child].append(value)
        self.entries[value] = entry
        self.by_op.setdefault(op, []).append(value)
        self.users[value] = []
        self.bit[value] = bit
        self.below[value] = below
        self.mark ^= universe.mark(value, entry)
        cost_ps = 0
        if op in ("weight", "fill") or (children and self.constant.issuperset(children)):
            self.constant.add(value)
        elif children:
            cost_ps = universe.cost_ps(value, entry)
        self.cost_of[value] = cost_ps
        self.cost_ps += cost_ps
        self.operators += counts_as_operator(op, children)


def counts_as_operator(op: str, children: Sequence[int]) -> bool:
    """Whether an entry is one of those that ``State.operators`` counts."""
    return bool(children) and op not in _UNCOUNTED


def _reachable(entries: Mapping[int, Entry], outputs: Sequence[int]) -> list[int]:
    """Return the values that the outputs depend on, operands first."""
    order: list[int] = []
    visited: set[int] = set()
    stack = list(reversed(outputs))
    while stack:
        value = stack[-1]
        if value in visited:
            stack.pop()
            continue
        waiting = [child for child in entries[value][1:] if child not in visited]
        if waiting:
            stack += reversed(waiting)
        else:
            stack.pop()
            visited.add(value)
            order.append(value)
    return order


class Loaded:
    """A tensor graph as the search sees it.

    Attributes:
        state: the graph.
    """

    def __init__(self, graph: Graph, cost: CostModel) -> None:
        self._graph = graph
        catalogue = Catalogue()
        self._rows: LoadedGraph = load_rows(graph, catalogue, 1)
        universe = Universe(cost)
        values: list[int] = []
        self._entries: dict[int, Entry] = {}
        for signature, children in zip(self._rows.signatures, self._rows.children, strict=True):
            symbol = catalogue.symbol_of(signature)
            operands = [values[child - 1] for child in children]
            entry = (universe.symbol(symbol.op, symbol.attrs), *operands)
            value = universe.new_value(entry, universe.type(catalogue.type_of(signature)))
            values.append(value)
            self._entries[value] = entry
        self._values = values
        self._outputs = [values[enode - 1] for enode in self._rows.outputs]
        self.state = State(universe, self._entries, self._outputs)

    def graph(self, state: State) -> Graph:
        """Return a graph of the search as a tensor graph; values that stayed keep their names."""
        universe = state.universe
        nodes = {}
        for value, entry in state.entries.items():
            op, attrs = universe.symbols[entry[0]]
            children = entry[1:]
            original = value if self._entries.get(value) == entry else -1
            kind = universe.types[universe.type_of[value]]
            nodes[value] = ChosenNode(original, Symbol(op, attrs, len(children)), kind, children)
        names = [
            (self._values[enode - 1], name, self._values[enode - 1], node_name)
            for name, enode, node_name in self._rows.values
        ]
        outputs = list(zip(self._graph.outputs, state.outputs, strict=True))
        return build_chosen(self._graph, nodes, names, outputs)
