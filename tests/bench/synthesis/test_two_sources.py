"""Laws of two sources: products with a common factor are the parts of one."""

from __future__ import annotations

import pytest

from bench.synthesis import funnel
from bench.synthesis.enumeration import TermBank
from bench.synthesis.funnel import RuleFunnel, SynthesisRequest
from bench.synthesis.store import SynthesisStore
from bench.synthesis.tools import SynthesisTools
from bench.synthesis.two_sources import laws_of_two, rule_of_two
from bench.synthesis.vocabulary import OperatorChoice, TermSetting
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import expr_text
from relational_tensat.rules.soundness import verify_rule
from relational_tensat.tensor.types import TensorType

_WEIGHT = TensorType("float32", (7, 5))
_PLAIN = (("act", "none"),)
SETTING = TermSetting(
    "products",
    {"x": TensorType("float32", (11, 7)), "w": _WEIGHT, "v": _WEIGHT},
    (
        OperatorChoice("matmul", 2, (_PLAIN,)),
        OperatorChoice("concat", 2, ((("axis", 1),),)),
        OperatorChoice("split", 1),
    ),
    exact=True,
)


def test_products_with_a_common_factor_are_parts_of_one() -> None:
    with SynthesisStore(None) as store:
        store.add_setting(0, SETTING)
        bank = TermBank(SETTING, 0, store)
        bank.grow(3)
        bank.write()
        cost_us = SynthesisTools("t4", []).cost_us
        source, target, law, saved_us, *_ = next(laws_of_two(store, 0, cost_us, cheaper=False))
        assert saved_us < 0  # both operands of a concat are copied
        assert not list(laws_of_two(store, 0, cost_us, cheaper=True))
    assert law.startswith("(matmul ?a ?b) & (matmul ?a ?c) = (part (split")
    (written,) = parse_rules(f'(rule w (law "l") (from {source}) (to {target}))', "f")
    rule = rule_of_two("merged", written, SETTING.inputs)
    assert rule is not None and rule.is_multi
    assert rule.law == "a · b & a · c = the parts of a · concat(b, c, axis 1)"
    sizes = {
        expr_text(value)
        for target in rule.targets
        for child in target.children  # type: ignore[union-attr]
        for key, value in child.attrs  # type: ignore[union-attr]
        if key == "sizes"
    }
    assert sizes == {"(list (dim ?b -1) (dim ?c -1))"}
    assert verify_rule(rule, trials=60, shrink=False).status == "sound"
    wrong = rule_of_two("wrong", written, {**SETTING.inputs, "v": TensorType("float32", (7, 3))})
    assert wrong is None  # no dim of the second source's is 5


def test_the_funnel_derives_judges_and_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(funnel, "settings_of_operators", lambda names: [SETTING])
    monkeypatch.setattr(funnel, "laws_of_one", lambda *args, **named: ())  # none of one source
    request = SynthesisRequest(
        operators=("matmul",), size=3, sources=2, cheaper=False, trials=400, time_limit_s=60.0
    )
    by_itself = '(rule known (law "l") (from (concat ?x ?y :axis 1)) (to (concat ?x ?y :axis 1)))'
    with SynthesisStore(None) as store:
        tools = SynthesisTools("t4", parse_rules(by_itself, "test"))
        found = RuleFunnel(store, request, tools, lambda text: None).run()
    (rule,) = found
    assert rule.law == "a · b & a · c = the parts of a · concat(b, c, axis 1)"
    assert [expr_text(word) for word in rule.conditions] == ["(= (rank ?a) (rank ?b))"]
    assert verify_rule(rule, trials=400, shrink=False).status == "sound"  # unsound without it
    with SynthesisStore(None) as store:
        tools = SynthesisTools("t4", found)
        assert not RuleFunnel(store, request, tools, lambda text: None).run()
        assert dict(store.rows("funnel"))["derived from the laws"] >= 1
