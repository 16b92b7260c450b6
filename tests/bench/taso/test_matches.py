from __future__ import annotations

import pytest

from bench.models import MODELS
from bench.taso.graphs import Loaded, State
from bench.taso.matcher import Matcher, RuleMatcher
from relational_tensat.cost import load_profile
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import taso_rules
from tests.bench.taso.slow_matcher import slow_matches
from tests.bench.taso.small_graphs import GRAPHS


def _state(name: str) -> State:
    return Loaded(GRAPHS[name](), load_profile("tensat_t4")).state


@pytest.mark.parametrize("name", GRAPHS)
def test_finds_what_the_slow_matcher_finds(name: str) -> None:
    state = _state(name)
    matcher = Matcher(state.universe)
    some = 0
    for rule in taso_rules():
        matches = [(m.roots, m.bound) for m in RuleMatcher(matcher, rule).matches(state)]
        assert len(set(matches)) == len(matches), rule.name
        assert set(matches) == slow_matches(state, rule), rule.name
        some += len(matches)
    assert some > 0


def test_another_graph_is_matched_again_once_the_last_is_forgotten() -> None:
    (rule,) = parse_rules('(rule r (law "x") (from (tanh ?x)) (to (tanh ?x)))', "r.rules")
    state = _state("chain")
    matcher = Matcher(state.universe)
    rule_matcher = RuleMatcher(matcher, rule)
    assert len(list(rule_matcher.matches(state))) == 2
    smaller = State(state.universe, state.entries, state.by_op["tanh"][:1])
    matcher.forget()
    assert len(list(rule_matcher.matches(smaller))) == 1


def test_symbols_that_come_later_are_matched_too() -> None:
    text = '(rule r (law "x") (from (transpose ?x :perm ?p)) (to (transpose ?x :perm ?p)))'
    state = _state("chain")
    matcher = RuleMatcher(Matcher(state.universe), parse_rules(text, "r.rules")[0])
    universe = state.universe
    entry = (universe.symbol("transpose", (("perm", (1, 0)),)), state.outputs[0])
    value = universe.value(entry, universe.type_of[state.outputs[0]])
    turned = State(universe, {**state.entries, value: entry}, [value])
    assert [match.roots for match in matcher.matches(turned)] == [(value,)]


def test_an_operand_that_is_left_out_is_not_matched() -> None:
    """The convolutions of this graph have no bias: a pattern with one fits none of them."""
    state = Loaded(MODELS["vgg19"](), load_profile("tensat_t4")).state
    found = []
    for bias in ("", " ?b"):
        term = f"(relu (conv ?x ?w{bias} :stride ?s :pad ?p :dilation ?d))"
        (rule,) = parse_rules(f'(rule r (law "x") (from {term}) (to {term}))', "r.rules")
        found.append(len(list(RuleMatcher(Matcher(state.universe), rule).matches(state))))
    assert found[0] > 0
    assert found[1] == 0
