"""What all graphs of one search share: symbols, types, values and costs, as small integers.

A *value* is one tensor of the computation, e.g. the product of these two tensors, however it is
computed; a graph maps each of its values to the *entry* that computes it: a symbol (operator and
attributes) and the values that it is applied to. A rule changes the entries of the values that its
sources compute, and adds values in between; so graphs that differ in one place differ in few entries.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

from relational_tensat.cost.cost_model import CostModel
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
