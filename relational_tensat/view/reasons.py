"""Why a step is right: its rule as it is written, the conditions with their values, and the evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from relational_tensat.explain.rewrite import Rewrite
from relational_tensat.explain.stored import StoredEGraph
from relational_tensat.rules.diagnosis import facts
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.content import content_hash
from relational_tensat.rules.soundness.store import cached_verdicts, shipped_verdicts
from relational_tensat.rules.text import rule_text
from relational_tensat.tensor.types import Attrs, ValueType
from relational_tensat.view.data.film_data import Condition

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

    def of(self, rewrite: Rewrite) -> Reason:
        """Return why a step is right."""
        rule = rewrite.law.rule
        if rule.name not in self._evidence:
            self._evidence[rule.name] = evidence_text(rule)
        return Reason(text_of(rule), self._conditions(rewrite), self._evidence[rule.name])

    def _conditions(self, rewrite: Rewrite) -> tuple[Condition, ...]:
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
