"""Verification of rules: both sides on many configurations, drawn and made, until nothing new comes.

Exact arithmetic comes first. If it says no, float64 is asked, since the law may be about real numbers. From
then on the rule is judged in float64 only, earlier configurations included. A law that held is
tried once more as a machine computes it, in every element type: see ``typed``.

A rule is sound if every way that it may go was gone (``decisions``). Ways that no configuration went by
chance are looked for (``reaching``). A way that is neither found nor proved to be impossible leaves the
rule untested.

A rule is drawn with tensors for its variables. Its claim about tuples is that of its variants, in which a
variable is the tuple of two tensors: a result of ``split`` is an operand of ``concat``, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Apply, Expr, Rule, Term, Var, nodes_of, parts_of
from relational_tensat.rules.soundness.coverage import Coverage
from relational_tensat.rules.soundness.decisions import Decisions, Goal
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.element_types import TypedJudge
from relational_tensat.rules.soundness.failure_text import counterexample, machine_counterexample
from relational_tensat.rules.soundness.instances import PER_GOAL, InstanceSource, Trial
from relational_tensat.rules.soundness.judgement import Differences, Judge, LawOutcome, tells_nan
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.rules.soundness.solver import has_z3
from relational_tensat.rules.soundness.verdict import Shown, Verdict
from relational_tensat.tensor.operators import get_operator

#: Different configurations that a rule is tried on at least, by default.
DEFAULT_TRIALS = 80
#: Fewer say nothing: the rule is untested.
LEAST_TRIALS = 12
#: Configurations in which a variable stands for a tuple, beside the others.
_TUPLE_TRIALS = 15
#: Attempts to draw a configuration while there are too few.
_PATIENCE = 12_000
#: Outcomes that a reason names, at most.
_MOST_NAMED = 4


def verify_rule(
    rule: Rule, *, seed: int = 0, trials: int = DEFAULT_TRIALS, shrink: bool = True
) -> Verdict:
    """Find out whether a rule's law holds wherever its conditions do; ``worth`` is not looked at.

    The same seed and trials give the same verdict.

    Args:
        trials: different configurations to try at least; more, while they bring something new.
        shrink: look for the smallest counterexample that can be found (Hypothesis), not any.
    """
    law = rule.everywhere
    verification = _Verification(law, seed)
    verdict = verification.run(trials, shrink)
    if verdict.status == "sound":
        verdict = _on_machine(verification, verdict, seed, shrink)
    for variant in _tuple_variants(law) if verdict.status == "sound" else ():
        of_tuples = _Verification(variant, seed, patience=0, near_only=True).run(
            _TUPLE_TRIALS, shrink
        )
        if of_tuples.status == "unsound":
            return of_tuples
    return verdict


def verify_rules(
    rules: Iterable[Rule], *, seed: int = 0, trials: int = DEFAULT_TRIALS, shrink: bool = True
) -> list[Verdict]:
    """Verify rules one after the other; see ``verify_rule`` and ``judged``."""
    return [judged(rule, seed=seed, trials=trials, shrink=shrink) for rule in rules]


def judged(
    rule: Rule, *, seed: int = 0, trials: int = DEFAULT_TRIALS, shrink: bool = True
) -> Verdict:
    """As ``verify_rule``, but a rule that the checker fails on is untested, and says why."""
    try:
        return verify_rule(rule, seed=seed, trials=trials, shrink=shrink)
    except Exception as error:  # whatever it is, other rules have their verdicts
        reason = " ".join(f"the checker failed on it: {type(error).__name__}: {error}".split())
        return Verdict(rule.name, "untested", "exact", 0, reason)


def _on_machine(verification: _Verification, verdict: Verdict, seed: int, shrink: bool) -> Verdict:
    """Return the verdict with what machine arithmetic says, element type by element type."""
    typed = TypedJudge(verification.judge, seed)
    trials = (*verification.tried, *verification.aside)
    typed.run([trial.configuration for trial in trials], verification.apart())
    if typed.failure is None:
        return replace(
            verdict, types=typed.evidence, shown=replace(verdict.shown, values=typed.shown)
        )
    if shrink:
        from relational_tensat.rules.soundness.smallest import trimmed

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


class _Verification:
    """The verification of one rule.

    Args:
        near_only: near configurations, no more than are asked for, and no ways.

    Attributes:
        tried: where the law held.
        aside: where the left side has no exact value: it divides by 0, or has an infinity in it.
    """

    def __init__(
        self, rule: Rule, seed: int, patience: int = _PATIENCE, near_only: bool = False
    ) -> None:
        self.rule = rule
        self.near_only = near_only
        self.judge = Judge(DrawPlan(rule), seed)
        self.coverage = Coverage(self.judge.plan, Decisions(rule, self.judge.plan.compiled))
        self.differences = Differences(rule, self.coverage.decisions, seed)
        self.instances = InstanceSource(self.judge, self.coverage, seed, patience)
        self.least = LEAST_TRIALS
        self.tried: list[Trial] = []
        self.aside: list[Trial] = []

    def run(self, trials: int, shrink: bool) -> Verdict:
        self.least = max(1, min(LEAST_TRIALS, trials))
        most = trials if self.near_only else None
        failure = self._first_failure(self.instances.near(trials, self.least, most))
        if failure is None and len(self.tried) + len(self.aside) < self.least:
            failure = self._first_failure(self.instances.of_conditions(self.least))
        if failure is None and len(self.tried) < self.least and self.aside:
            again = [*self.tried, *self.aside]
            self.judge.floats = True
            self.tried.clear()
            self.aside.clear()
            failure = self._first_failure(again)
        if failure is None and len(self.tried) >= self.least and not self.near_only:
            for more in (
                self.instances.far(trials),
                self.instances.with_ones(self.tried),
                self.instances.of_goals(self.tried),
            ):
                failure = failure or self._first_failure(more)
            failure = failure or self._first_aside()
        return self._passed() if failure is None else self._unsound(failure, shrink)

    def apart(self) -> list[RuleConfiguration]:
        """Return what is tried on a machine's numbers in any case: goals that few told of, long axes."""
        coverage = self.coverage
        rare = {goal for goal in coverage.decisions.goals if coverage.told[goal] <= PER_GOAL}
        found: dict[Goal, RuleConfiguration] = {}
        for trial in self.tried if rare else ():
            for goal in coverage.goals(trial.configuration) & rare:
                found.setdefault(goal, trial.configuration)
        configurations = [*found.values(), *self.instances.long]
        return list({configuration.key: configuration for configuration in configurations}.values())

    def _first_failure(self, trials: Iterable[Trial]) -> Trial | None:
        for trial in trials:
            in_floats = self.judge.floats
            outcome = self.judge.holds(trial.configuration, trial.sides)
            if outcome is LawOutcome.FAILS:
                return trial
            self._note(trial, outcome)
            if self.judge.floats and not in_floats:
                before = list(self.tried)
                self.tried.clear()
                self.coverage.forget()
                failure = self._first_failure(before)
                if failure is not None:
                    return failure
        return None

    def _note(self, trial: Trial, outcome: LawOutcome) -> None:
        if outcome is LawOutcome.UNDEFINED:
            self.aside.append(trial)
            return
        self.tried.append(trial)
        if not self.near_only:
            self.coverage.add(trial.configuration, partial(self._tells, trial))

    def _tells(self, trial: Trial, goal: Goal) -> bool:
        """Whether a trial's result is one that tells anything, and would be another without the goal."""
        both = trial.configuration, trial.sides
        return self.differences.matters(goal, *both) and self.judge.tells(*both)

    def _first_aside(self) -> Trial | None:
        """Judge in float64 what has no exact value and went ways that nothing else went."""
        missed, judge = set(self.coverage.open_goals()), replace(self.judge, floats=True)
        for trial in list(self.aside) if missed else ():
            if self.coverage.goals(trial.configuration) & missed:
                outcome = judge.holds(trial.configuration, trial.sides)
                if outcome is LawOutcome.FAILS:
                    return trial
                if outcome is LawOutcome.HOLDS:
                    self._note(trial, outcome)
        return None

    def _passed(self) -> Verdict:
        evidence, trials = self._evidence(), len(self.tried)
        if trials < self.least:
            reason = (
                f"only {trials} of {self.instances.attempts} random operands fit the rule, expected"
                f" {self.least} at least"
            )
            return Verdict(self.rule.name, "untested", evidence, trials, reason)
        if self.judge.unsettled and not self.judge.floats:
            reason = (
                f"{self.judge.unsettled} instances differ as formulas, with numbers too large to compare in"
                " float64; no other instance shows that the law is about real numbers"
            )
            return Verdict(self.rule.name, "untested", evidence, trials, reason)
        shown = Shown() if self.near_only else self._shown()
        if shown.missed:
            named = "; nor one in which ".join(shown.missed[:_MOST_NAMED])
            more = len(shown.missed) - _MOST_NAMED
            reason = f"no instance was found in which {named}{f'; and {more} more' * (more > 0)}"
            if not has_z3():
                reason += " (z3 looks for them: pip install relational-tensat[proofs])"
            return Verdict(self.rule.name, "untested", evidence, trials, reason, shown=shown)
        precision = "up to rounding" if self.judge.floats else "exactly"
        reason = f"both sides agree {precision} on {trials} configurations"
        if shown.outcomes > len(self.rule.conditions):
            reason += f", which went all {shown.outcomes} ways that it decides between"
        return Verdict(self.rule.name, "sound", evidence, trials, reason, shown=shown)

    def _shown(self) -> Shown:
        """Return what the configurations have shown, and what they have not."""
        decisions = self.coverage.decisions
        missed = self.coverage.open_goals()
        impossible: list[Goal] = []
        if missed and has_z3():
            from relational_tensat.rules.soundness.unreachable import proved

            impossible = proved(self.rule, decisions, missed)
        unknown = [goal for goal in missed if goal not in impossible]
        soft = [goal for goal in unknown if has_z3() and decisions.is_soft(goal)]
        return Shown(
            outcomes=len(decisions.goals) - len(missed),
            impossible=tuple(map(decisions.text, impossible)),
            missed=tuple(decisions.text(goal) for goal in unknown if goal not in soft),
            untried=tuple(map(decisions.text, soft)),
            ones=len(self.coverage.ones),
        )

    def _unsound(self, trial: Trial, shrink: bool) -> Verdict:
        configuration = trial.configuration
        if shrink:
            from relational_tensat.rules.soundness.smallest import smallest

            configuration = smallest(self.judge, configuration, trial.taken)
        sides = self.judge.sides(configuration) or trial.sides
        example = counterexample(self.rule, configuration, sides)
        trials, evidence = len(self.tried) + 1, self._evidence()
        if example is None and tells_nan(sides):
            reason = "the two sides differ as formulas, and numbers do not show what holds of NaN"
            return Verdict(self.rule.name, "untested", evidence, trials, reason)
        reason = "the two sides differ" if example is None else example.summary()
        return Verdict(self.rule.name, "unsound", evidence, trials, reason, example)

    def _evidence(self) -> str:
        return "float64" if self.judge.floats else "exact"


