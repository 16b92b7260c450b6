"""The strategies themselves: what they draw is valid, varied, and shrinks."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import assume, find, given, settings
from hypothesis import strategies as st

from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import TensorType, tensors_of
from tests.strategies import (
    RuleConfiguration,
    attribute_values,
    configurations,
    draw_configuration,
    tensor_types,
)
from tests.tiers import nightly


def rule_of(source: str, target: str) -> Rule:
    return parse_rules(f'(rule r (law "l") (from {source}) (to {target}))', "f")[0]


CONV = rule_of("(conv ?x ?w :stride ?s :pad ?p :dilation ?d)", "?x")
SUM = rule_of("(add (matmul ?a ?b) (matmul ?a ?c))", "?a")


@settings(max_examples=100, deadline=None)
@given(configurations(CONV))
def test_a_configuration_is_valid(configuration: RuleConfiguration | None) -> None:
    assume(configuration is not None)
    assert configuration is not None
    (op, attrs), types = configuration.symbols[0], configuration.var_types
    assert get_operator(op).check(types, attrs) == configuration.root_types[0]
    assert get_operator(op).canonical(types, attrs) == attrs


@pytest.mark.parametrize("searches", [2, nightly(5)])
@pytest.mark.parametrize("rule", [SUM, nightly(CONV)])
def test_a_configuration_shrinks(rule: Rule, searches: int) -> None:
    # Shrinking is a search that ends in local minima: the best of a few is small, not each.
    sizes = [_size_of_shrunk(rule, Random(seed)) for seed in range(searches)]
    assert min(sizes) <= 12 and max(sizes) <= 200, sizes


def _size_of_shrunk(rule: Rule, random: Random) -> int:
    condition = _is_grouped if rule is CONV else _is_valid
    configuration = find(
        configurations(rule), condition, random=random, settings=settings(max_examples=1000)
    )
    assert configuration is not None
    return sum(kind.size for kind in configuration.var_types)


def _is_valid(configuration: RuleConfiguration | None) -> bool:
    return configuration is not None


def _is_grouped(configuration: RuleConfiguration | None) -> bool:
    return (
        configuration is not None
        and configuration.var_types[0].shape[1] > configuration.var_types[1].shape[1]
    )


def test_the_same_random_numbers_draw_the_same() -> None:
    first = [draw_configuration(SUM, Random(5)) for _ in range(3)]
    assert first == [draw_configuration(SUM, Random(5)) for _ in range(3)]
    random = Random(0)
    assert len({str(draw_configuration(SUM, random)) for _ in range(50)}) > 20


@given(tensor_types())
def test_tensor_types_are_small(kind: TensorType) -> None:
    assert kind.rank <= 4 and kind.size <= 4**4 and tensors_of(kind) == (kind,)


@pytest.mark.parametrize("op", ["conv", "avg_pool", "clip", "cast", "slice", "smul", "layer_norm"])
@given(data=st.data())
def test_attribute_values_are_of_their_kind(op: str, data: st.DataObject) -> None:
    operator = get_operator(op)
    attrs = {attr.name: data.draw(attribute_values(attr)) for attr in operator.attrs}
    assert operator.normalize(attrs).keys() == attrs.keys()
