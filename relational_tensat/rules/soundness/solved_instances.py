"""Instances for what a rule decides and no drawn instance showed: z3 finds the numbers.

An instance at hand is run again with traced numbers. The questions up to a decision, with the last answer
the other way round, are what z3 solves for dims, lengths and attributes. The solution is run in turn, since
another question may now be in the way; most decisions are reached after a few.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from relational_tensat.rules.soundness import traces
from relational_tensat.rules.soundness.decisions import Decisions, Event, Goal
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.inputs import UNFIT, Inputs, applied_traced, built
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.rules.soundness.solver import model_of

#: What z3 may spend on one question, in its own unit: some 0.2 s.
_EFFORT = 150_000
#: Upper bounds of dims and numbers, the smallest first: small instances are quick to judge.
_BOUNDS = (24, 700, 1 << 21)
#: Questions for one goal, and for one instance to begin with; instances to begin with; how often one leads
#: to the next.
_MOST_QUESTIONS = 240
_QUESTIONS_EACH = 16
_MOST_BEGINNINGS = 20
_MOST_OF_PAIRS = 5
_DEEPEST = 6
#: Questions for all goals of one rule.
_MOST_IN_ALL = 900
#: Elements of what one begins with, if there is smaller.
_LARGE = 4096
#: Constraints that are turned round, of a run that ended before it came to the decision.
_MOST_TURNED = 4
#: Preferences of instances beside the constraints on them: those of one beginning share one.
UNLIKE, ALIKE = "unlike", "alike"
#: A list of axes stays an order of them.
ORDER = "order"
_TASTES = ("", UNLIKE, ALIKE)


@dataclass(frozen=True, slots=True)
class TracedRun:
    """One run with traced numbers.

    Attributes:
        constraints: the questions about the numbers, and the answers.
        events: the decisions, if it came to these.
        applies: whether all conditions held.
    """

    inputs: Inputs
    constraints: Sequence[tuple[Any, bool]]
    events: Sequence[Event]
    applies: bool


@dataclass
class Reaching:
    """Looks for instances of one rule.

    Args:
        redraw: draws inputs with given ranks and lists' lengths, by their names, or most of them.
    """

    plan: DrawPlan
    decisions: Decisions
    redraw: Callable[[Mapping[str, int]], Sequence[Inputs]]
    _runs: dict[Inputs, TracedRun] = field(default_factory=dict)
    _variables: dict[int, frozenset[str]] = field(default_factory=dict)
    #: Terms that were looked at: z3 gives the ids of those that are gone to others.
    _kept: list[Any] = field(default_factory=list)
    _questions: int = 0
    _allowed: int = 0
    _taste: str = ""
    _asked: int = 0
    _also: Goal | None = None

    def instances(
        self, goal: Goal | None, beginnings: Sequence[Inputs], also: Goal | None = None
    ) -> Iterator[RuleConfiguration]:
        """Yield configurations in which goals are met, as far as is known; of no goal, the conditions.

        Args:
            also: a goal that the beginnings meet, and that is to stay met.
        """
        self._also = also
        if self._asked > _MOST_IN_ALL:
            return
        self._questions = 0
        seen: set[Inputs] = set()
        nearest = self._nearest(goal, beginnings)
        for turn, beginning in enumerate(nearest[:_MOST_OF_PAIRS] if also else nearest):
            self._taste = _TASTES[turn % len(_TASTES)]
            self._allowed = min(self._questions + _QUESTIONS_EACH, _MOST_QUESTIONS)
            yield from itertools.islice(self._from(beginning, goal, seen, 0), 1)

    def _from(
        self, inputs: Inputs, goal: Goal | None, seen: set[Inputs], depth: int
    ) -> Iterator[RuleConfiguration]:
        """Yield what comes of one instance, or of those that it leads to."""
        for found in self._turned(self._run(inputs), goal):
            if found not in seen:
                seen.add(found)
                configuration = found.configuration(self.plan)
                if configuration is not None:
                    found = Inputs.of(self.plan, configuration)  # as operators write attributes
                    if self._meets(found, goal):
                        yield configuration
                        return
                if depth < _DEEPEST:
                    yield from self._from(found, goal, seen, depth + 1)
            if self._questions >= self._allowed:
                return

    def variations(
        self, goal: Goal, configuration: RuleConfiguration
    ) -> Iterator[RuleConfiguration]:
        """Yield configurations like one that meets a goal, which meet it, too."""
        for inputs in Inputs.of(self.plan, configuration).varied(self.plan):
            varied = inputs.configuration(self.plan)
            if varied is not None and self._meets(Inputs.of(self.plan, varied), goal):
                yield varied

    def _meets(self, inputs: Inputs, goal: Goal | None) -> bool:
        events, applies = self.decisions.outcomes(inputs.types, list(inputs.values))
        met = {event.goal for event in events}
        return applies and all(wanted is None or wanted in met for wanted in (goal, self._also))

    def _nearest(self, goal: Goal | None, beginnings: Sequence[Inputs]) -> list[Inputs]:
        """Return inputs to begin with: first those that come to the decision, each of another form."""
        by_form: dict[tuple[bool, object], list[Inputs]] = {}
        for inputs in beginnings:
            came = any(goal and e.goal.place == goal.place for e in self._run(inputs).events)
            by_form.setdefault((not came, inputs.form()), []).append(inputs)
        columns = [_spread(by_form[form]) for form in sorted(by_form, key=lambda form: form[0])]
        rows = itertools.zip_longest(*columns)
        turns = [inputs for row in rows for inputs in row if inputs is not None]
        return turns[:_MOST_BEGINNINGS]

    def _run(self, inputs: Inputs) -> TracedRun:
        run = self._runs.get(inputs)
        if run is None:
            run = self._runs[inputs] = self._traced(inputs)
        return run

    def _traced(self, inputs: Inputs) -> TracedRun:
        numbers = inputs.traced(self.plan)
        with traces.recording() as constraints:
            try:
                _, values, _ = built(self.plan, numbers, applied_traced)
            except UNFIT:
                return TracedRun(inputs, constraints, (), False)
            events, applies = self.decisions.outcomes(numbers.types, values)
        return TracedRun(inputs, constraints, events, applies)

    def _turned(self, run: TracedRun, goal: Goal | None) -> Iterator[Inputs]:
        """Yield inputs that answer a question the other way that keeps a run from the goal."""
        places = [
            place
            for event in run.events
            if goal is not None and event.goal.place == goal.place and event.goal != goal
            for place in range(event.end - 1, event.start - 1, -1)
        ]
        if not places or not run.applies:
            last = len(run.constraints)
            places += range(last - 1, max(-1, last - 1 - _MOST_TURNED), -1)
        for place in dict.fromkeys(places):
            yield from self._solved(run, place)

    def _solved(self, run: TracedRun, place: int) -> Iterator[Inputs]:
        import z3

        term, outcome = run.constraints[place]
        wanted = z3.Not(term) if outcome else term
        numbers = dict(run.inputs.numbers(self.plan))
        own = self._names(term)
        if not own:
            return
        before = [(t if held else z3.Not(t), self._names(t)) for t, held in run.constraints[:place]]
        linked = _linked(own, [names for _, names in before])
        ways = [(own, before, ""), (linked, before, ""), (own, [], "")]
        order = run.inputs.order_of(self.plan, own)
        if order:  # sorting it compared its elements: what came out says all of them
            ways.insert(1, (order, [], ORDER))
        if len(own) > 1 and any(map(_is_form, own)):
            yield from self._one_at_a_time(run, (wanted, own), before)
        elif self._taste:
            all_ = frozenset(name for name in numbers if not _is_form(name))
            ways.insert(0, (all_ if self._taste == ALIKE else linked, before, self._taste))
        for free, kept, taste in ways:
            for bound in _BOUNDS[1:2] if taste else _BOUNDS:
                self._questions += 1
                self._asked += 1
                asked = [(wanted, own), *((t, free) for t in _tastes(taste, free))]
                model = _solution(asked, free, kept, numbers, bound)
                if model is not None:
                    yield from self._with(run.inputs, {**numbers, **model}, numbers)
                    return
            if self._questions >= self._allowed:
                return

    def _one_at_a_time(
        self,
        run: TracedRun,
        wanted: tuple[Any, frozenset[str]],
        before: Sequence[tuple[Any, frozenset[str]]],
    ) -> Iterator[Inputs]:
        """Yield inputs in which one number alone differs; ranks and lengths only grow."""
        import z3

        numbers = dict(run.inputs.numbers(self.plan))
        for name in sorted(wanted[1], key=lambda name: (_is_form(name), name)):
            own = frozenset({name})
            self._asked += 1
            grows = [(z3.Int(name) > numbers[name], own)] * _is_form(name)
            model = _solution([wanted, *grows], own, before, numbers, _BOUNDS[1])
            if model is not None:
                yield run.inputs.replaced(self.plan, {**numbers, **model})

    def _with(
        self, inputs: Inputs, numbers: Mapping[str, float], before: Mapping[str, float]
    ) -> Iterator[Inputs]:
        yield inputs.replaced(self.plan, numbers)
        form = {name: int(number) for name, number in numbers.items() if _is_form(name)}
        if any(before[name] != number for name, number in form.items()):
            yield from self.redraw(form)

    def _names(self, term: Any) -> frozenset[str]:
        key = term.get_id()
        if key not in self._variables:
            if term.num_args() == 0:
                import z3

                is_number = term.decl().kind() == int(z3.Z3_OP_UNINTERPRETED)
                names = frozenset({term.decl().name()}) if is_number else frozenset()
            else:
                names = frozenset().union(*(self._names(child) for child in term.children()))
            self._variables[key] = names
            self._kept.append(term)
        return self._variables[key]


def _spread(inputs: Sequence[Inputs]) -> list[Inputs]:
    """Return inputs of one form in another order: one of middling size, a large, the smallest, others."""
    ordered = sorted(inputs, key=lambda found: sum(kind.size for kind in found.types))
    small = [found for found in ordered if sum(kind.size for kind in found.types) <= _LARGE]
    firsts = [small[len(small) // 2], small[-1], small[0]] if small else []
    return [*dict.fromkeys([*firsts, *ordered])]


def _is_form(name: str) -> bool:
    """Whether a number is a rank or a length, not a dim or an attribute."""
    return name.startswith(("rank", "length"))


def _linked(names: frozenset[str], others: Sequence[frozenset[str]]) -> frozenset[str]:
    """Return all names that constraints bind, one after the other, to some names."""
    linked = names
    while True:
        more = linked.union(*(group for group in others if group & linked))
        if more == linked:
            return linked
        linked = more


def _solution(
    wanted: Sequence[tuple[Any, frozenset[str]]],
    free: frozenset[str],
    kept: Sequence[tuple[Any, frozenset[str]]],
    numbers: Mapping[str, float],
    bound: int,
) -> dict[str, float] | None:
    """Return numbers for free names, all others being what they are; None where z3 finds none."""
    fixed: dict[str, None] = {}
    terms: list[Any] = []
    for term, names in (*wanted, *kept):
        if names & free:
            terms.append(term)
            fixed |= dict.fromkeys(sorted(names - free))
    terms += (_variable(name, numbers[name]) == _constant(numbers[name]) for name in fixed)
    names_of_free = sorted(free)  # as a set gives them, each process would ask another question
    variables = [_variable(name, numbers[name]) for name in names_of_free]
    for name, variable in zip(names_of_free, variables, strict=True):
        low = -bound if name.startswith(("item", "value")) else int(name.startswith("dim"))
        high = min(bound, 24) if _is_form(name) else bound
        terms += (variable >= low, variable <= high)
    values = model_of(terms, variables, _EFFORT)
    if values is None:
        return None
    return dict(zip(names_of_free, map(_number, values), strict=True))


def _tastes(taste: str, free: frozenset[str]) -> Iterator[Any]:
    """Yield what makes an instance tell more: numbers that differ, or operands of one shape."""
    import z3

    dims = sorted(name for name in free if name.startswith(("dim", "item")))
    if taste == UNLIKE:
        yield from (z3.Int(name) > 1 for name in dims if name.startswith("dim"))
        if len(dims) > 1:
            yield z3.Distinct(*map(z3.Int, dims))
    elif taste == ORDER:
        items = [z3.Int(name) for name in dims]
        yield z3.Distinct(*items)
        yield from (z3.And(item >= 0, item < len(items)) for item in items)
    elif taste == ALIKE:
        by_axis: dict[str, str] = {}
        for name in (name for name in dims if name.startswith("dim")):
            first = by_axis.setdefault(name.rpartition(" ")[2], name)
            if first != name:
                yield z3.Int(first) == z3.Int(name)


def _variable(name: str, value: float) -> Any:
    import z3

    return z3.Int(name) if isinstance(value, int) else z3.Real(name)


def _constant(value: float) -> Any:
    import z3

    return z3.IntVal(value) if isinstance(value, int) else z3.RealVal(Fraction(value))


def _number(value: Any) -> float:
    import z3

    if z3.is_int_value(value):
        return int(value.as_long())
    if z3.is_rational_value(value):
        return float(value.as_fraction())
    return float(value.approx(20).as_fraction())
