"""The classes of an e-graph as a page shows them: all of a small one, or only those that are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from relational_tensat.base.files import sql
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.swaps import Swaps
from relational_tensat.view.data.graph_data import Birth, EClass, ENode, Hit, SampleRow, Union
from relational_tensat.view.forms import OperatorForms

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
                tuple(dict.fromkeys(self._op(enode.form) for enode in found.enodes)),
                len(found.enodes),
            )
            for found in self.read([row[0] for row in rows])
        ]  # fmt: skip

    def read(self, ids: Sequence[int]) -> list[EClass]:
        """Return classes by their canonical ids; those that do not exist are left out."""
        enodes: dict[int, list[ENode]] = {}
        births = self._births(ids)
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

    def _births(self, ids: Sequence[int]) -> dict[int, Birth]:
        return {
            number: Birth(root, tuple(sorted(operands or ())))
            for number, root, operands in self._rows("view/births", ids)
        }

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

    def _op(self, form: int) -> str:
        return self._forms.op(form)
