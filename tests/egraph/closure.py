"""Congruence closure as in a textbook: equal e-nodes are searched for until there are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """An e-node: what is applied, and to which classes."""

    symbol: int
    children: tuple[int, ...]


class Closure:
    """A partition of e-nodes; a class is named by its smallest e-node."""

    def __init__(self, nodes: Mapping[int, Term]) -> None:
        self.nodes = dict(nodes)
        self.parent = {number: number for number in nodes}
        self._close()

    def find(self, number: int) -> int:
        """Return the smallest e-node of the class."""
        while self.parent[number] != number:
            number = self.parent[number]
        return number

    def unite(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Make classes equal, and whatever follows by congruence."""
        for a, b in pairs:
            self._link(a, b)
        self._close()

    def partition(self) -> dict[int, int]:
        """Return the class of every e-node there ever was."""
        return {number: self.find(number) for number in self.parent}

    def enodes(self) -> dict[tuple[int, Term], list[int]]:
        """Return the ids of each distinct (class, e-node), ascending."""
        members: dict[tuple[int, Term], list[int]] = {}
        for number in sorted(self.nodes):
            members.setdefault((self.find(number), self._canonical(number)), []).append(number)
        return members

    def _canonical(self, number: int) -> Term:
        term = self.nodes[number]
        return Term(term.symbol, tuple(self.find(child) for child in term.children))

    def _link(self, a: int, b: int) -> bool:
        a, b = self.find(a), self.find(b)
        self.parent[max(a, b)] = min(a, b)
        return a != b

    def _close(self) -> None:
        has_changed = True
        while has_changed:
            has_changed = False
            first: dict[Term, int] = {}
            for number in self.nodes:
                other = first.setdefault(self._canonical(number), number)
                has_changed |= self._link(number, other)
