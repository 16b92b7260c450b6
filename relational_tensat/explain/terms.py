"""Graphs as values: terms that are numbered, equal ones alike, so that a graph is a tuple of numbers.

``TermCosts`` says what graphs cost, as the run's table ``cost`` has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.tensor.operators import get_operator

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


class TermCosts:
    """Costs of terms: values that depend on weights only are free, they are computed before inference."""

    def __init__(self, terms: Terms, stored: StoredEGraph) -> None:
        self._terms = terms
        self._signatures = stored.signatures
        self._cost_us: Mapping[int, float] = dict(
            stored.connection.execute("SELECT signature, cost_us FROM cost").fetchall()
        )
        self._computed_us: Mapping[tuple[int, int], float] = {
            (signature, computed): cost_us
            for signature, computed, cost_us in stored.connection.execute(
                "SELECT signature, computed, cost_us FROM computed_cost"
            ).fetchall()
        }
        self._constant: list[bool] = []
        self._folds: dict[int, bool] = {}  # by signature: its operands being known, it is
        #: The costs of terms, and whether they run: most graphs of an explanation share most terms.
        self._known: dict[int, tuple[float, int]] = {}
        #: The same by signature and which operands are constant: a term above a step is another, no more.
        self._kinds: dict[tuple[int, tuple[bool, ...]], tuple[float, int]] = {}

    def graph(self, outputs: Iterable[int]) -> tuple[float, int]:
        """Return the modelled microseconds of a graph, and how many operators run at inference.

        Raises:
            InputError: a signature has no cost.
        """
        terms = self._terms.of(outputs)
        for term in terms:
            if term not in self._known:
                signature, children = self._terms[term]
                kind = (signature, tuple([self.is_constant(child) for child in children]))
                if kind not in self._kinds:
                    runs = not (self._is_idle(term) or get_operator(self._op(term)).is_structure)
                    self._kinds[kind] = self.term_us(term), int(runs)
                self._known[term] = self._kinds[kind]
        known = [self._known[term] for term in terms]
        return sum([us for us, _ in known]), sum([runs for _, runs in known])

    def term_us(self, term: int) -> float:
        """Return the microseconds of one term, its operands being there.

        Raises:
            InputError: its signature has no cost.
        """
        signature = self._terms[term].signature
        if self.is_constant(term):
            return 0.0
        if signature not in self._cost_us:
            raise InputError(f"the database has no cost for an e-node of {self._op(term)}")
        own_us = self._computed_us.get((signature, self._computed(term)))
        return self._cost_us[signature] if own_us is None else own_us

    def is_constant(self, term: int) -> bool:
        """Whether a term is known before inference (see ``cost.graph``)."""
        for index in range(len(self._constant), term + 1):
            signature, children = self._terms[index]
            if signature not in self._folds:
                symbol = self._signatures[signature].symbol
                operator = get_operator(symbol.op)
                is_constant = bool(children) or operator.is_constant
                self._folds[signature] = is_constant and operator.is_foldable(dict(symbol.attrs))
            self._constant.append(
                self._folds[signature] and all(map(self._constant.__getitem__, children))
            )
        return self._constant[term]

    def _computed(self, term: int) -> int:
        """Return the operands that are computed although kernels would arrange them before, a bit each."""
        signature, children = self._terms[term]
        kind = self._signatures[signature]
        prepared = get_operator(kind.symbol.op).prepared_operands(kind.operands)
        return sum(1 << n for n in prepared if not self.is_constant(children[n]))

    def _is_idle(self, term: int) -> bool:
        """Whether a term is known before inference, or unpacks what is."""
        if self.is_constant(term):
            return True
        signature, children = self._terms[term]
        symbol = self._signatures[signature].symbol
        unpacks = get_operator(symbol.op).unpacks(dict(symbol.attrs))
        return unpacks and all(self._constant[child] for child in children)

    def _op(self, term: int) -> str:
        return self._signatures[self._terms[term].signature].symbol.op
