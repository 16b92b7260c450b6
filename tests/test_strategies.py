"""The strategies themselves: what they draw is valid, varied, and can fail."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.graph.types import TensorType, tensors_of
from relational_tensat.ops import get_operator
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule
from tests.strategies import (
    Configuration,
    agree,
    attribute_values,
    configurations,
    draw_configuration,
    draw_values,
    evaluate_sources,
    tensor_types,
    trials,
)


def rule_of(source: str, target: str) -> Rule:
    return parse_rules(f'(rule r (law "l") (from {source}) (to {target}))', "f")[0]


CONV = rule_of("(conv ?x ?w :stride ?s :pad ?p :dilation ?d)", "?x")
SUM = rule_of("(add (matmul ?a ?b) (matmul ?a ?c))", "?a")


@given(configurations(CONV))
def test_a_configuration_is_valid(found: Configuration) -> None:
    (op, attrs), (x, w) = found.symbols[0], found.var_types
    assert get_operator(op).check((x, w), attrs) == found.root_types[0]
    assert get_operator(op).canonical((x, w), attrs) == attrs


def test_configurations_are_varied() -> None:
    random = Random(0)
    found = [each for _ in range(1000) if (each := draw_configuration(CONV, random))]
    assert len(found) > 200
    attrs = [each.symbols[0][1] for each in found]
    for key, least in (("stride", 4), ("pad", 4), ("dilation", 2)):
        assert len({each[key] for each in attrs}) >= least
    groups = {each.var_types[0].shape[1] // each.var_types[1].shape[1] for each in found}
    assert {1, 2} <= groups
    assert {each.var_types[0].rank for each in found} == {3, 4, 5}


def test_variables_that_stand_twice_are_drawn_once() -> None:
    random = Random(1)
    found = [each for _ in range(300) if (each := draw_configuration(SUM, random))]
    assert len(found) > 50
    assert any(each.var_types[1] != each.var_types[2] for each in found)  # broadcasting
    values = draw_values(SUM, found[0], random)
    (result,) = evaluate_sources(SUM, found[0], values)
    a, b, c = (values[name] for name in "abc")
    assert np.allclose(result, a @ b + a @ c)


def test_values_have_the_types_drawn() -> None:
    random = Random(2)
    for _ in range(100):
        found = draw_configuration(SUM, random)
        if found is None:
            continue
        values = draw_values(SUM, found, random)
        for kind, value in zip(found.var_types, values.values(), strict=True):
            assert value.shape == kind.shape
            assert np.issubdtype(value.dtype, np.floating) == kind.is_float


def test_trials_find_out_what_is_false() -> None:
    false = rule_of("(sub ?x ?y)", "(sub ?y ?x)")
    true = rule_of("(add ?x ?y)", "(add ?y ?x)")
    assert not all(trial.holds for trial in trials(false, Random(3), 20, 1000))
    found = list(trials(true, Random(3), 20, 1000))
    assert len(found) == 20 and all(trial.holds for trial in found)


def test_agree_compares_shapes_types_and_values() -> None:
    one = np.ones((2, 1))
    assert agree([one], [one + 1e-12]) and agree([(one, one)], [(one, one)])
    assert not agree([one], [one + 1e-3])
    assert not agree([one], [np.ones((2,))])
    assert not agree([one], [np.ones((2, 1), dtype=np.int64)])
    assert not agree([one], [(one,)])
    assert agree([np.array([np.nan])], [np.array([np.nan])])


@given(tensor_types())
def test_tensor_types_are_small(kind: TensorType) -> None:
    assert kind.rank <= 4 and kind.size <= 4**4 and tensors_of(kind) == (kind,)


@pytest.mark.parametrize("op", ["conv", "avg_pool", "clip", "cast", "slice", "smul", "layer_norm"])
@given(data=st.data())
def test_attribute_values_are_of_their_kind(op: str, data: st.DataObject) -> None:
    operator = get_operator(op)
    attrs = {attr.name: data.draw(attribute_values(attr)) for attr in operator.attrs}
    assert operator.normalize(attrs).keys() == attrs.keys()
