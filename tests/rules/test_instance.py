"""Instances: one rule on one configuration of operands."""

from __future__ import annotations

import time

import pytest

from relational_tensat.base.errors import UnsoundRuleError
from relational_tensat.rules.instance import (
    TargetNode,
    attr_vars,
    instantiate,
    source_nodes,
    tensor_vars,
    typed_application,
)
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor.types import Attrs, TensorType, ValueType

MERGE = """(rule merge (law "l") (from (matmul ?a ?b :act ?f) (matmul ?a ?c :act ?f))
  (let ?s (split (matmul ?a (concat ?b ?c :axis -1) :act ?f)
                 :axis -1 :sizes (list (dim ?b -1) (dim ?c -1))))
  (to (part ?s :index 0) (part ?s :index 1)) (where (= (rank ?b) 2)))"""


def f32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


def rule_of(text: str) -> Rule:
    (rule,) = parse_rules(text, "f.rules")
    return rule


def matmul(act: str = "none") -> tuple[str, Attrs]:
    return "matmul", {"act": act}


def test_targets_are_built_with_equal_terms_shared() -> None:
    rule = rule_of(MERGE)
    types: tuple[ValueType, ...] = (f32(2, 3), f32(3, 4), f32(3, 5))
    instance = instantiate(rule, (matmul(), matmul()), types, (f32(2, 4), f32(2, 5)))
    assert instance is not None
    assert [node.op for node in instance.nodes] == ["concat", "matmul", "split", "part", "part"]
    assert [node.children for node in instance.nodes] == [(1, 2), (0, 3), (4,), (5,), (5,)]
    assert instance.roots == (6, 7)
    assert instance.nodes[0] == TargetNode(
        "concat", (("axis", 1),), (1, 2), (f32(3, 4), f32(3, 5)), f32(3, 9)
    )
    assert instance.nodes[2].attrs == (("axis", 1), ("sizes", (4, 5)))
    assert instance.nodes[2].type == (f32(2, 4), f32(2, 5))


def test_attributes_are_passed_on_and_must_agree() -> None:
    rule = rule_of(MERGE)
    types, roots = (f32(2, 3), f32(3, 4), f32(3, 5)), (f32(2, 4), f32(2, 5))
    instance = instantiate(rule, (matmul("relu"), matmul("relu")), types, roots)
    assert instance is not None and instance.nodes[1].attrs == (("act", "relu"),)
    assert instantiate(rule, (matmul("relu"), matmul()), types, roots) is None


def test_conditions_and_shapes_decide() -> None:
    rule = rule_of(MERGE)
    three = f32(1, 3, 4)
    assert instantiate(rule, (matmul(), matmul()), (f32(2, 3), three, f32(3, 4)), ()) is None
    differing = (f32(2, 3), f32(3, 4), f32(1, 3, 5))  # concat does not take these
    assert instantiate(rule, (matmul(), matmul()), differing, ()) is None


def test_worth_restricts_the_search_and_not_the_law() -> None:
    text = """(rule r (law "l") (from (add ?a ?b)) (to (add ?b ?a))
      (where (= (rank ?a) 1)) (worth (< (size ?a) (size ?b))))"""
    rule = rule_of(text)
    small, big = f32(1), f32(4)
    assert len(rule.conditions) == len(rule.worth) == 1
    assert instantiate(rule, (("add", {}),), (small, big), (big,)) is not None
    assert instantiate(rule, (("add", {}),), (big, small), (big,)) is None
    assert instantiate(rule.everywhere, (("add", {}),), (big, small), (big,)) is not None
    assert instantiate(rule.everywhere, (("add", {}),), (f32(1, 4), small), (f32(1, 4),)) is None
    assert not rule.everywhere.worth


def test_constants_and_defaults_must_match() -> None:
    rule = rule_of('(rule r (law "l") (from (relu (matmul ?a ?b))) (to (matmul ?a ?b :act relu)))')
    types, roots = (f32(2, 3), f32(3, 4)), (f32(2, 4),)
    assert instantiate(rule, (("relu", {}), matmul()), types, roots) is not None
    assert instantiate(rule, (("relu", {}), matmul("tanh")), types, roots) is None
    assert instantiate(rule, (("tanh", {}), matmul()), types, roots) is None


def test_a_function_that_does_not_apply_is_no_error() -> None:
    rule = rule_of('(rule r (law "l") (from (relu ?a)) (to (relu ?a)) (where (= (dim ?a 1) 1)))')
    assert instantiate(rule, (("relu", {}),), (f32(4),), (f32(4),)) is None
    assert instantiate(rule, (("relu", {}),), ((f32(4), f32(4)),), (f32(4),)) is None


def test_a_target_may_be_a_variable() -> None:
    rule = rule_of('(rule r (law "l") (from (identity ?a)) (to ?a))')
    instance = instantiate(rule, (("identity", {}),), (f32(4),), (f32(4),))
    assert instance is not None and instance.nodes == () and instance.roots == (0,)


def test_terms_that_become_equal_are_one_node() -> None:
    rule = rule_of(
        '(rule r (law "l") (from (smul ?a :value ?v))'
        " (to (add (smul ?a :value ?v) (smul ?a :value 2))))"
    )
    instance = instantiate(rule, (("smul", {"value": 2.0}),), (f32(4),), (f32(4),))
    assert instance is not None
    assert [node.op for node in instance.nodes] == ["smul", "add"]
    assert instance.nodes[1].children == (1, 1)


def test_a_target_of_another_type_stops_with_the_rule_named() -> None:
    rule = rule_of('\n(rule bad (law "l") (from (mul ?a ?b)) (to ?a))')
    with pytest.raises(UnsoundRuleError) as caught:
        instantiate(rule, (("mul", {}),), (f32(1), f32(4)), (f32(4),))
    assert str(caught.value) == "f.rules:2: the rule 'bad' replaces float32[4] by float32[1]"


def test_nodes_and_variables_are_in_reading_order() -> None:
    rule = rule_of(
        '(rule r (law "l") (from (add (matmul ?z ?a :act ?f) ?b) (smul (add ?c ?a) :value ?v))'
        " (to ?b ?c))"
    )
    assert [node.op for node in source_nodes(rule)] == ["add", "matmul", "smul", "add"]
    assert tensor_vars(rule) == ("z", "a", "b", "c")
    assert attr_vars(rule) == ("f", "v")


def test_judging_takes_microseconds() -> None:
    rule = rule_of(MERGE)
    types, roots = (f32(2, 3), f32(3, 4), f32(3, 5)), (f32(2, 4), f32(2, 5))
    symbols = (matmul(), matmul())
    instantiate(rule, symbols, types, roots)
    best = min(_seconds_of_100(rule, symbols, types, roots) for _ in range(5))
    assert best / 100 < 500e-6


def _seconds_of_100(*args: object) -> float:
    started = time.perf_counter()
    for _ in range(100):
        instantiate(*args)  # type: ignore[arg-type]
    return time.perf_counter() - started


@pytest.mark.parametrize("pair", [(1, 1.0), (1.0, 1), (0.0, -0.0), (-0.0, 0.0)])
def test_equal_numbers_stay_what_they_are(pair: tuple[float, float]) -> None:
    operands = (TensorType("float32", (2, 3)),)
    for number in pair:
        typed = typed_application("smul", (("value", number),), operands)
        assert typed is not None
        assert repr(typed[0]) == repr((("value", number),))
