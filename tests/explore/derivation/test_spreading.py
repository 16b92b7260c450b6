"""Sizes become different where a rule lets them."""

from __future__ import annotations

import pytest

from relational_tensat.base.files import resource_dir
from relational_tensat.explore.derivation.spreading import retyped, spread
from relational_tensat.rules.instance import source_nodes
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Literal, Rule
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.tensor.hints import SeededChoices
from relational_tensat.tensor.operators import get_operator
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
