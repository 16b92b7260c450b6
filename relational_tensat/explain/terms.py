"""Graphs as values: terms that are numbered, equal ones alike, so that a graph is a tuple of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

#: A graph: the terms of its outputs.
Outputs: TypeAlias = tuple[int, ...]


class Term(NamedTuple):
    """A signature applied to terms, by their numbers."""

    signature: int
    children: tuple[int, ...]


class Terms:
    """All terms of an explanation; operands have lower ids than what is computed from them."""

    def __init__(self) -> None:
        self._terms: list[Term] = []
        self._ids: dict[tuple[int, tuple[int, ...]], int] = {}

    def __getitem__(self, index: int) -> Term:
        return self._terms[index]

    def __len__(self) -> int:
        return len(self._terms)

    def id_of(self, signature: int, children: Sequence[int]) -> int:
        """Return the id of a term."""
        key = (signature, tuple(children))
        term_id = self._ids.get(key)
        if term_id is None:
            term = Term(*key)
            term_id = self._ids[term] = len(self._terms)
            self._terms.append(term)
        return term_id

    def of(self, outputs: Iterable[int]) -> list[int]:
        """Return the terms of a graph, operands first."""
        reachable = set(outputs)
        pending = list(reachable)
        while pending:
            for child in self._terms[pending.pop()].children:
                if child not in reachable:
                    reachable.add(child)
                    pending.append(child)
        return sorted(reachable)
