"""On which operands a rule is derived."""

from __future__ import annotations

from relational_tensat.base.files import resource_dir
from relational_tensat.explore.derivation.configurations import generic_configurations, pattern
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.tensor.hints import SeededChoices
from relational_tensat.tensor.types import TensorType
from tests.explore.derivation.examples import COMMUTES, rule

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
