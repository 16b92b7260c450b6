"""What becomes of pairs: left out, written as rules, repaired, refuted, made general."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from bench.synthesis.candidates import says_something
from bench.synthesis.conditions import drawn_examples, inferred_conditions, vocabulary_of
from bench.synthesis.judging import judged_pair, with_conditions
from bench.synthesis.pair_terms import is_permutative, rule_of
from bench.synthesis.store import SynthesisStore
from bench.synthesis.windows import exact_number
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Apply, Rule, Term, Var, expr_text, rule_text, term_text
from relational_tensat.rules.soundness.draws import RuleConfiguration

_TRIALS = 60


def pair(source: str, target: str) -> tuple[Term, Term]:
    (rule,) = parse_rules(f'(rule r (law "l") (from {source}) (to {target}))', "test")
    return rule.sources[0], rule.targets[0]


def planted(source: str, target: str) -> Rule:
    (rule,) = parse_rules(f'(rule planted (law "l") (from {source}) (to {target}))', "test")
    return rule


def test_what_says_nothing_is_left_out() -> None:
    assert says_something(*pair("(relu (relu ?x))", "(relu ?x)"))
    assert not says_something(*pair("(add ?x ?y)", "(add ?y ?x)"))
    assert not says_something(*pair("(add (sub ?x ?x) ?y)", "?y"))
    assert not says_something(Apply("relu", (Var("x"),)), Var("y"))
    assert is_permutative(*pair("(add (relu ?x) ?y)", "(add (relu ?y) ?x)"))


def test_a_pair_is_a_rule_for_numbers_of_any_type_and_shape() -> None:
    number = "(fill :value 2.0 :dtype float32 :shape [])"
    (candidate,) = parse_rules(
        f'(rule r (law "l") (from (mul ?y {number})) (to (add ?y {number})))', "test"
    )
    text = rule_text(rule_of("found", candidate.sources[0], candidate.targets[0]))
    assert "(mul ?a (fill :value 2.0 :dtype ?d0 :shape ?s0))" in text
    assert "(add ?a (fill :value 2.0 :dtype (dtype ?a) :shape []))" in text
    assert "(= (broadcast (shape ?a) ?s0) (shape ?a))" in text
    assert 'law "a × 2 = a + 2"' in text


def slow_conditions(rule: Rule, count: int) -> list[str]:
    """Return single words that no failing example fulfils, the widest first: one after the other."""
    examples = list(islice(drawn_examples(rule), count))
    found = []
    for word in vocabulary_of(rule):
        wider = with_conditions(rule, (word,))
        holding = [e.holds for e in examples if applies(wider, e.configuration)]
        if len(holding) >= 6 and all(holding):
            found.append((-len(holding), expr_text(word)))
    return [text for _, text in sorted(found, key=lambda entry: entry[0])]


def applies(rule: Rule, configuration: RuleConfiguration) -> bool:
    from relational_tensat.rules.instance import compiled_rule

    return compiled_rule(rule).targets(configuration.symbols, configuration.var_types) is not None


def test_conditions_by_a_join_are_those_by_hand() -> None:
    rule = planted("(sub (add ?x ?y) ?y)", "?x")
    examples = list(islice(drawn_examples(rule), 120))
    assert {example.holds for example in examples} == {True, False}
    with SynthesisStore(None) as store:
        found = inferred_conditions(store, rule, examples, list(vocabulary_of(rule)), most=1000)
    single = [expr_text(words[0]) for words in found if len(words) == 1]
    assert single
    assert set(single) == set(slow_conditions(rule, 120))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("(matmul ?a ?b)", "(mul ?a ?b)"),
        ("(matmul ?a ?b)", "(matmul ?b ?a)"),
        ("(logical_or ?p ?q)", "(logical_and ?p ?q)"),
        ("(relu (add ?x ?y))", "(add (relu ?x) (relu ?y))"),
        ("(reduce_sum ?x :axes [0] :keepdims true)", "?x"),
    ],
)
def test_false_laws_are_not_written_as_they_are(source: str, target: str) -> None:
    rule = planted(source, target)
    with SynthesisStore(None) as store:
        found = judged_pair(store, rule, trials=_TRIALS)
    assert found.status == "refuted" or len(found.rule.conditions) > len(rule.conditions)


def test_a_constant_becomes_a_variable_and_what_follows_from_it_is_computed() -> None:
    rule = planted("(neg (smul ?x :value 0.25))", "(smul ?x :value -0.25)")
    with SynthesisStore(None) as store:
        found = judged_pair(store, rule, trials=_TRIALS)
    assert found.status == "sound"
    assert term_text(found.rule.targets[0]) == "(smul ?x :value (* -1 ?v0))"
    assert term_text(found.rule.sources[0]) == "(neg (smul ?x :value ?v0))"


def test_a_condition_leaves_a_variable_its_constant() -> None:
    """relu(-2x)... holds for what is not negative: -0.5 is no instance, so the constant stays."""
    rule = planted("(relu (smul ?x :value 0.5))", "(smul (relu ?x) :value 0.5)")
    with SynthesisStore(None) as store:
        found = judged_pair(store, rule, trials=_TRIALS)
    assert found.status == "sound"
    assert [expr_text(word) for word in found.rule.conditions] == ["(<= 0 ?v0)"]


def test_constants_that_belong_together_stay_together() -> None:
    number = "(fill :value {} :dtype float32 :shape [])"
    source = f"(sub (relu (sub ?x {number.format(0.5)})) (relu (sub {number.format(-0.5)} ?x)))"
    rule = rule_of("found", *pair(source, "(sub ?x (clip ?x :min -0.5 :max 0.5))"))
    with SynthesisStore(None) as store:
        found = judged_pair(store, rule, trials=_TRIALS)
    assert found.status == "sound"
    assert "(= ?v1 (* -1 ?v0))" in map(expr_text, found.rule.conditions)


def test_a_number_that_float32_does_not_have_is_any_close_to_it() -> None:
    """A sixth is written by exporters as float32 has it."""
    number = "(fill :value {} :dtype float32 :shape [])"
    clipped = f"(clip (add ?x {number.format(3.0)}) :min 0.0 :max 6.0)"
    source = f"(mul (mul ?x {clipped}) {number.format(1 / 6)})"
    rule = rule_of("found", *pair(source, "(hard_swish ?x)"))
    with SynthesisStore(None) as store:
        found = judged_pair(store, rule, trials=_TRIALS)
    assert found.status == "sound"
    assert "(close ?c0 0.16666666666666666)" in map(expr_text, found.rule.conditions)
    assert exact_number(float(np.float32(1 / 6))) == 1 / 6
    assert exact_number(0.8944271802902222) == 0.8944271802902222
