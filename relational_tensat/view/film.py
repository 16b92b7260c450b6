"""The film of an explanation: the first graph, and what each step changes in it.

A value keeps its id from graph to graph, although all that is computed from what a step replaces is
another term after it: so only what a step touches differs between two frames.

Why a step is right: its rule as it is written, the conditions with their values, and the evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relational_tensat.base.files import sql
from relational_tensat.explain.costs import TermCosts
from relational_tensat.explain.egraph_tables import StoredEGraph, StoredNode
from relational_tensat.explain.explanation import ExplainedStep, Explanation, StepPlace
from relational_tensat.explain.rewrite import RewriteStep
from relational_tensat.explain.terms import Outputs
from relational_tensat.rules.diagnosis import facts
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.store import cached_verdicts, content_hash, shipped_verdicts
from relational_tensat.rules.text import rule_text
from relational_tensat.tensor.types import Attrs, ValueType
from relational_tensat.view.data.graph_data import (
    Condition,
    Film,
    FilmStep,
    FrameChange,
    GraphFrame,
    ValueRow,
)
from relational_tensat.view.forms import OperatorForms

#: What each kind of evidence means; see ``rules.soundness.verdict``.
_EVIDENCE = {
    "exact": "exact arithmetic modulo a prime",
    "float64": "floating point, up to rounding",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """What is known of a rule where it was applied."""

    text: str
    conditions: tuple[Condition, ...]
    evidence: str


class Reasons:
    """Gives the reason of each step of a run; what is known of a rule is looked up once."""

    def __init__(self, stored: StoredEGraph) -> None:
        self._stored = stored
        self._evidence: dict[str, str] = {}

    def of(self, rewrite: RewriteStep) -> Reason:
        """Return why a step is right."""
        rule = rewrite.law.rule
        if rule.name not in self._evidence:
            self._evidence[rule.name] = evidence_text(rule)
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


def evidence_text(rule: Rule) -> str:
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
        checks: what a comparison of the tensors that each step replaces gave; empty without one.
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
        self._enode_of: dict[int, StoredNode] = {}  # by term
        self._used: Counter[int] = Counter()  # how many ids each class has given
        self._ids: dict[int, str] = {}  # by term of the present graph
        self._names: dict[int, tuple[str, ...]] = {}  # by term of the present graph

    def film(self, checks: Sequence[str]) -> Film:
        explanation = self._explanation
        self._begin()
        graph = explanation.original
        start = frame = self._frame(graph)
        steps = []
        for step, rewrite in zip(explanation.steps, explanation.rewrites, strict=True):
            self._follow(rewrite)
            following = self._frame(rewrite.after)
            change = _change(frame, following)
            steps.append(
                self._step(step, rewrite, change, checks[step.number - 1] if checks else "")
            )
            frame = following
        return Film(start, explanation.cost_before_us, tuple(steps))

    def _begin(self) -> None:
        """Give the values of the original graph their ids, in its own order, and their names."""
        rows = self._explanation.stored.connection.execute(sql("egraph/original_nodes")).fetchall()
        terms: dict[int, int] = {}
        for enode, signature, children in rows:
            term = terms[enode] = self._terms.id_of(signature, [terms[c] for c in children])
            name = self._new_id(term)  # also for a value that is shared: as in the original's frame
            self._ids.setdefault(term, name)
        for name, term in self._explanation.names.items():
            self._names[term] = (*self._names.get(term, ()), name)

    def _frame(self, outputs: Outputs) -> GraphFrame:
        """Return a graph; values that have no id yet get one."""
        values = []
        for term in self._terms.of(outputs):
            if term not in self._ids:
                self._ids[term] = self._new_id(term)
            inputs = tuple(self._ids[child] for child in self._terms[term].children)
            values.append(self._value(term, self._ids[term], inputs, self._names.get(term, ())))
        return GraphFrame(tuple(values), tuple(self._ids[term] for term in outputs))

    def _value(
        self, term: int, name: str, inputs: tuple[str, ...], names: tuple[str, ...]
    ) -> ValueRow:
        node = self._enode(term)
        form = self._forms.index(node.signature)
        constant = self._costs.is_constant(term)
        return ValueRow(name, node.owner, node.id, form, inputs, names, constant)

    def _enode(self, term: int) -> StoredNode:
        """Return the e-node that a term is: its operands' classes tell."""
        known = self._enode_of.get(term)
        if known is None:
            signature, children = self._terms[term]
            owners = tuple(self._enode(child).owner for child in children)
            known = self._enode_of[term] = self._enodes[signature, owners]
        return known

    def _new_id(self, term: int) -> str:
        owner = self._enode(term).owner
        count = self._used[owner]
        self._used[owner] += 1
        return f"{owner}.{count}" if count else str(owner)

    def _follow(self, rewrite: RewriteStep) -> None:
        """Hand ids and names on to the terms that the present graph's become by a step."""
        after = {replaced.before: replaced.after for replaced in rewrite.replaced}
        ids: dict[int, str] = {}
        names: dict[int, tuple[str, ...]] = {}
        remaining = set(self._terms.of(rewrite.after))
        for term in self._terms.of(rewrite.before):
            if term not in after:
                signature, children = self._terms[term]
                after[term] = self._terms.id_of(signature, [after[child] for child in children])
            if after[term] in remaining:
                ids.setdefault(after[term], self._ids[term])
                known = names.get(after[term], ())
                own = tuple(name for name in self._names.get(term, ()) if name not in known)
                names[after[term]] = known + own
        self._ids, self._names = ids, names

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
            replaced=tuple(self._ids[r.after] for r in rewrite.replaced if r.after in self._ids),
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


def _change(before: GraphFrame, after: GraphFrame) -> FrameChange:
    old = {value.id: value for value in before.values}
    new = {value.id for value in after.values}
    put = tuple(value for value in after.values if old.get(value.id) != value)
    return FrameChange(tuple(name for name in old if name not in new), put, after.outputs)
