"""What becomes of a candidate: refuted cheaply, repaired by a condition, verified, made general.

Thousands of candidates are tried, so what passes is tried harder than a rule that somebody wrote: on many
configurations first, which cost little, then by the checker with ``TRIALS``, and again once it is general.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.records import record
from relational_tensat.rules.model import Apply, Expr, Literal, Rule, Var
from relational_tensat.rules.soundness.rule_verification import judged
from relational_tensat.rules.soundness.verdict import Verdict
from relational_tensat.rules.synthesis.conditions import drawn_examples, inferred_conditions
from relational_tensat.rules.synthesis.pair_terms import (
    law_text,
    nodes_of,
    read_rule_text,
    replaced,
)
from relational_tensat.rules.synthesis.store import SynthesisStore
from relational_tensat.rules.text import rule_text

#: Configurations that a candidate is refuted on, and that a found rule is verified on.
_CHEAP, TRIALS = 120, 400
_KEPT = ("act", "dtype", "shape")


@record
class JudgedPair:
    """What was found out about a candidate.

    Attributes:
        status: sound, refuted, untested.
        rule: with its conditions; general where that holds, too.
        verdict: of the checker; None where examples refuted it.
    """

    status: str
    rule: Rule
    note: str
    verdict: Verdict | None = None


def judged_pair(
    store: SynthesisStore, rule: Rule, seed: int = 0, trials: int = TRIALS
) -> JudgedPair:
    """Refute, repair, verify and generalize."""
    examples = drawn_examples(rule, _CHEAP, seed)
    failing = [example for example in examples if not example.holds]
    if not failing:
        return _verified(rule, seed, trials)
    holding = len(examples) - len(failing)
    for words in inferred_conditions(store, rule, examples):
        repaired = with_conditions(rule, words)
        again = drawn_examples(repaired, _CHEAP, seed + 1)
        if all(example.holds for example in again):
            found = _verified(repaired, seed, trials)
            if found.status == "sound":
                return found
    return JudgedPair("refuted", rule, f"fails on {len(failing)} of {holding + len(failing)} examples")


def _verified(rule: Rule, seed: int, trials: int) -> JudgedPair:
    verdict = judged(rule, seed=seed, trials=trials, shrink=False)
    if verdict.status != "sound":
        status = "refuted" if verdict.status == "unsound" else verdict.status
        return JudgedPair(status, rule, verdict.reason, verdict)
    for wider in generalizations(rule):
        if all(example.holds for example in drawn_examples(wider, _CHEAP, seed)):
            of_wider = judged(wider, seed=seed, trials=trials, shrink=False)
            if of_wider.status == "sound":
                return JudgedPair("sound", wider, of_wider.reason, of_wider)
    return JudgedPair("sound", rule, verdict.reason, verdict)


def with_conditions(rule: Rule, words: tuple[Expr, ...]) -> Rule:
    """Return a rule with more conditions."""
    return read_rule_text(rule_text(replace(rule, conditions=(*rule.conditions, *words), file="")))


def generalizations(rule: Rule) -> Iterator[Rule]:
    """Yield the rule with constants of its source as variables: all of them, then one value at a time."""
    (source,) = rule.sources
    constants: dict[tuple[str, Literal], None] = {}
    for node in nodes_of(source):
        for name, value in node.attrs:
            if isinstance(value, Literal) and name not in _KEPT:
                constants.setdefault((name, value))
    every = [tuple(constants)] if len(constants) > 1 else []
    for group in (*every, *((constant,) for constant in constants)):
        names = {constant: Var(f"v{index}") for index, constant in enumerate(group)}
        try:
            yield _with_variables(rule, names)
        except RelationalTensatError:
            continue  # the language takes no variable there


def _with_variables(rule: Rule, names: dict[tuple[str, Literal], Var]) -> Rule:
    def change(node: Apply) -> Apply:
        attrs = tuple(
            (name, names.get((name, value), value) if isinstance(value, Literal) else value)
            for name, value in node.attrs
        )
        return Apply(node.op, node.children, attrs)

    source, target = (replaced(term, change, {}) for term in (rule.sources[0], rule.targets[0]))
    assert isinstance(source, Apply)
    law = f"{law_text(source)} = {law_text(target)}"
    return read_rule_text(rule_text(replace(rule, sources=(source,), targets=(target,), law=law, file="")))


