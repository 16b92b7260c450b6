"""The classes of an e-graph as a page shows them: all of a small one, or only those that are looked at.

Operators are named once, each with its attributes, types and costs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from relational_tensat.base.files import sql
from relational_tensat.cost import CostModel
from relational_tensat.egraph.catalogue import type_text
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.swaps import Swaps
from relational_tensat.tensor.operators import get_operator
from relational_tensat.view.data.graph_data import (
    Birth,
    EClass,
    ENode,
    Hit,
    OperatorForm,
    SampleRow,
    Union,
)

#: E-nodes that a page holds at most; it says how many it leaves out.
MOST_ENODES = 6_000
#: Of a class, so many unions and users are shown; the rest is counted.
_MOST_UNIONS = 40
_MOST_USERS = 60
#: Classes that a search for words returns.
_MOST_FOUND = 60


class Classes:
    """Reads classes from the tables of a run.

    Args:
        swaps: tells what the result would cost with another e-node; None where that is not asked for, as
            it needs the whole e-graph in memory.
    """

    def __init__(self, stored: StoredEGraph, forms: OperatorForms, swaps: Swaps | None) -> None:
        self._stored = stored
        self._forms = forms
        self._swaps = swaps

    def sample(self) -> SampleRow:
        """Return the classes that a page holds."""
        rows = self._stored.connection.execute(sql("view/sample"), {"most": MOST_ENODES}).fetchall()
        return SampleRow(tuple(self.read([row[0] for row in rows])))

    def find(self, words: Iterable[str]) -> list[Hit]:
        """Return classes in which each word occurs: as operator, type, rule or name of a tensor."""
        parameters = {"words": [word.lower() for word in words], "most": _MOST_FOUND}
        rows = self._stored.connection.execute(sql("view/find"), parameters).fetchall()
        return [
            Hit(
                found.id, found.names, found.type, found.is_needed,
                tuple(dict.fromkeys(self._forms.op(enode.form) for enode in found.enodes)),
                len(found.enodes),
            )
            for found in self.read([row[0] for row in rows])
        ]  # fmt: skip

    def read(self, ids: Sequence[int]) -> list[EClass]:
        """Return classes by their canonical ids; those that do not exist are left out."""
        enodes: dict[int, list[ENode]] = {}
        births = {
            number: Birth(root, tuple(sorted(operands or ())))
            for number, root, operands in self._rows("view/births", ids)
        }
        for row in self._rows("view/enodes", ids):
            enodes.setdefault(row[0], []).append(self._enode(row, births))
        unions: dict[int, list[Union]] = {}
        for owner, iteration, rule, a, b in self._rows("view/unions", ids, most=_MOST_UNIONS):
            unions.setdefault(owner, []).append(Union(iteration, self._rule(rule), a, b))
        names, users = self._grouped("view/names", ids), self._grouped("view/users", ids)
        return [
            EClass(
                id=owner,
                type=kind,
                names=tuple(names.get(owner, ())),
                is_constant=is_constant,
                is_needed=is_needed,
                enodes=tuple(enodes.get(owner, ())),
                unions=tuple(unions.get(owner, ())),
                users=tuple(users.get(owner, ())[:_MOST_USERS]),
            )
            for owner, kind, is_constant, is_needed in self._rows("view/classes", ids)
        ]

    def _enode(self, row: tuple[Any, ...], births: dict[int, Birth]) -> ENode:
        _, number, signature, children, iteration, rule, filtered, chosen = row
        return ENode(
            id=number,
            form=self._forms.index(signature),
            children=tuple(children),
            iteration=iteration,
            rule=self._rule(rule) if rule else "",
            filtered=filtered,
            chosen=chosen,
            birth=births.get(number),
            forced_us=self._forced_us(number, chosen=chosen, filtered=filtered),
        )

    def _forced_us(self, number: int, *, chosen: bool, filtered: bool) -> float | None:
        """Return what the result costs with an e-node; None where the result has no use for its class."""
        if self._swaps is None or filtered:
            return None
        if chosen:
            return self._swaps.chosen_us
        node = self._stored.nodes[number]
        return self._swaps.cost_with([node]) if node.owner in self._swaps.chosen else None

    def _grouped(self, name: str, ids: Sequence[int]) -> dict[int, list[Any]]:
        groups: dict[int, list[Any]] = {}
        for owner, value in self._rows(name, ids):
            groups.setdefault(owner, []).append(value)
        return groups

    def _rows(self, name: str, ids: Sequence[int], **parameters: int) -> list[tuple[Any, ...]]:
        values = {"classes": list(ids), **parameters}
        return self._stored.connection.execute(sql(name), values).fetchall()

    def _rule(self, number: int) -> str:
        return self._stored.rules.get(number, "congruence")


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
