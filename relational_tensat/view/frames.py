"""The graphs at both ends of a run, read off the tables: nothing else of the e-graph is loaded for them.

``unused`` gives the rules that matched and brought no step to the result, and why. Some tables only some
runs leave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError
from relational_tensat.base.files import sql
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.explain.terms import TermCosts, Terms
from relational_tensat.explain.why_not.funnel import Funnels, conclusion
from relational_tensat.view.classes import OperatorForms
from relational_tensat.view.data.graph_data import GraphFrame, ValueRow
from relational_tensat.view.data.page_data import Narrowing, RuleWork, TreePlaceRow, Unused


def has_table(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether a run left such a table."""
    rows = connection.execute(
        "SELECT count(*) > 0 FROM duckdb_tables() WHERE table_name = ?", [name]
    ).fetchall()
    return bool(rows[0][0])


#: Rules that a page explains, those that matched most; the served view explains each that is asked for.
_MOST_RULES = 25
_MOST_PLACES = 8


def unused(funnels: Funnels, rules: Sequence[RuleWork]) -> tuple[Unused, ...]:
    """Return why rules that matched have no step in the film; ``rules`` with most matches first."""
    names = [rule.name for rule in rules if rule.matches and not rule.steps]
    return tuple(why_unused(funnels, name) for name in names[:_MOST_RULES])


def why_unused(funnels: Funnels, name: str) -> Unused:
    """Return why one rule did not change the result.

    Raises:
        UsageError: there is no such rule; names the nearest.
    """
    answers = funnels.why_not(name)
    (answer, *_) = [item for item in answers if item.rule.name == name] or answers
    (trace,) = answer.traces
    return Unused(
        rule=answer.rule.name,
        conclusion=conclusion(answer, trace),
        steps=tuple(Narrowing(step.requirement, step.left, step.instead) for step in trace.steps),
        places=tuple(
            TreePlaceRow(o.places, o.status, o.made_by, o.iteration, o.cost_us, o.detail)
            for o in trace.outcomes[:_MOST_PLACES]
        ),
    )


@dataclass(frozen=True, slots=True)
class FrameNode:
    """A node of a graph that is to be drawn, by whatever number; operands by theirs."""

    children: tuple[int, ...]
    signature: int
    eclass: int
    enode: int


class Frames:
    """Makes frames of the graphs of a run.

    Attributes:
        terms: of all their values.
    """

    def __init__(self, stored: StoredEGraph, forms: OperatorForms) -> None:
        self.terms = Terms()
        self._stored = stored
        self._forms = forms
        self._costs = TermCosts(self.terms, stored)

    def original(self) -> tuple[GraphFrame, float]:
        """Return the graph as it was given, and its cost: equal values count as often as they are there."""
        rows = self._stored.connection.execute(sql("view/original")).fetchall()
        nodes = {row[0]: FrameNode(tuple(row[1]), *row[2:]) for row in rows}
        names: dict[int, tuple[str, ...]] = {}
        for _, name, enode, _ in self._stored.connection.execute(
            sql("egraph/value_names")
        ).fetchall():
            names[enode] = (*names.get(enode, ()), name)
        outputs = self._stored.connection.execute(sql("explain/output_nodes")).fetchall()
        frame, terms = self._frame(nodes, list(nodes), [name for (name,) in outputs], names)
        return frame, sum(self._costs.term_us(term) for term in terms.values())

    def result(self) -> tuple[GraphFrame, float]:
        """Return the extracted graph, and its cost.

        Raises:
            InputError: nothing was extracted, or not all that the result needs.
        """
        rows = self._stored.connection.execute(sql("view/result")).fetchall()
        nodes = {row[0]: FrameNode(tuple(row[1]), row[2], row[0], row[3]) for row in rows}
        if not nodes:
            raise InputError("no graph has been extracted from this database")
        rows = self._stored.connection.execute(sql("egraph/output_classes")).fetchall()
        outputs = [owner for _, owner in rows]
        order = _order(nodes, outputs)
        frame, terms = self._frame(nodes, order, outputs, self._stored.names)
        return frame, sum(self._costs.term_us(term) for term in set(terms.values()))

    def _frame(
        self,
        nodes: Mapping[int, FrameNode],
        order: Sequence[int],
        outputs: Sequence[int],
        names: Mapping[int, tuple[str, ...]],
    ) -> tuple[GraphFrame, dict[int, int]]:
        """Return a frame of nodes, and their terms."""
        ids: dict[int, str] = {}
        terms: dict[int, int] = {}
        used: Counter[int] = Counter()
        values = []
        for number in order:
            node = nodes[number]
            terms[number] = self.terms.id_of(node.signature, [terms[c] for c in node.children])
            count = used[node.eclass]
            used[node.eclass] += 1
            ids[number] = f"{node.eclass}.{count}" if count else str(node.eclass)
            values.append(
                ValueRow(
                    id=ids[number],
                    eclass=node.eclass,
                    enode=node.enode,
                    form=self._forms.index(node.signature),
                    inputs=tuple(ids[child] for child in node.children),
                    names=names.get(number, ()),
                    is_constant=self._costs.is_constant(terms[number]),
                )
            )
        return GraphFrame(tuple(values), tuple(ids[number] for number in outputs)), terms


def _order(nodes: Mapping[int, FrameNode], outputs: Sequence[int]) -> list[int]:
    """Return all that outputs need, operands first.

    Raises:
        InputError: a node that is needed is not there, or needs itself.
    """
    done: dict[int, bool] = {}  # False while a node waits for its operands
    stack = list(reversed(outputs))
    while stack:
        number = stack[-1]
        if number not in nodes:
            raise InputError("the extracted graph is not complete: an e-class has no e-node")
        if done.get(number) is None:
            done[number] = False
            waiting = [child for child in nodes[number].children if not done.get(child)]
            if any(child in done for child in waiting):
                raise InputError("the extracted graph is cyclic")
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        if not done[number]:
            del done[number]
            done[number] = True  # now it stands behind its operands
    return list(done)
