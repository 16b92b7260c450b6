"""Where instances of a rule come from: drawn near and far, changed, and made for what it decides."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from relational_tensat.rules.soundness.coverage import Coverage, one_against_many, with_long_axes
from relational_tensat.rules.soundness.decisions import Goal
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.rules.soundness.inputs import Inputs
from relational_tensat.rules.soundness.judgement import Judge
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.rules.soundness.sides import Sides
from relational_tensat.rules.soundness.solved_instances import Reaching
from relational_tensat.rules.soundness.solver import has_z3
from relational_tensat.tensor.operators.samples import SeededChoices

#: Near configurations are drawn until so many in a row bring nothing new, or a multiple of those asked for.
_QUIET = 40
_MOST_TIMES = 6
#: Far configurations, and attempts to draw one.
_FAR_TRIALS = 30
_FAR_ATTEMPTS = 240
#: Attempts to draw a configuration, per trial; and how many in a row may bring nothing new before the
#: rule's configurations count as exhausted.
_ATTEMPTS_PER_TRIAL = 8
_MOST_IDLE_DRAWS = 1_500
#: Configurations in which each goal is met, if so many are found, and rounds of looking for them: those of
#: one round lead to more in the next.
PER_GOAL = 6
_ROUNDS = 3
#: Pairs of outcomes that are looked for together, and configurations for each.
_MOST_PAIRS = 24
_PER_PAIR = 3
#: Draws of a rank or length that is asked for, and draws without the conditions.
_REDRAWS = 30
_MOST_REDRAWN = 4
_RELAXED_DRAWS = 400
_BEGINNINGS = 60


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration that the rule applies to, and the choices that led to it, if it was drawn near."""

    configuration: RuleConfiguration
    sides: Sides
    taken: Sequence[int] = ()


