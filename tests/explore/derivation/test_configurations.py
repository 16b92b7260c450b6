"""On which operands a rule is derived."""

from __future__ import annotations

import pytest

from relational_tensat.base.files import resource_dir
from relational_tensat.explore.derivation.configurations import (
    generic_configurations,
    pattern,
    retyped,
    spread,
)
from relational_tensat.rules.instance import source_nodes
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Literal, Rule
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.samples import SeededChoices
from relational_tensat.tensor.types import TensorType
from tests.explore.derivation.examples import COMMUTES, rule

PRODUCT = rule("product-of-3", "(matmul (matmul ?a ?b) ?c)", "(matmul ?a (matmul ?b ?c))")
ONE_SHAPE = rule("sum-of-one-shape", "(add ?x ?y)", "(add ?y ?x)", "(= (shape ?x) (shape ?y))")
CONVOLUTION = rule(
    "activation",
    "(relu (conv ?x ?w :stride [1 1] :pad same))",
    "(conv ?x ?w :stride [1 1] :pad same :act relu)",
)

LAWS = load_rules([resource_dir("rules") / f"{name}.rules" for name in ("concat", "merge", "conv")])


def configuration(of: Rule, *shapes: tuple[int, ...]) -> RuleConfiguration:
    """Return the configuration of a rule without attribute variables on operands of some shapes."""
    symbols = []
    for node in source_nodes(of):
        written = {name: value.value for name, value in node.attrs if isinstance(value, Literal)}
        symbols.append((node.op, get_operator(node.op).normalize(written)))
    result = retyped(of, symbols, tuple(TensorType("float32", shape) for shape in shapes))
    assert result is not None
    return result


def shapes(operands: RuleConfiguration) -> list[tuple[int, ...]]:
    return [kind.shape for kind in operands.var_types]


def test_a_product_keeps_only_its_inner_sizes_equal() -> None:
    (rows, inner), (inner_too, columns), (columns_too, last) = shapes(
        spread(PRODUCT, configuration(PRODUCT, (3, 3), (3, 3), (3, 3)))
    )
    assert inner == inner_too
    assert columns == columns_too
    assert len({rows, inner, columns, last}) == 4


def test_sizes_of_one_become_larger_where_they_may() -> None:
    assert 1 not in sum(shapes(spread(PRODUCT, configuration(PRODUCT, (1, 1), (1, 1), (1, 1)))), ())


def test_what_a_condition_asks_for_stays() -> None:
    x, y = shapes(spread(ONE_SHAPE, configuration(ONE_SHAPE, (1, 2), (1, 2))))
    assert x == y
    assert len({1, 2, *x}) == 4


def test_a_broadcast_stays_a_broadcast() -> None:
    x, y = shapes(spread(COMMUTES, configuration(COMMUTES, (2, 2), (2, 1))))
    assert x[0] == y[0] != x[1]
    assert y[1] == 1


def test_channels_of_a_depthwise_convolution_stay_equal_and_all_else_differs() -> None:
    x, w = shapes(spread(CONVOLUTION, configuration(CONVOLUTION, (2, 2, 9, 9), (2, 1, 3, 3))))
    assert x[1] == w[0]
    assert w[1] == 1
    assert len({*x, *w}) == 7


def test_sizes_that_are_multiples_of_others_stay() -> None:
    x, w = shapes(spread(CONVOLUTION, configuration(CONVOLUTION, (2, 4, 9, 9), (6, 2, 3, 3))))
    assert (x[1], w[0], w[1]) == (4, 6, 2)


@pytest.mark.parametrize("law", LAWS[::4], ids=lambda law: law.name)
def test_the_rule_applies_after_as_it_did_before(law: Rule) -> None:
    law = law.everywhere
    choices = SeededChoices(law.name)
    tried = 0
    for _ in range(400):
        drawn = draw_configuration(law, choices)
        if drawn is None or drawn.instantiate(law) is None:
            continue
        wider = spread(law, drawn)
        assert wider.instantiate(law) is not None
        assert [len(s) for s in shapes(wider)] == [len(s) for s in shapes(drawn)]
        assert _distinct(wider) >= _distinct(drawn)
        tried += 1
        if tried == 3:
            break
    assert tried, "too few operands that the rule applies to"


def _distinct(operands: RuleConfiguration) -> int:
    return len({size for shape in shapes(operands) for size in shape})


IMPOSSIBLE = rule("impossible", "(add ?x ?y)", "(add ?y ?x)", "(< (rank ?x) 0)")
SQUARE = rule(
    "square", "(relu ?x)", "(relu (relu ?x))", "(= (rank ?x) 2) (= (dim ?x 0) (dim ?x 1))"
)


def generic(of: Rule, count: int = 4) -> list[RuleConfiguration]:
    return generic_configurations(of, count, SeededChoices(of.name))


def test_pattern_shows_which_sizes_are_equal() -> None:
    types = [TensorType("float32", shape) for shape in [(7, 1, 5), (5, 7), ()]]
    assert pattern(RuleConfiguration((), tuple(types), ())) == ((2, 1, 3), (3, 2), ())


def test_no_two_are_of_one_pattern_and_the_first_has_no_size_of_one() -> None:
    configurations = generic(COMMUTES)
    assert len(configurations) == 4
    assert len({pattern(configuration) for configuration in configurations}) == 4
    assert all(size != 1 for kind in configurations[0].var_types for size in kind.shape)
    assert any(
        size == 1
        for configuration in configurations
        for kind in configuration.var_types
        for size in kind.shape
    )


def test_rules_that_ship_have_some_and_apply_to_them() -> None:
    for law in load_rules([resource_dir("rules") / "matmul.rules"])[::4]:
        configurations = generic(law.everywhere)
        assert configurations, law.name
        assert all(
            configuration.instantiate(law.everywhere) is not None
            for configuration in configurations
        )


def test_the_same_seed_gives_the_same() -> None:
    assert generic(COMMUTES) == generic(COMMUTES)


def test_what_a_condition_makes_equal_is_equal() -> None:
    assert {pattern(configuration) for configuration in generic(SQUARE)} <= {((1, 1),), ((2, 2),)}


def test_a_rule_that_never_applies_has_none() -> None:
    assert generic(IMPOSSIBLE) == []
