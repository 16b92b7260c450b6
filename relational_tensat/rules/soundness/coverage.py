"""The coverage of a rule's instances: the ways of its decisions, the forms of its operands.

Instances are drawn until nothing new comes. These are new: an outcome of a decision, a rank, an element
type, a word or a list's length among the attributes, a place where one of two operands has a dim of 1 and
the other has many.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from relational_tensat.rules.soundness.decisions import Decisions, Goal
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.inputs import Inputs
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.tensor.operators import Use
from relational_tensat.tensor.types import TensorType

#: Instances whose results tell nothing count as one, if there are so many.
_SILENT = 6
#: So many that tell something are asked for.
_ENOUGH = 12
#: Axes, counted from the back, on which operands are compared.
_AXES = 4


@dataclass
class Coverage:
    """The coverage of one rule's instances so far.

    Attributes:
        met: how many instances met each goal.
        told: how many of these would have had other results without it, as far as more were asked for.
        paths: such goals that instances met together.
        quiet: how many instances in a row brought nothing new.
        ones: per pair of operands and axis from the back, whether one has a dim of 1 there and the other
            has many.
    """

    plan: DrawPlan
    decisions: Decisions
    met: Counter[Goal] = field(default_factory=Counter)
    told: Counter[Goal] = field(default_factory=Counter)
    paths: set[frozenset[Goal]] = field(default_factory=set)
    quiet: int = 0
    ones: set[tuple[int, int, int]] = field(default_factory=set)
    _features: set[object] = field(default_factory=set)

    def add(self, configuration: RuleConfiguration, tells: Callable[[Goal], bool]) -> None:
        """Take in an instance on which the law was judged.

        Args:
            tells: whether its result would be another if a goal had not been met; asked where few did.
        """
        new = False
        inputs = Inputs.of(self.plan, configuration)
        if self.decisions.goals:
            goals = self.goals(configuration)
            new = any(goal not in self.met for goal in goals)
            self.met.update(goals)
            told = {goal for goal in goals if self.told[goal] < _ENOUGH and tells(goal)}
            self.told.update(told)
            settled = {goal for goal in goals if self.told[goal] >= _ENOUGH}
            self.paths.add(frozenset(told | settled))
        ones = set(_ones(configuration.var_types))
        for feature in itertools.chain(_features(inputs), ones):
            if feature not in self._features:
                self._features.add(feature)
                new = True
        self.ones |= ones
        self.quiet = 0 if new else self.quiet + 1

    def open_pairs(self) -> list[tuple[Goal, Goal]]:
        """Return outcomes of two decisions that were met, and not by one instance; the earlier first.

        Only decisions that may go either way, and that are asked whichever way the other goes.
        """
        by_place: dict[int, list[Goal]] = {}
        for goal in self.decisions.goals:
            if self.met[goal] and not self.decisions.decisions[goal.place].hidden:
                by_place.setdefault(goal.place, []).append(goal)
        free = [goals for goals in by_place.values() if len(goals) > 1]
        pairs = (
            pair
            for first, second in itertools.combinations(free, 2)
            for pair in itertools.product(first, second)
        )
        decisions = self.decisions.decisions
        guards = {p: {g.place for g in d.guards} for p, d in enumerate(decisions)}
        return [
            (a, b)
            for a, b in pairs
            if a.place not in guards[b.place]
            and decisions[a.place].expr != decisions[b.place].expr
            and not any(a in path and b in path for path in self.paths)
        ]

    def goals(self, configuration: RuleConfiguration) -> set[Goal]:
        """Return the goals that a configuration meets."""
        inputs = Inputs.of(self.plan, configuration)
        events, _ = self.decisions.outcomes(inputs.types, list(inputs.values))
        return {event.goal for event in events}

    def open_goals(self, least: int = 1) -> list[Goal]:
        """Return the goals that fewer instances met."""
        return [goal for goal in self.decisions.goals if self.count(goal) < least]

    def count(self, goal: Goal) -> int:
        """Return how many instances met a goal; of those that tell nothing, several count as one.

        Where two branches are the same in all, no instance tells more.
        """
        return self.told[goal] + (self.met[goal] - self.told[goal]) // _SILENT

    def forget(self) -> None:
        """Forget which goals were met: the instances are judged again."""
        self.met.clear()
        self.told.clear()
        self.paths.clear()


def _features(inputs: Inputs) -> Iterator[object]:
    for index, kind in enumerate(inputs.types):
        yield "rank", index, kind.rank
        yield "dtype", index, kind.dtype
    for index, value in enumerate(inputs.values):
        if isinstance(value, tuple):
            yield "length", index, len(value)
        elif isinstance(value, str | bool) or (isinstance(value, int) and -4 <= value <= 4):
            yield "value", index, value


def _ones(types: Sequence[TensorType]) -> Iterator[tuple[int, int, int]]:
    for (i, a), (j, b) in itertools.permutations(enumerate(types), 2):
        for axis in range(1, min(a.rank, b.rank, _AXES) + 1):
            if a.shape[-axis] == 1 < b.shape[-axis]:
                yield i, j, axis


#: Configurations that are changed, those that are tried of all changed ones, and what stands for many.
_BASES = 14
_MOST_CHANGED = 60
_MANY = 5
#: So many operands have 1 or many in all ways that there are; of more, one against the others.
_ALL_WAYS = 4


def one_against_many(
    plan: DrawPlan, configurations: Iterable[RuleConfiguration]
) -> Iterator[RuleConfiguration]:
    """Yield configurations with a dim of 1 where they had many, or many where one operand had 1."""
    by_form: dict[object, RuleConfiguration] = {}
    for configuration in configurations:
        types = configuration.var_types
        ones = sum(size == 1 for kind in types for size in kind.shape)
        inputs = Inputs.of(plan, configuration)
        axes = tuple(value for value in inputs.values if isinstance(value, int))
        form = tuple(kind.rank for kind in types), axes
        best = by_form.get(form)
        size = sum(kind.size for kind in types)
        if size <= 600 and (best is None or ones < _ones_in(best)):
            by_form[form] = configuration
    bases = sorted(by_form.values(), key=_ones_in)[:_BASES]
    changed = [list(_changed(plan, base)) for base in bases]
    turns = (c for row in itertools.zip_longest(*changed) for c in row if c is not None)
    yield from itertools.islice(turns, _MOST_CHANGED)


#: Beyond what float16 counts to.
_LONG_AXIS = 4100


def with_long_axes(
    plan: DrawPlan, configurations: Sequence[RuleConfiguration]
) -> Iterator[RuleConfiguration]:
    """Yield small configurations with one long axis, where elements are positions on an axis."""
    if any(Use.INDEX in term.operator.uses for term in plan.terms):
        small = sorted(configurations, key=lambda c: sum(kind.size for kind in c.var_types))
        for base in small[:3]:
            inputs = Inputs.of(plan, base)
            for index, axis, _ in inputs.dims():
                configuration = inputs.with_dim(index, axis, _LONG_AXIS).configuration(plan)
                if configuration is not None:
                    yield configuration


def _ones_in(configuration: RuleConfiguration) -> int:
    return sum(size == 1 for kind in configuration.var_types for size in kind.shape)


def _changed(plan: DrawPlan, base: RuleConfiguration) -> Iterator[RuleConfiguration]:
    """Yield all ways in which some operands have 1 on an axis, counted from the back, the others many."""
    inputs = Inputs.of(plan, base)
    operands = range(len(inputs.types))
    if len(operands) > _ALL_WAYS:
        ways = [frozenset({one}) for one in operands]
        ways += [frozenset(operands) - way for way in ways]
    else:
        counts = range(1, max(2, len(operands)))
        ways = [frozenset(w) for n in counts for w in itertools.combinations(operands, n)]
    for axis in range(1, max((kind.rank for kind in inputs.types), default=0) + 1):
        sizes = [kind.shape[-axis] for kind in inputs.types if kind.rank >= axis]
        many = max(sizes) if max(sizes) > 1 else _MANY
        for ones in ways:
            changed = inputs
            for index, kind in enumerate(inputs.types):
                if kind.rank >= axis and (index in ones or kind.shape[-axis] == 1):
                    size = 1 if index in ones else many
                    changed = changed.with_dim(index, kind.rank - axis, size)
            configuration = None if changed == inputs else changed.configuration(plan)
            if configuration is not None:
                yield configuration