class InstanceSource:
    """The configurations of one rule, each once.

    Attributes:
        attempts: near draws so far.
        long: configurations with a long axis that elements are positions on.
    """

    def __init__(self, judge: Judge, coverage: Coverage, seed: int, patience: int) -> None:
        self._judge = judge
        self._plan = judge.plan
        self._coverage = coverage
        self._patience = patience
        self._choices = SeededChoices(zlib.crc32(judge.plan.rule.name.encode()) ^ seed)
        self._keys: set[object] = set()
        self.attempts = 0
        self.long: list[RuleConfiguration] = []

    # --- drawn ---

    def near(self, count: int, least: int, most: int | None = None) -> Iterator[Trial]:
        """Draw configurations until they bring nothing new.

        Args:
            count: that are drawn at least, where there are so many.
            least: while there are fewer, many attempts are made.
            most: that are drawn; a multiple of ``count`` where it is not given.
        """
        most = _MOST_TIMES * count if most is None else most
        idle_draws = 0
        for _ in range(max(_ATTEMPTS_PER_TRIAL * most, self._patience)):
            found = len(self._keys)
            if found >= most or (found >= count and self._coverage.quiet >= _QUIET):
                return
            if found >= least and (
                idle_draws > _MOST_IDLE_DRAWS or self.attempts >= _ATTEMPTS_PER_TRIAL * most
            ):
                return
            self.attempts += 1
            self._choices.restart()
            trial = self._trial(draw_configuration(self._plan, self._choices))
            idle_draws = 0 if trial else idle_draws + 1
            if trial is not None:
                yield replace(trial, taken=self._choices.taken)

    def far(self, count: int) -> Iterator[Trial]:
        """Draw far configurations."""
        drawn = (self._drawn_far() for _ in range(_FAR_ATTEMPTS))
        trials = (trial for trial in map(self._trial, drawn) if trial is not None)
        yield from itertools.islice(trials, min(count, _FAR_TRIALS))

    def _drawn_far(self) -> RuleConfiguration | None:
        return draw_configuration(self._plan, self._choices, far=True)

    def _trial(self, configuration: RuleConfiguration | None) -> Trial | None:
        """Return a configuration as a trial; None if it is invalid or known, or the rule does not apply."""
        if configuration is None or configuration.key in self._keys:
            return None
        sides = self._judge.sides(configuration)
        if sides is None:
            return None
        self._keys.add(configuration.key)
        return Trial(configuration, sides)

    # --- made ---

    def made(self, configurations: Iterable[RuleConfiguration]) -> Iterator[Trial]:
        """Yield those of some configurations that the rule applies to."""
        trials = map(self._trial, configurations)
        return (trial for trial in trials if trial is not None)

    def with_ones(self, known: Sequence[Trial]) -> Iterator[Trial]:
        """Yield known configurations with a dim of 1 against many, or with a long axis."""
        tried = [trial.configuration for trial in known]
        self.long = list(with_long_axes(self._plan, tried))
        return self.made(itertools.chain(one_against_many(self._plan, tried), self.long))

    def of_goals(self, known: Sequence[Trial]) -> Iterator[Trial]:
        """Yield configurations in which decisions go ways that few went.

        Args:
            known: those that were tried, to which what is yielded is added meanwhile.
        """
        if has_z3() and self._coverage.open_goals(PER_GOAL):
            yield from self.made(self._for_goals(known))

    def _for_goals(self, known: Sequence[Trial]) -> Iterator[RuleConfiguration]:
        coverage = self._coverage
        for _ in range(_ROUNDS):
            open_goals = coverage.open_goals()
            for goal in coverage.open_goals(PER_GOAL):
                yield from self._for_goal(goal, known)
            if len(coverage.open_goals()) in (0, len(open_goals)):
                break
        for first, second in coverage.open_pairs()[:_MOST_PAIRS]:
            near = [trial for trial in known if first in coverage.goals(trial.configuration)]
            beginnings = [Inputs.of(self._plan, trial.configuration) for trial in near]
            found = self._reaching.instances(second, beginnings, also=first)
            yield from itertools.islice(found, _PER_PAIR)

    def _for_goal(self, goal: Goal, known: Sequence[Trial]) -> Iterator[RuleConfiguration]:
        enough = 1 if self._coverage.decisions.is_soft(goal) else PER_GOAL
        beginnings = [Inputs.of(self._plan, trial.configuration) for trial in known]
        for configuration in self._reaching.instances(goal, beginnings):
            yield configuration
            if enough > 1:
                yield from self._reaching.variations(goal, configuration)
            if self._coverage.count(goal) >= enough:
                return

    def of_conditions(self, least: int) -> Iterator[Trial]:
        """Yield configurations that meet conditions which hardly any that is drawn meets."""
        if not has_z3() or not self._plan.rule.conditions or not self._patience:
            return
        drawn = [self._relaxed_draw(turn % 3 == 2) for turn in range(_RELAXED_DRAWS)]
        beginnings = [Inputs.of(self._plan, found) for found in drawn if found is not None]
        step = max(1, len(beginnings) // _BEGINNINGS)
        for start in range(_ROUNDS):
            before = len(self._keys)
            yield from self.made(self._reaching.instances(None, beginnings[start::step]))
            if len(self._keys) == before or len(self._keys) >= 2 * least:
                return

    @cached_property
    def _reaching(self) -> Reaching:
        return Reaching(self._plan, self._coverage.decisions, self._redrawn)

    @cached_property
    def _relaxed(self) -> DrawPlan:
        return DrawPlan(replace(self._plan.rule, conditions=()))

    def _relaxed_draw(self, far: bool, rank: int | None = None) -> RuleConfiguration | None:
        return draw_configuration(self._relaxed, self._choices, far=far, rank=rank)

    def _redrawn(self, form: Mapping[str, int]) -> Sequence[Inputs]:
        """Return drawn inputs with these ranks and lengths, or most of them; conditions apart."""
        ranks: dict[int, None] = {}
        for name, number in form.items():
            near = (number,) if name.startswith("rank") else (number, number // 2, number + 2)
            ranks.update(dict.fromkeys(near))
        turns = itertools.product(ranks, range(_REDRAWS))
        drawn = [self._relaxed_draw(turn % 2 == 1, rank) for rank, turn in turns]
        inputs = [Inputs.of(self._plan, found) for found in drawn if found is not None]
        return sorted(inputs, key=lambda found: self._misfits(found, form))[:_MOST_REDRAWN]

    def _misfits(self, inputs: Inputs, form: Mapping[str, int]) -> int:
        numbers = dict(inputs.numbers(self._plan))
        return sum(numbers.get(name) != number for name, number in form.items())
