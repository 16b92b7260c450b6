"""Operators as a page names them: each with its attributes, types and costs, once."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from relational_tensat.cost import CostModel
from relational_tensat.egraph.catalogue import type_text
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.view.data.graph_data import OperatorForm

#: Longer values of attributes (an unknown operator may have a whole tensor) are cut.
_ATTRIBUTE_CHARACTERS = 400


class OperatorForms:
    """Gives the signatures that a page names an index each; threads may share it.

    Args:
        costs_us: microseconds by signature, one mapping for each source of costs.
    """

    def __init__(self, stored: StoredEGraph, costs_us: Sequence[Mapping[int, float]]) -> None:
        self._stored = stored
        self._costs_us = costs_us
        self._indices: dict[int, int] = {}
        self._signatures: list[int] = []  # by index
        self._made: list[OperatorForm] = []  # by index, as far as they have been asked for
        self._other_us: dict[int, float] = {}  # by signature
        self._has_other = False
        self._lock = threading.Lock()

    @classmethod
    def of(cls, stored: StoredEGraph) -> OperatorForms:
        """Return the forms of a run, with the costs that it extracted by."""
        rows = stored.connection.execute("SELECT signature, cost_us FROM cost").fetchall()
        return cls(stored, [dict(rows)])

    def cost_also(self, model: CostModel) -> None:
        """Cost what has been named so far, and runs a kernel, by another source, too."""
        self._has_other = True
        for signature in self._signatures:
            kind = self._stored.signatures[signature]
            op, attrs = kind.symbol.op, dict(kind.symbol.attrs)
            self._other_us[signature] = model.cost_us(op, kind.operands, kind.type, attrs)

    def index(self, signature: int) -> int:
        """Return the index of a signature."""
        with self._lock:
            index = self._indices.setdefault(signature, len(self._signatures))
            if index == len(self._signatures):
                self._signatures.append(signature)
            return index

    def op(self, index: int) -> str:
        """Return the operator of a form."""
        return self._stored.signatures[self._signatures[index]].symbol.op

    def all(self) -> tuple[OperatorForm, ...]:
        """Return the forms that have been named so far, by index."""
        with self._lock:
            self._made += map(self._form, self._signatures[len(self._made) :])
            return tuple(self._made)

    def _form(self, signature: int) -> OperatorForm:
        kind = self._stored.signatures[signature]
        symbol = kind.symbol
        return OperatorForm(
            symbol.op,
            {name: _short(value) for name, value in symbol.attrs},
            type_text(kind.type),
            tuple(type_text(operand) for operand in kind.operands),
            (
                *(costs.get(signature) for costs in self._costs_us),
                *([self._other_us.get(signature)] if self._has_other else []),
            ),
            get_operator(symbol.op).is_structure,
        )


def _short(value: object) -> Any:
    if isinstance(value, bool | int | float):
        return value
    text = str(list(value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= _ATTRIBUTE_CHARACTERS else f"{text[: _ATTRIBUTE_CHARACTERS - 1]}…"
