"""What the laws prove, and what they do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relational_tensat.explore.derivation import DerivationEffort, derive_rule, derive_rules
from relational_tensat.rules.library import load_rules, taso_rules
from tests.explore.derivation.examples import ASSOCIATES, COMMUTES, ROTATES, rule

TASO = {law.name: law for law in taso_rules()}
SHIPPED = [law.everywhere for law in load_rules()]
#: A law that makes ever more e-nodes, and a rule that it does not prove.
GROWS = rule("scaled-twice", "(smul ?x :value ?v)", "(smul (smul ?x :value (* ?v 2.0)) :value 0.5)")
SIGN = rule(
    "sign-and-scale",
    "(neg (smul ?x :value ?v))",
    "(smul (neg ?x) :value ?v)",
    "(!= ?v 0.0)",  # of which twice would be nothing new
)


def test_a_rule_is_derived_from_laws_that_prove_it() -> None:
    derivation = derive_rule(ROTATES, [COMMUTES, ASSOCIATES])
    assert derivation.derived
    assert derivation.reason == derivation.where == ""
    assert (derivation.rule, derivation.law) == (ROTATES.name, ROTATES.law)
    assert derivation.configurations == DerivationEffort().configurations
    assert derivation.iterations >= 1
    assert derivation.e_nodes > 5 * derivation.configurations


def test_a_rule_is_not_derived_from_laws_that_do_not_prove_it() -> None:
    derivation = derive_rule(ROTATES, [COMMUTES])
    assert not derivation.derived
    assert derivation.reason == "the laws have nothing left to add"
    assert derivation.where.startswith("a ")


def test_two_spellings_of_one_term_are_equal_before_anything_is_explored() -> None:
    derivation = derive_rule(rule("same", "(add ?x ?y)", "(add ?x ?y)"), [])
    assert (derivation.derived, derivation.iterations) == (True, 0)


def test_laws_are_applied_where_rewriting_does_not_pay() -> None:
    (never,) = (replace(COMMUTES, worth=rule("n", "(add ?x ?y)", "?x", "(< 1 0)").conditions),)
    assert not derive_rule(COMMUTES, [never]).derived
    assert [derivation.derived for derivation in derive_rules([COMMUTES], [never])] == [True]


@pytest.mark.parametrize(
    "name",
    [
        "taso-013",  # products in another order of brackets
        "taso-029",  # a sum in another order
        "taso-057",  # distributivity
        "taso-095",  # sums of joined tensors
        "taso-099",  # the order of channels
        "taso-123",  # groups
        "taso-128",  # two sources
    ],
)
def test_shipped_rules_prove(name: str) -> None:
    derivation = derive_rule(TASO[name], SHIPPED)
    assert derivation.derived, (derivation.reason, derivation.where)


def test_what_changes_a_shape_is_not_derived() -> None:
    derivation = derive_rule(TASO["taso-067"], SHIPPED)
    assert not derivation.derived
    assert derivation.reason.startswith("wrong: ")
    assert "'taso-067' replaces" in derivation.reason


def test_a_law_that_is_true_without_groups_only_is_not_derived() -> None:
    derivation = derive_rule(
        TASO["taso-091"], SHIPPED, DerivationEffort(iterations=4, e_nodes=1_000)
    )
    assert not derivation.derived
    assert derivation.where


def test_a_law_that_is_false_is_not_derived() -> None:
    derivation = derive_rule(
        rule("false", "(sub ?x ?y)", "(sub ?y ?x)"), SHIPPED, DerivationEffort(iterations=3)
    )
    assert not derivation.derived


def test_operands_that_do_not_exist_prove_nothing() -> None:
    derivation = derive_rule(rule("never", "(relu ?x)", "?x", "(< (rank ?x) 0)"), [])
    assert not derivation.derived
    assert derivation.reason == "no operands were found that satisfy its sources and conditions"


@pytest.mark.parametrize(
    ("effort", "reason"),
    [
        (DerivationEffort(e_nodes=100), "the e-node limit is reached"),
        (DerivationEffort(iterations=2), "the iteration limit is reached"),
        (DerivationEffort(seconds=1e-9), "the time limit is reached"),
    ],
)
def test_limits_end_the_attempt_and_are_named(effort: DerivationEffort, reason: str) -> None:
    derivation = derive_rule(SIGN, [GROWS], effort)
    assert not derivation.derived
    assert derivation.reason == reason
    assert derivation.e_nodes <= effort.e_nodes


def test_operands_that_did_not_fit_beside_others_get_an_e_graph_of_their_own() -> None:
    laws = [COMMUTES, ASSOCIATES]
    alone = derive_rule(ROTATES, laws, DerivationEffort(configurations=1))
    together = derive_rule(
        ROTATES, laws, DerivationEffort(configurations=3, e_nodes=alone.e_nodes + 9)
    )
    assert alone.derived
    assert together.derived
    assert together.e_nodes <= alone.e_nodes + 9
