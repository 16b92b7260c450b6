"""One graph of the search, with all that matching and rewriting use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relational_tensat.explore.strategies.backtracking.universe import Entry, Universe

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