def _tuple_variants(rule: Rule) -> list[Rule]:
    """Return the rule once per variable that may stand for a tuple, with a pair in its place.

    No condition may ask anything of the variable, since conditions on tuples do not hold, and no
    other operator may take it.
    """
    asked = {part for expr in _expressions(rule) for part in parts_of(expr)}
    terms = (*rule.sources, *rule.targets)
    return [
        _with_pair(rule, name)
        for name in tensor_vars(rule)
        if Var(name) not in asked and all(_takes_tuple(term, name) for term in terms)
    ]


def _expressions(rule: Rule) -> Iterator[Expr]:
    yield from rule.conditions
    for target in rule.targets:
        for node in nodes_of(target):
            yield from (value for _, value in node.attrs)


def _takes_tuple(term: Term, name: str) -> bool:
    """Whether every operator in a term that has the variable for an operand takes tuples."""
    if isinstance(term, Var):
        return True
    if Var(name) in term.children and not get_operator(term.op).takes_tuples:
        return False
    return all(_takes_tuple(child, name) for child in term.children)


def _with_pair(rule: Rule, name: str) -> Rule:
    pair = Apply("noop", (Var(f"{name}-0"), Var(f"{name}-1")))

    def put(term: Term) -> Term:
        if isinstance(term, Var):
            return pair if term.name == name else term
        return replace(term, children=tuple(put(child) for child in term.children))

    def put_source(term: Apply) -> Apply:
        return replace(term, children=tuple(put(child) for child in term.children))

    return replace(
        rule,
        sources=tuple(put_source(source) for source in rule.sources),
        targets=tuple(put(target) for target in rule.targets),
    )
