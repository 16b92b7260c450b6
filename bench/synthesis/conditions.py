"""Conditions from examples: the weakest words that no failing example fulfils, found by a self-join.

Words are what rules' conditions usually say: that two shapes, ranks or dims are equal, that a tensor has a
rank, that an attribute is an axis counted from the end. Two tables, of examples and of the words that hold
there; a conjunction of two words is a pair of rows with one example.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from bench.synthesis.store import SynthesisStore
from relational_tensat.base.records import record
from relational_tensat.rules.functions import Inapplicable
from relational_tensat.rules.instance import attr_vars, compiled_rule, tensor_vars
from relational_tensat.rules.model import Call, Expr, Literal, Rule, Var
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.rules.soundness.judgement import Judge, LawOutcome
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.tensor.operators.samples import SeededChoices

_RANKS = (1, 2, 3, 4)
#: So many draws in a row may bring no new configuration.
_MOST_IDLE = 1000
#: A condition keeps so many examples on which the law holds, or it repairs nothing.
LEAST_KEPT = 6


@record
class LawExample:
    """A configuration of a rule, and whether the law holds there."""

    configuration: RuleConfiguration
    holds: bool


def drawn_examples(rule: Rule, seed: int = 0) -> Iterator[LawExample]:
    """Yield different configurations, near and far, judged, until hardly any draw brings a new one."""
    judge = Judge(DrawPlan(rule), seed)
    choices = SeededChoices(f"{seed} {rule.law}")
    seen: set[object] = set()
    idle = 0
    for turn in itertools.count():
        idle += 1
        if idle > _MOST_IDLE:
            return
        configuration = draw_configuration(judge.plan, choices, far=turn % 4 == 3)
        if configuration is None or configuration.key in seen:
            continue
        sides = judge.sides(configuration)
        if sides is None:
            continue
        outcome = judge.holds(configuration, sides)
        if outcome is not LawOutcome.UNDEFINED:
            idle = 0
            seen.add(configuration.key)
            yield LawExample(configuration, outcome is LawOutcome.HOLDS)


def vocabulary_of(rule: Rule) -> Iterator[Expr]:
    """Yield words that a condition may have, the plainest first."""
    tensors = [Var(name) for name in tensor_vars(rule)]
    for tensor in tensors:
        yield _call("is-float", tensor)
    for a, b in itertools.combinations(tensors, 2):
        shapes = _call("shape", a), _call("shape", b)
        yield _call("=", *shapes)
        yield _call("=", _call("rank", a), _call("rank", b))
        yield from (_call("=", _call("broadcast", *shapes), shape) for shape in shapes)
        for i, j in itertools.product((-1, -2, 0, 1), repeat=2):
            yield _call("=", _call("dim", a, Literal(i)), _call("dim", b, Literal(j)))
    for tensor in tensors:
        for rank in _RANKS:
            yield _call("=", _call("rank", tensor), Literal(rank))
        for axis in (-1, -2, 0, 1):
            yield _call("=", _call("dim", tensor, Literal(axis)), Literal(1))
            yield _call("!=", _call("dim", tensor, Literal(axis)), Literal(1))
    names = [Var(name) for name in attr_vars(rule)]
    for name, tensor in itertools.product(names, tensors):
        shape = _call("shape", tensor)
        yield _call("=", _call("broadcast", shape, name), shape)
        yield _call("<=", _call("len", name), _call("rank", tensor))
        ones = _call("-", _call("len", name), _call("rank", tensor))  # before a shape
        yield _call("=", _call("drop", name, ones), shape)
    for a, b in itertools.permutations(tensors, 2):
        yield _call("=", _call("groups", a, b), Literal(1))
    for name in names:
        for value in map(Literal, (0, 1)):
            yield from (_call("=", name, value), _call("<=", value, name), _call("<=", name, value))
        for tensor, back in itertools.product(tensors, (1, 2)):
            yield _call("=", name, _call("-", _call("rank", tensor), Literal(back)))
    for one, other in itertools.combinations(names, 2):
        yield from (_call("<=", one, other), _call("<=", other, one), _call("=", one, other))


def _call(function: str, *args: Expr) -> Call:
    return Call(function, args)


def inferred_conditions(
    store: SynthesisStore,
    rule: Rule,
    examples: Sequence[LawExample],
    words: Sequence[Expr],
    most: int = 3,
) -> list[tuple[Expr, ...]]:
    """Return the conjunctions of one or two words that no failing example fulfils, the widest first."""
    words = list(dict.fromkeys(words))
    prepared = compiled_rule(rule)
    rows = []
    for number, word in enumerate(words):
        test = prepared.expression(word)
        for place, example in enumerate(examples):
            values = prepared.bind(example.configuration.symbols)
            try:
                if values is not None and test(example.configuration.var_types, values) is True:
                    rows.append((place, number, example.holds))
            except (Inapplicable, IndexError, TypeError):
                continue  # a word about an axis that a tensor does not have holds nowhere
    if not rows:
        return []
    store.rows("forget_words")
    store.append("word_holds", zip(*rows, strict=True))
    found = store.rows("weakest", least=LEAST_KEPT, most=most)
    return [tuple(words[number] for number in dict.fromkeys(pair)) for pair in found]
