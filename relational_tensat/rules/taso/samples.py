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
        """Add up to ``count`` random examples in so many attempts."""
        wanted = len(self.examples) + count
        for _ in range(attempts):
            if len(self.examples) == wanted:
                return
            found = draw_configuration(self._plan, self._choices)
            if found is not None:
                self.add(found)

    def look_around(self, count: int, attempts: int, asked: Sequence[Expr] = ()) -> None:
        """Add up to ``count`` examples that differ in a few sizes from those there are.

        Args:
            attempts: most of them bring no new configuration.
            asked: conditions that the examples and those beside which they are sought fulfil.
        """
        bases = self.fulfilling(asked)
        if not bases:
            return
        neighbours = Neighbours(bases, self._choices)
        tests = [self.evaluator(condition) for condition in asked]
        wanted = len(self.examples) + count
        for _ in range(attempts):
            if len(self.examples) == wanted:
                return
            types = neighbours.draw()
            if all(test(types) for test in tests):
                self._add_operands(types)

    def challenge(self, words: Sequence[Expr], attempts: int, asked: Sequence[Expr] = ()) -> None:
        """Add examples that lack what those there are have in common.

        A law may hold on all of them for a reason that was not asked for: those that are added
        violate one of the ``words`` that all examples so far fulfil. The first one on which the
        law fails is the last.

        Args:
            attempts, asked: as in ``look_around``.
        """
        bases = self.fulfilling(asked)
        if not bases:
            return
        neighbours = Neighbours(bases, self._choices)
        tests = [self.evaluator(condition) for condition in asked]
        common = self._common([word for word in words if word not in asked], bases)
        for _ in range(attempts):
            word = common.next()
            if word is None:
                return
            types = neighbours.draw_untied(word.operands)
            if not word.test(types) and all(test(types) for test in tests):
                known = len(self.examples)
                applies = self._add_operands(types)
                if not all(example.holds for example in self.examples[known:]):
                    return
                if applies is not None:
                    common.learn(word, applies)

    def fulfilling(self, asked: Sequence[Expr]) -> list[Configuration]:
        """Return the examples that fulfil conditions."""
        tests = [self.evaluator(condition) for condition in asked]
        known = [example.configuration for example in self.examples]
        return [each for each in known if all(test(each.var_types) for test in tests)]

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
        both = self._judge.sides(configuration)
        outcome = Outcome.UNDEFINED if both is None else self._judge.holds(configuration, both)
        if outcome is not Outcome.UNDEFINED:
            self.examples.append(Example(configuration, outcome is Outcome.HOLDS))
        return both is not None

    def _common(self, words: Sequence[Expr], bases: Sequence[Configuration]) -> Commonality:
        numbers = {name: number for number, name in enumerate(tensor_vars(self.rule))}
        found = []
        for word in words:
            holds = self.evaluator(word)
            # Ranks are left out: what is drawn beside known operands has their ranks.
            if not _mentions(word, "rank") and all(holds(base.var_types) for base in bases):
                operands = [numbers[name] for name in dict.fromkeys(_variables(word))]
                found.append(CommonWord(holds, operands))
        return Commonality(found)

    def _add_operands(self, types: tuple[TensorType, ...]) -> bool | None:
        """Judge operands; return whether the rule applies to them, None if they are known."""
        found = configured(self.rule, types)
        return False if found is None else self.add(found)

    def counterexample(self) -> Counterexample | None:
        """Return the smallest example on which the law fails, with operands that show it."""
        smallest = min(
            (example.configuration for example in self.refuting),
            key=lambda found: sum(kind.size for kind in found.var_types),
        )
        both = self._judge.sides(smallest)
        return None if both is None else counterexample(self.rule, smallest, both)


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
