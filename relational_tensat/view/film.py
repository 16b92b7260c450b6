"""The film of an explanation: the first graph, and what each step changes in it.

A value keeps its id from graph to graph, although all that is computed from what a step replaces is another
term after it. So only what a step touches differs between two frames.

Why a step is right: its rule as it is written, the conditions with their values, and the evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relational_tensat.base.files import sql
from relational_tensat.explain.egraph_tables import StoredEGraph, StoredNode
from relational_tensat.explain.explanation import ExplainedStep, Explanation, StepPlace
from relational_tensat.explain.rewrite import RewriteStep
from relational_tensat.explain.terms import Outputs, TermCosts
from relational_tensat.rules.diagnosis import facts
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Rule, rule_text
from relational_tensat.rules.soundness.store import cached_verdicts, content_hash, shipped_verdicts
from relational_tensat.tensor.types import Attrs, ValueType
from relational_tensat.view.classes import OperatorForms
from relational_tensat.view.data.graph_data import (
    Condition,
    Film,
    FilmStep,
    FrameChange,
    GraphFrame,
    ValueRow,
)

#: The meaning of each kind of evidence; see ``rules.soundness.verdict``.
_EVIDENCE = {
    "exact": "exact arithmetic modulo a prime",
    "float64": "floating point, up to rounding",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """The evidence for a rule where it was applied."""

    text: str
    conditions: tuple[Condition, ...]
    evidence: str


class Reasons:
    """Gives the reason of each step of a run; the evidence for a rule is looked up once."""

    def __init__(self, stored: StoredEGraph) -> None:
        self._stored = stored
        self._evidence: dict[str, str] = {}

    def of(self, rewrite: RewriteStep) -> Reason:
        """Return why a step is right."""
        rule = rewrite.law.rule
        if rule.name not in self._evidence:
            self._evidence[rule.name] = _evidence_text(rule)
        return Reason(text_of(rule), self._conditions(rewrite), self._evidence[rule.name])

    def _conditions(self, rewrite: RewriteStep) -> tuple[Condition, ...]:
        law = rewrite.law
        signatures = [self._stored.signatures[signature] for signature in law.signatures]
        symbols: list[tuple[str, Attrs]] = [(s.symbol.op, dict(s.symbol.attrs)) for s in signatures]
        types: dict[int, ValueType] = {}
        for signature, operands in law.source.nodes:
            kinds = self._stored.signatures[signature].operands
            types.update(zip(operands, kinds, strict=True))
        variables = tuple(types[index] for index in range(len(tensor_vars(law.rule))))
        roots = tuple(
            self._stored.signatures[law.source.nodes[root - law.variables][0]].type
            for root in law.source.roots
        )
        return tuple(
            Condition(text, values) for text, values in facts(law.rule, symbols, variables, roots)
        )


def text_of(rule: Rule) -> str:
    """Return a rule as its file writes it, with the file's name: where that lies is nobody's business."""
    return rule_text(replace(rule, file=Path(rule.file).name))


def _evidence_text(rule: Rule) -> str:
    """Return how it is known that a rule is true, in a sentence."""
    key = content_hash(rule)
    verdict = shipped_verdicts().get(key) or cached_verdicts().get(key)
    if verdict is None:
        return "not verified: no verdict on this rule is recorded here"
    how = _EVIDENCE[verdict.evidence]
    text = f"found {verdict.status} in {how}, on {verdict.trials} configurations"
    proved = [dtype for dtype, kind in verdict.types.items() if kind == "proved"]
    return f"{text}; proved in the arithmetic of {', '.join(proved)}" if proved else text


def film(explanation: Explanation, forms: OperatorForms, checks: Sequence[str] = ()) -> Film:
    """Return the film of an explanation.

    Args:
        checks: the results of comparing the tensors that each step replaces; empty without a comparison.
    """
    return _Filming(explanation, forms).film(checks)


class _Filming:
    def __init__(self, explanation: Explanation, forms: OperatorForms) -> None:
        self._explanation = explanation
        self._forms = forms
        self._terms = explanation.terms
        self._costs = TermCosts(explanation.terms, explanation.stored)
        self._reasons = Reasons(explanation.stored)
        stored = explanation.stored
        self._enodes = {(node.signature, node.children): node for node in stored.nodes.values()}
        self._used: Counter[int] = Counter()  # how many ids each class has given
        self._rows: dict[int, ValueRow] = {}  # by term of the present graph, operands first

    def film(self, checks: Sequence[str]) -> Film:
        explanation = self._explanation
        self._rows = self._next_rows(explanation.original, self._named(), {})
        start = GraphFrame(tuple(self._rows.values()), self._ids(explanation.original))
        steps = []
        for step, rewrite in zip(explanation.steps, explanation.rewrites, strict=True):
            change = self._follow(rewrite)
            steps.append(
                self._step(step, rewrite, change, checks[step.number - 1] if checks else "")
            )
        return Film(start, explanation.cost_before_us, tuple(steps))

    def _named(self) -> dict[int, ValueRow]:
        """Return the values of the original graph with their ids, in its own order, and their names."""
        names: dict[int, tuple[str, ...]] = {}
        for name, term in self._explanation.names.items():
            names[term] = (*names.get(term, ()), name)
        rows = self._explanation.stored.connection.execute(sql("egraph/original_nodes")).fetchall()
        terms: dict[int, int] = {}
        named: dict[int, ValueRow] = {}
        for enode, signature, children in rows:
            operands = [terms[child] for child in children]
            term = terms[enode] = self._terms.id_of(signature, operands)
            node = self._enodes[signature, tuple([named[child].eclass for child in operands])]
            name = self._new_id(node)  # also for a value that is shared: as in the original's frame
            row = ValueRow(name, node.owner, node.id, -1, (), names.get(term, ()), False)
            named.setdefault(term, row)
        return named

    def _next_rows(
        self, outputs: Outputs, origins: Mapping[int, ValueRow], kept: Mapping[int, ValueRow]
    ) -> dict[int, ValueRow]:
        """Return the values of a graph, by term; those that have no id yet get one.

        Args:
            origins: the rows whose ids and names the terms have.
            kept: rows that are as they were.
        """
        rows: dict[int, ValueRow] = {}
        for term in self._terms.of(outputs):
            if term in kept:
                rows[term] = kept[term]
                continue
            signature, children = self._terms[term]
            row = origins.get(term)
            names = row.names if row else ()
            inputs = tuple([rows[child].id for child in children])
            form = self._forms.index(signature)
            constant = self._costs.is_constant(term)
            if row is None or (row.form, row.inputs, row.is_constant) != (form, inputs, constant):
                node = self._enodes[signature, tuple([rows[child].eclass for child in children])]
                value = row.id if row else self._new_id(node)
                row = ValueRow(value, node.owner, node.id, form, inputs, names, constant)
            rows[term] = row
        return rows

    def _new_id(self, node: StoredNode) -> str:
        count = self._used[node.owner]
        self._used[node.owner] += 1
        return f"{node.owner}.{count}" if count else str(node.owner)

    def _ids(self, terms: Iterable[int]) -> tuple[str, ...]:
        return tuple([self._rows[term].id for term in terms if term in self._rows])

    def _follow(self, rewrite: RewriteStep) -> FrameChange:
        """Hand ids and names on to the terms that the present graph's become by a step."""
        before = self._rows
        after = {replaced.before: replaced.after for replaced in rewrite.replaced}
        origins: dict[int, ValueRow] = {}  # by term after the step
        is_renamed = False
        for term, row in before.items():
            signature, children = self._terms[term]
            if term not in after and not after.keys().isdisjoint(children):
                operands = [after.get(child, child) for child in children]
                after[term] = self._terms.id_of(signature, operands)
            became = after.get(term, term)
            origin = origins.setdefault(became, row)
            if origin is not row:  # two values are one now
                is_renamed |= became == term
                if not set(row.names) <= set(origin.names):
                    names = tuple(dict.fromkeys((*origin.names, *row.names)))
                    origins[became] = replace(origin, names=names)
        kept = {t: r for t, r in before.items() if t not in after and origins[t] is r}
        self._rows = self._next_rows(rewrite.after, origins, {} if is_renamed else kept)
        old = {row.id: row for row in before.values()}
        new = {row.id for row in self._rows.values()}
        return FrameChange(
            tuple([name for name in old if name not in new]),
            tuple([row for row in self._rows.values() if old.get(row.id) is not row]),
            self._ids(rewrite.after),
        )

    def _step(
        self, step: ExplainedStep, rewrite: RewriteStep, change: FrameChange, check: str
    ) -> FilmStep:
        reason = self._reasons.of(rewrite)
        return FilmStep(
            number=step.number,
            rule=step.rule,
            law=step.law,
            backward=step.backward,
            places=tuple(_place_text(place) for place in step.at),
            found=step.before,
            built=step.after,
            replaced=self._ids(r.after for r in rewrite.replaced),
            cost_us=step.cost_us,
            operators=step.operators,
            text=reason.text,
            conditions=reason.conditions,
            evidence=reason.evidence,
            check=check,
            change=change,
        )


def _place_text(place: StepPlace) -> str:
    return f"{place.tensor} (for {place.near})" if place.near else place.tensor
