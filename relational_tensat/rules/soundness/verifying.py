"""Verification of rules: both sides on many random configurations.

Exact arithmetic comes first. Where it says no, float64 is asked, since the law may be about real
numbers; from then on the rule is judged in float64 only, what was tried before included. What held is
tried once more as a machine computes it, in every element type: see ``typed``.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.drawing import Configuration, draw_configuration
from relational_tensat.rules.soundness.judging import Judge, Outcome
from relational_tensat.rules.soundness.requirements import Plan
from relational_tensat.rules.soundness.showing import counterexample, machine_counterexample
from relational_tensat.rules.soundness.sides import Sides
from relational_tensat.rules.soundness.tuples import tuple_variants
from relational_tensat.rules.soundness.typed import TypedJudge
from relational_tensat.rules.soundness.verdict import Verdict
from relational_tensat.tensor.choices import SeededChoices

#: Different configurations that a rule is tried on, by default.
DEFAULT_TRIALS = 150
#: Fewer say nothing: the rule is untested.
LEAST_TRIALS = 12
#: Configurations in which a variable stands for a tuple, beside the others.
_TUPLE_TRIALS = 15
#: Far configurations, beside the others, and attempts to draw one.
_FAR_TRIALS = 30
_FAR_ATTEMPTS = 240
#: Attempts to draw a configuration, per trial and, while there are too few, at most; and how
#: many in a row may bring nothing new before the rule's configurations count as exhausted.
_ATTEMPTS_PER_TRIAL = 8
_PATIENCE = 12_000
_MOST_IDLE_DRAWS = 1_500


def verify_rule(
    rule: Rule, *, seed: int = 0, trials: int = DEFAULT_TRIALS, shrink: bool = True
) -> Verdict:
    """Find out whether a rule's law holds wherever its conditions do; ``worth`` is not looked at.

    The same seed and trials give the same verdict.

    Args:
        trials: different configurations to try.
        shrink: look for the smallest counterexample that can be found (Hypothesis), not any.
    """
    law = rule.everywhere
    verification = _Verification(law, seed)
    verdict = verification.run(trials, shrink)
    if verdict.status == "sound":
        verdict = _on_machine(verification, verdict, seed, shrink)
    for variant in tuple_variants(law) if verdict.status == "sound" else ():
        of_tuples = _Verification(variant, seed, patience=0).run(_TUPLE_TRIALS, shrink)
        if of_tuples.status == "unsound":
            return of_tuples
    return verdict


def verify_rules(
    rules: Iterable[Rule], *, seed: int = 0, trials: int = DEFAULT_TRIALS, shrink: bool = True
) -> list[Verdict]:
    """Verify rules one after the other; see ``verify_rule``."""
    return [verify_rule(rule, seed=seed, trials=trials, shrink=shrink) for rule in rules]


def _on_machine(verification: _Verification, verdict: Verdict, seed: int, shrink: bool) -> Verdict:
    """Return the verdict with what machine arithmetic says, element type by element type."""
    typed = TypedJudge(verification.judge, seed)
    typed.run([trial.configuration for trial in (*verification.tried, *verification.aside)])
    if typed.failure is None:
        return replace(verdict, types=typed.evidence)
    if shrink:
        from relational_tensat.rules.soundness.trimming import trimmed

        smallest = trimmed(verification.rule, typed.failure.configuration, typed.fails)
        typed.fails(smallest)
    example = machine_counterexample(verification.rule, typed.failure)
    return replace(
        verdict,
        status="unsound",
        reason=example.summary(),
        counterexample=example,
        types=typed.evidence,
    )


@dataclass(frozen=True, slots=True)
class _Trial:
    """A configuration that the rule applies to, and the decisions that led to it."""

    configuration: Configuration
    sides: Sides
    taken: list[int]
    far: bool = False


class _Verification:
    """The verification of one rule.

    Attributes:
        tried: where the law held.
        aside: where the left side has no exact value: it divides by 0, or has an infinity in it.
    """

    def __init__(self, rule: Rule, seed: int, patience: int = _PATIENCE) -> None:
        self.rule = rule
        self.patience = patience
        self.choices = SeededChoices(zlib.crc32(rule.name.encode()) ^ seed)
        self.judge = Judge(Plan(rule), seed)
        self.attempts = 0
        self.least = LEAST_TRIALS
        self.tried: list[_Trial] = []
        self.aside: list[_Trial] = []

    def run(self, trials: int, shrink: bool) -> Verdict:
        self.least = max(1, min(LEAST_TRIALS, trials))
        failure = self._first_failure(self._trials(trials), trials)
        if failure is None and len(self.tried) < self.least and self.aside:
            again = [*self.tried, *self.aside]
            self.judge.floats = True
            self.tried = []
            failure = self._first_failure(again, trials)
        if failure is None and len(self.tried) >= self.least:
            failure = self._first_failure(
                self._far_trials(min(trials, _FAR_TRIALS)), len(self.tried) + trials
            )
        return self._passed() if failure is None else self._unsound(failure, shrink)

    def _far_trials(self, count: int) -> Iterator[_Trial]:
        """Draw far configurations that the rule applies to, each once."""
        keys: set[object] = set()
        for _ in range(_FAR_ATTEMPTS):
            if len(keys) == count:
                return
            self.choices.restart()
            configuration = draw_configuration(self.judge.plan, self.choices, far=True)
            if configuration is None or configuration.key in keys:
                continue
            sides = self.judge.sides(configuration)
            if sides is not None:
                keys.add(configuration.key)
                yield _Trial(configuration, sides, self.choices.taken, far=True)

    def _first_failure(self, trials: Iterable[_Trial], count: int) -> _Trial | None:
        """Judge trials until one fails or so many have held."""
        for trial in trials:
            in_floats = self.judge.floats
            outcome = self.judge.holds(trial.configuration, trial.sides)
            if outcome is Outcome.FAILS:
                return trial
            (self.tried if outcome is Outcome.HOLDS else self.aside).append(trial)
            if self.judge.floats and not in_floats:
                before, self.tried = self.tried, []
                failure = self._first_failure(before, count)
                if failure is not None:
                    return failure
            if len(self.tried) >= count:
                break
        return None

    def _trials(self, count: int) -> Iterator[_Trial]:
        """Draw configurations that the rule applies to, each once."""
        keys: set[object] = set()
        idle_draws = 0
        for _ in range(max(_ATTEMPTS_PER_TRIAL * count, self.patience)):
            if len(keys) >= self.least and (
                idle_draws > _MOST_IDLE_DRAWS or self.attempts >= _ATTEMPTS_PER_TRIAL * count
            ):
                return
            self.attempts += 1
            self.choices.restart()
            configuration = draw_configuration(self.judge.plan, self.choices)
            idle_draws += 1
            if configuration is None or configuration.key in keys:
                continue
            sides = self.judge.sides(configuration)
            if sides is not None:
                idle_draws = 0
                keys.add(configuration.key)
                yield _Trial(configuration, sides, self.choices.taken)

    def _passed(self) -> Verdict:
        evidence, trials = self._evidence(), len(self.tried)
        if trials < self.least:
            reason = (
                f"only {trials} of {self.attempts} random operands fit the rule, expected"
                f" {self.least} at least"
            )
            return Verdict(self.rule.name, "untested", evidence, trials, reason)
        precision = "up to rounding" if self.judge.floats else "exactly"
        reason = f"both sides agree {precision} on {trials} configurations"
        return Verdict(self.rule.name, "sound", evidence, trials, reason)

    def _unsound(self, trial: _Trial, shrink: bool) -> Verdict:
        configuration = trial.configuration
        if shrink:
            from relational_tensat.rules.soundness.shrinking import smallest

            choices = [] if trial.far else trial.taken
            configuration = smallest(self.judge, configuration, choices)
        sides = self.judge.sides(configuration) or trial.sides
        example = counterexample(self.rule, configuration, sides)
        reason = "the two sides differ" if example is None else example.summary()
        trials = len(self.tried) + 1
        return Verdict(self.rule.name, "unsound", self._evidence(), trials, reason, example)

    def _evidence(self) -> str:
        return "float64" if self.judge.floats else "exact"
