"""Examples of a rule: configurations that it applies to, and whether its law holds there.

What random drawing seldom meets is often one size away from a known configuration (``Neighbours``), or
lacks what all known ones have in common (``Commonality``). For rules whose attributes are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from relational_tensat.base.errors import UsageError
from relational_tensat.rules.functions import Inapplicable
from relational_tensat.rules.instance import tensor_vars, typed_application
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, Var, parts_of
from relational_tensat.rules.soundness import Counterexample
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.rules.soundness.failure_text import counterexample
from relational_tensat.rules.soundness.judgement import Judge, LawOutcome
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.samples import RandomChoices, SeededChoices
from relational_tensat.tensor.types import AttrItems, Attrs, TensorType, ValueType

#: The last is a multiple of the others: whatever groups there are divide it.
_SIZES = (1, 2, 3, 4, 6, 12)
#: How many changes are made; and how many after one that makes ties come apart.
_CHANGES = (1, 1, 2, 2, 3)
_FURTHER_CHANGES = (0, 0, 1, 1, 2)

#: A dimension: the index of the operand, and the axis.
_Place: TypeAlias = tuple[int, int]


class Neighbours:
    """Draws operands that differ from known ones in a few sizes.

    Dimensions that are equal in all that is known mostly have to be: they are changed together as
    often as one alone is.
    """

    def __init__(self, configurations: Sequence[RuleConfiguration], choices: RandomChoices) -> None:
        self._known = configurations
        self._choices = choices
        self._tied = _tied(configurations)

    def draw(self) -> tuple[TensorType, ...]:
        """Return the types of operands, which need not fit the rule."""
        types = list(self._choices.choice(self._known).var_types)
        for _ in range(self._choices.choice(_CHANGES)):
            if self._tied and self._choices.below(2):
                self._change(types, self._choices.choice(self._tied))
            else:
                self._change_one(types, range(len(types)))
        return tuple(types)

    def draw_untied(self, operands: Sequence[int]) -> tuple[TensorType, ...]:
        """Return the types of operands: in one of those of given numbers, a size changed alone."""
        types = list(self._choices.choice(self._known).var_types)
        self._change_one(types, operands)
        for _ in range(self._choices.choice(_FURTHER_CHANGES) if self._tied else 0):
            self._change(types, self._choices.choice(self._tied))
        return tuple(types)

    def _change_one(self, types: list[TensorType], operands: Sequence[int]) -> None:
        places = [(i, axis) for i in operands for axis in range(types[i].rank)]
        if places:
            self._change(types, [self._choices.choice(places)])

    def _change(self, types: list[TensorType], places: Sequence[_Place]) -> None:
        """Give dimensions one size, another than the first of them has."""
        index, axis = places[0]
        present = types[index].shape[axis]
        size = self._choices.choice([size for size in _SIZES if size != present])
        for index, axis in places:
            shape = types[index].shape
            shape = (*shape[:axis], size, *shape[axis + 1 :])
            types[index] = replace(types[index], shape=shape)


def _tied(configurations: Sequence[RuleConfiguration]) -> list[list[_Place]]:
    """Return the sets of dimensions that are equal to each other in every known configuration."""
    alike: dict[tuple[int, ...], list[_Place]] = {}
    for index in range(len(configurations[0].var_types)):
        kinds = [configuration.var_types[index] for configuration in configurations]
        for axis in range(min(kind.rank for kind in kinds)):
            sizes = tuple(kind.shape[axis] for kind in kinds)
            alike.setdefault(sizes, []).append((index, axis))
    return [places for places in alike.values() if len(places) > 1]


def configured(rule: Rule, types: tuple[TensorType, ...]) -> RuleConfiguration | None:
    """Return the configuration of a rule for given operands; None where its sources do not fit."""
    type_of = dict(zip(tensor_vars(rule), types, strict=True))
    symbols: list[tuple[str, Attrs]] = []

    def visit(term: Term) -> ValueType | None:
        if isinstance(term, Var):
            return type_of[term.name]
        place = len(symbols)
        symbols.append((term.op, {}))
        operands = tuple(kind for kind in map(visit, term.children) if kind is not None)
        if len(operands) < len(term.children):
            return None
        typed = typed_application(term.op, _attrs(term), operands)
        if typed is None:
            return None
        symbols[place] = (term.op, dict(typed[0]))
        return typed[1]

    roots = tuple(kind for kind in map(visit, rule.sources) if kind is not None)
    if len(roots) < len(rule.sources):
        return None
    return RuleConfiguration(tuple(symbols), types, roots)


def _attrs(term: Apply) -> AttrItems:
    """Return an operator's attributes, with their defaults.

    Raises:
        UsageError: one of them is no constant.
    """
    exprs = dict(term.attrs)
    attrs = []
    for attr in get_operator(term.op).attrs:
        value = exprs.get(attr.name, Literal(attr.default))
        if not isinstance(value, Literal):
            raise UsageError(
                f"{term.op}: the attribute {attr.name} is no constant; rules are only"
                " judged here where all attributes are"
            )
        attrs.append((attr.name, value.value))
    return tuple(attrs)


#: Whether a condition holds for the rule's operands.
Test: TypeAlias = Callable[[tuple[TensorType, ...]], bool]

#: Configurations without something common, after which it is done with: so many to which the rule
#: does not apply, as it then has to be so; or so many to which it does.
_FAILURES, _SUCCESSES = 2000, 3


@dataclass(slots=True)
class CommonWord:
    """A condition that all known configurations fulfil.

    Attributes:
        operands: the indices of those that it mentions.
        failures, successes: configurations without it to which the rule did not apply, and did.
    """

    test: Test
    operands: Sequence[int]
    failures: int = 0
    successes: int = 0


class Commonality:
    """The conditions that all known configurations fulfil, in turn, as long as one is open."""

    def __init__(self, words: Sequence[CommonWord]) -> None:
        self._open = list(words)
        self._turn = 0

    def next(self) -> CommonWord | None:
        """Return a condition to do without; None when there is none left."""
        if not self._open:
            return None
        self._turn = (self._turn + 1) % len(self._open)
        return self._open[self._turn]

    def learn(self, word: CommonWord, applies: bool) -> None:
        """Note whether the rule applies to a configuration that does without a condition."""
        word.successes += applies
        word.failures += not applies
        if word.successes == _SUCCESSES or (not word.successes and word.failures == _FAILURES):
            self._open.remove(word)


@dataclass(frozen=True, slots=True)
class Example:
    """One configuration of a rule that it applies to.

    Attributes:
        holds: whether both sides are equal there, in type and in every element.
    """

    configuration: RuleConfiguration
    holds: bool


class Samples:
    """Examples of one rule, all different; it has no attribute variables.

    Attributes:
        rule: it.
        examples: those found so far.
    """

    def __init__(self, rule: Rule, seed: int) -> None:
        self.rule = rule
        self.examples: list[Example] = []
        self._plan = DrawPlan(rule)
        self._judge = Judge(self._plan, seed)
        self._choices = SeededChoices(seed)
        self._seen: set[object] = set()

    @property
    def refuting(self) -> list[Example]:
        """The examples on which the law fails."""
        return [example for example in self.examples if not example.holds]

    def draw(self, count: int, attempts: int) -> None:
        """Add up to ``count`` random examples in at most ``attempts`` attempts."""
        target_count = len(self.examples) + count
        for _ in range(attempts):
            if len(self.examples) == target_count:
                return
            configuration = draw_configuration(self._plan, self._choices)
            if configuration is not None:
                self.add(configuration)

    def look_around(self, count: int, attempts: int, conditions: Sequence[Expr] = ()) -> None:
        """Add up to ``count`` examples that differ in a few sizes from those there are.

        Args:
            attempts: most of them bring no new configuration.
            conditions: conditions that the examples and those beside which they are sought fulfil.
        """
        bases = self.fulfilling(conditions)
        if not bases:
            return
        neighbours = Neighbours(bases, self._choices)
        tests = [self.evaluator(condition) for condition in conditions]
        target_count = len(self.examples) + count
        for _ in range(attempts):
            if len(self.examples) == target_count:
                return
            types = neighbours.draw()
            if all(test(types) for test in tests):
                self._add_operands(types)

    def challenge(
        self, words: Sequence[Expr], attempts: int, conditions: Sequence[Expr] = ()
    ) -> None:
        """Add examples that lack what those there are have in common.

        A law may hold on all of them for a reason that is no condition: those that are added
        violate one of the ``words`` that all examples so far fulfil. The first one on which the
        law fails is the last.

        Args:
            attempts, conditions: as in ``look_around``.
        """
        bases = self.fulfilling(conditions)
        if not bases:
            return
        neighbours = Neighbours(bases, self._choices)
        tests = [self.evaluator(condition) for condition in conditions]
        common = self._common([word for word in words if word not in conditions], bases)
        for _ in range(attempts):
            word = common.next()
            if word is None:
                return
            types = neighbours.draw_untied(word.operands)
            if not word.test(types) and all(test(types) for test in tests):
                first_new = len(self.examples)
                applies = self._add_operands(types)
                if not all(example.holds for example in self.examples[first_new:]):
                    return
                if applies is not None:
                    common.learn(word, applies)

    def fulfilling(self, conditions: Sequence[Expr]) -> list[RuleConfiguration]:
        """Return the examples that fulfil conditions."""
        tests = [self.evaluator(condition) for condition in conditions]
        configurations = [example.configuration for example in self.examples]
        return [
            configuration
            for configuration in configurations
            if all(test(configuration.var_types) for test in tests)
        ]

    def evaluator(self, condition: Expr) -> Test:
        """Return what says whether a condition holds for operands of given types."""
        evaluate = self._plan.compiled.expression(condition)

        def holds(types: tuple[TensorType, ...]) -> bool:
            try:
                return evaluate(types, []) is True
            except Inapplicable:
                return False

        return holds

    def add(self, configuration: RuleConfiguration) -> bool | None:
        """Judge a configuration; it is an example if it is new and the rule applies to it.

        Returns:
            Whether the rule applies; None if the configuration is known.
        """
        if configuration.key in self._seen:
            return None
        self._seen.add(configuration.key)
        sides = self._judge.sides(configuration)
        outcome = LawOutcome.UNDEFINED if sides is None else self._judge.holds(configuration, sides)
        if outcome is not LawOutcome.UNDEFINED:
            self.examples.append(Example(configuration, outcome is LawOutcome.HOLDS))
        return sides is not None

    def _common(self, words: Sequence[Expr], bases: Sequence[RuleConfiguration]) -> Commonality:
        numbers = {name: number for number, name in enumerate(tensor_vars(self.rule))}
        common_words = []
        for word in words:
            holds = self.evaluator(word)
            # Ranks are left out: what is drawn beside known operands has their ranks.
            if not _mentions(word, "rank") and all(holds(base.var_types) for base in bases):
                names = [part.name for part in parts_of(word) if isinstance(part, Var)]
                operands = [numbers[name] for name in dict.fromkeys(names)]
                common_words.append(CommonWord(holds, operands))
        return Commonality(common_words)

    def _add_operands(self, types: tuple[TensorType, ...]) -> bool | None:
        """Judge operands; return whether the rule applies to them, None if they are known."""
        configuration = configured(self.rule, types)
        return False if configuration is None else self.add(configuration)

    def counterexample(self) -> Counterexample | None:
        """Return the smallest example on which the law fails, with operands that show it."""
        smallest = min(
            (example.configuration for example in self.refuting),
            key=lambda configuration: sum(kind.size for kind in configuration.var_types),
        )
        sides = self._judge.sides(smallest)
        return None if sides is None else counterexample(self.rule, smallest, sides)


def _mentions(expr: Expr, function: str) -> bool:
    if not isinstance(expr, Call):
        return False
    return expr.function == function or any(_mentions(arg, function) for arg in expr.args)
