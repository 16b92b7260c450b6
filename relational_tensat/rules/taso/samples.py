"""Examples of a rule: configurations that it applies to, and whether its law holds there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relational_tensat.rules.functions import Inapplicable
from relational_tensat.rules.instance import tensor_vars
from relational_tensat.rules.model import Call, Expr, Rule, Var
from relational_tensat.rules.soundness import Counterexample
from relational_tensat.rules.soundness.drawing import Configuration, draw_configuration
from relational_tensat.rules.soundness.judging import Judge, Outcome
from relational_tensat.rules.soundness.requirements import Plan
from relational_tensat.rules.soundness.showing import counterexample
from relational_tensat.rules.taso.commonality import Commonality, CommonWord, Test
from relational_tensat.rules.taso.neighbours import Neighbours, configured
from relational_tensat.tensor.choices import SeededChoices
from relational_tensat.tensor.types import TensorType


@dataclass(frozen=True, slots=True)
class Example:
    """One configuration of a rule that it applies to.

    Attributes:
        holds: whether both sides are equal there, in type and in every element.
    """

    configuration: Configuration
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
        self._plan = Plan(rule)
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

    def fulfilling(self, conditions: Sequence[Expr]) -> list[Configuration]:
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

    def add(self, configuration: Configuration) -> bool | None:
        """Judge a configuration; it is an example if it is new and the rule applies to it.

        Returns:
            Whether the rule applies; None if the configuration is known.
        """
        if configuration.key in self._seen:
            return None
        self._seen.add(configuration.key)
        sides = self._judge.sides(configuration)
        outcome = Outcome.UNDEFINED if sides is None else self._judge.holds(configuration, sides)
        if outcome is not Outcome.UNDEFINED:
            self.examples.append(Example(configuration, outcome is Outcome.HOLDS))
        return sides is not None

    def _common(self, words: Sequence[Expr], bases: Sequence[Configuration]) -> Commonality:
        numbers = {name: number for number, name in enumerate(tensor_vars(self.rule))}
        common_words = []
        for word in words:
            holds = self.evaluator(word)
            # Ranks are left out: what is drawn beside known operands has their ranks.
            if not _mentions(word, "rank") and all(holds(base.var_types) for base in bases):
                operands = [numbers[name] for name in dict.fromkeys(_variables(word))]
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


def _variables(expr: Expr) -> Iterator[str]:
    """Yield the names of the variables in an expression."""
    if isinstance(expr, Var):
        yield expr.name
    elif isinstance(expr, Call):
        for arg in expr.args:
            yield from _variables(arg)
