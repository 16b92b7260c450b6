"""Whether an imported rule is sound, and the condition under which it is if it is not everywhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Expr, Rule
from relational_tensat.rules.soundness import DEFAULT_TRIALS, Verdict, verify_rule
from relational_tensat.rules.taso.conditions import find_condition
from relational_tensat.rules.taso.neighbours import configured
from relational_tensat.rules.taso.samples import Samples
from relational_tensat.rules.taso.vocabulary import vocabulary

#: What a judgement says: sound; sound where the condition holds that was found; not sound, and no
#: condition was found that repairs it; or too few operands fit the rule to decide.
STATUSES = ("sound", "sound if", "unsound", "untested")

_DRAWN, _DRAW_ATTEMPTS = 40, 1000
_BESIDE, _BESIDE_ATTEMPTS = 60, 1500
_CHALLENGE_ATTEMPTS = 6000
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found out about one rule of a file.

    Attributes:
        rule: as it may be used: with the condition in its ``where``; marked unsound unless it is
            sound or sound if.
        status: one of ``STATUSES``.
        condition: what was found and added; empty unless sound if.
        verdict: the verifier's, on the rule with the condition; for an unsound rule it has the
            counterexample.
    """

    rule: Rule
    status: str
    condition: tuple[Expr, ...]
    verdict: Verdict


def judge(rule: Rule, *, seed: int = 0, trials: int = DEFAULT_TRIALS) -> Judgement:
    """Find out whether a rule holds, and if not everywhere, where.

    The same seed and trials give the same judgement.

    Args:
        trials: configurations that the verifier tries.

    Raises:
        UsageError: an attribute of the rule's sources is no constant.
    """
    samples = first_samples(rule, seed)
    if not samples.refuting:
        verdict = verify_rule(rule, seed=seed, trials=trials)
        if verdict.status == "untested":
            return Judgement(replace(rule, unsound=True), "untested", (), verdict)
        if verdict.status == "sound":
            return Judgement(replace(rule, unsound=False), "sound", (), verdict)
        _learn(samples, verdict)
    for _ in range(_ROUNDS):
        condition = find_condition(samples)
        if condition is None:
            break
        repaired = replace(rule, unsound=False, conditions=(*rule.conditions, *condition))
        verdict = verify_rule(repaired, seed=seed, trials=trials, shrink=False)
        if verdict.status == "sound":
            return Judgement(repaired, "sound if", condition, verdict)
        _learn(samples, verdict)
    return Judgement(replace(rule, unsound=True), "unsound", (), _refutation(samples, seed, trials))


def first_samples(rule: Rule, seed: int) -> Samples:
    """Return some examples of a rule: random ones, and what is beside them."""
    samples = Samples(rule, seed)
    samples.draw(_DRAWN, _DRAW_ATTEMPTS)
    samples.look_around(_BESIDE, _BESIDE_ATTEMPTS)
    if not samples.refuting:
        samples.challenge(vocabulary(rule), _CHALLENGE_ATTEMPTS)
    return samples


def _learn(samples: Samples, verdict: Verdict) -> None:
    """Add the verifier's counterexample to the examples."""
    if verdict.counterexample is not None:
        shapes = verdict.counterexample.shapes
        types = tuple(shapes[name] for name in tensor_vars(samples.rule))
        configuration = configured(samples.rule, types)
        if configuration is not None:
            samples.add(configuration)


def _refutation(samples: Samples, seed: int, trials: int) -> Verdict:
    """Return a verdict with a small counterexample, found by the verifier or among the examples."""
    verdict = verify_rule(samples.rule, seed=seed, trials=trials)
    if verdict.status == "unsound":
        return verdict
    example = samples.counterexample()
    reason = "the two sides differ" if example is None else example.summary()
    count = len(samples.examples)
    return Verdict(samples.rule.name, "unsound", verdict.evidence, count, reason, example)
