"""Rules as Python functions, beside the same rules as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relational_tensat.base.errors import RuleError, UsageError
from relational_tensat.rules.builder import (
    Choice,
    Rewrite,
    Tensor,
    Value,
    fn,
    ops,
    optional,
    rewrite,
    rule,
    variant,
)
from relational_tensat.rules.builder.stubs import stubs
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule


@rule(law="A·B and A·C are the columns of A·[B | C]", symmetric=True, rulesets=["joins"])
def merge_products(a: Tensor, b: Tensor, c: Tensor, u: Tensor, v: Tensor, f: Value) -> Rewrite:
    both = ops.split(
        ops.matmul(a, ops.concat(b, c, axis=-1), optional(ops.concat(u, v, axis=-1)), act=f),
        axis=-1,
        sizes=fn.list(fn.dim(b, -1), fn.dim(c, -1)),
    )
    return (
        rewrite(ops.matmul(a, b, optional(u), act=f), ops.matmul(a, c, optional(v), act=f))
        .to(ops.part(both, index=0), ops.part(both, index=1))
        .where(fn.rank(b) == 2, optional(fn.rank(u) == 1))
        .worth(fn.size(b) + fn.size(c) <= 4096)
        .variants(variant("with", "merge-biased-products", law="A·B + u and A·C + v"))
    )


MERGE_PRODUCTS = """(rule merge-products (law "A·B and A·C are the columns of A·[B | C]")
  (symmetric) (ruleset joins)
  (from (matmul ?a ?b (optional ?u) :act ?f) (matmul ?a ?c (optional ?v) :act ?f))
  (let ?both (split (matmul ?a (concat ?b ?c :axis -1) (optional (concat ?u ?v :axis -1)) :act ?f)
                    :axis -1 :sizes (list (dim ?b -1) (dim ?c -1))))
  (to (part ?both :index 0) (part ?both :index 1))
  (where (= (rank ?b) 2) (optional (= (rank ?u) 1)))
  (worth (<= (+ (size ?b) (size ?c)) 4096))
  (with merge-biased-products (law "A·B + u and A·C + v")))"""


@rule(law="?f(?f(x, b), c) = ?f(x, ?f(b, c))", each={"f": ["add", "mul"]})
def gather(x: Tensor, b: Tensor, c: Tensor, f: Choice) -> Rewrite:
    joint = fn.product(fn.broadcast(fn.shape(b), fn.shape(c)))
    return (
        rewrite(f(f(x, b), c))
        .both_ways(f(x, f(b, c)))
        .variants(
            variant("forwards", worth=[joint < fn.size(x)]),
            variant("backwards", "apart", law="for ×", only={"f": ["mul"]}, worth=[False]),
        )
    )


GATHER = """(rule gather (law "?f(?f(x, b), c) = ?f(x, ?f(b, c))") (each ?f add mul)
  (<=> (?f (?f ?x ?b) ?c) (?f ?x (?f ?b ?c)))
  (forwards (worth (< (product (broadcast (shape ?b) (shape ?c))) (size ?x))))
  (backwards apart (law "for ×") (for ?f mul) (worth false)))"""


@rule(law="one kernel", each={"h": ["relu", "none"]}, name="wraps", unsound=True)
def named_apart(x: Tensor, w: Tensor, b: Tensor, s: Value, a: Value, h: Choice) -> Rewrite:
    product = ops.conv(x, w, optional(b), stride=s, pad=(0, 0, 1, 1), act=h)
    return rewrite(ops.gelu(product, approximate=optional(otherwise=a))).to(
        ops.gelu(
            ops.conv(
                x, w, optional(ops.neg(b), otherwise=x), stride=fn.take(s, 2), pad="valid", act=h
            ),
            approximate=optional("tanh", otherwise=a),
        )
    )


NAMED_APART = """(rule wraps (law "one kernel") (each ?h relu none) (unsound)
  (from (gelu (conv ?x ?w (optional ?b) :stride ?s :pad [0 0 1 1] :act ?h)
              (optional :else :approximate ?a)))
  (to (gelu (conv ?x ?w (optional (neg ?b) :else ?x) :stride (take ?s 2) :pad valid :act ?h)
            (optional :approximate tanh :else :approximate ?a))))"""


def bare(rules: tuple[Rule, ...] | list[Rule]) -> list[Rule]:
    return [replace(made, file="", line=0) for made in rules]


def test_what_is_built_is_what_is_written() -> None:
    for made, text in (
        (merge_products, MERGE_PRODUCTS),
        (gather, GATHER),
        (named_apart, NAMED_APART),
    ):
        assert bare(made) == bare(parse_rules(text, "f.rules"))
    assert [made.name for made in gather] == ["gather[add]", "gather[mul]", "apart"]
    assert Path(merge_products[0].file) == Path(__file__)


def test_signs_are_functions() -> None:
    a, b = Value.variable("a"), Value.variable("b")
    text = {
        "(= ?a 1)": a == 1, "(!= ?a ?b)": a != b, "(< ?a 1)": a < 1, "(< 1 ?a)": a > 1,
        "(<= ?a 1)": a <= 1, "(<= 1 ?a)": a >= 1, "(+ ?a 1)": a + 1, "(+ 1 ?a)": 1 + a,
        "(- ?a 1)": a - 1, "(- 1 ?a)": 1 - a, "(* ?a 2)": a * 2, "(* 2 ?a)": 2 * a,
        "(// ?a 2)": a // 2, "(/ ?a 2)": a / 2, "(/ 1 ?a)": 1 / a,
        "(and (not true) (if ?a 1 2))": fn.and_(fn.not_(True), fn.if_(a, 1, 2)),
        '(= ?a "same")': a == "same", "(join [1 2] ?a)": fn.join((1, 2), a),
    }  # fmt: skip
    for written, value in text.items():
        assert repr(value) == f"Value({written})"


def no_rewrite(x: Tensor) -> Any:
    return x


def unknown_kind(x: int) -> Rewrite:
    raise AssertionError(x)


def unread(x: Missing) -> Rewrite:  # type: ignore[name-defined]  # noqa: F821
    raise AssertionError(x)


def never_used(x: Tensor, y: Tensor) -> Rewrite:
    del y
    return rewrite(ops.neg(ops.neg(x))).to(x)


def unbound(x: Tensor, y: Tensor) -> Rewrite:
    return rewrite(ops.neg(x)).to(ops.add(x, y))


def wrong_arity(x: Tensor) -> Rewrite:
    return rewrite(getattr(ops, "add")(x)).to(x)  # noqa: B009 - the types refuse it


def no_tensor(x: Tensor) -> Rewrite:
    return rewrite(getattr(ops, "neg")(3)).to(x)  # noqa: B009 - the types refuse it


def truth(x: Tensor) -> Rewrite:
    return rewrite(ops.neg(x)).to(x).where(fn.rank(x) == 2 and fn.size(x) == 1)


def wrong_word(x: Tensor) -> Rewrite:
    return rewrite(ops.neg(x)).to(x).variants(variant("backward"))


def one_way(x: Tensor) -> Rewrite:
    return rewrite(ops.neg(x)).to(x).variants(variant("backwards"))


def wrong_value(x: Tensor) -> Rewrite:
    return rewrite(ops.concat(x, x, axis=getattr(fn, "list")(object()))).to(x)  # noqa: B009


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (no_rewrite, "no_rewrite: returns Tensor(?x), expected a Rewrite"),
        (unknown_kind, "unknown_kind: the parameter 'x', expected a Tensor, a Value or a Choice"),
        (unread, "unread: an annotation cannot be read: name 'Missing' is not defined"),
        (never_used, "never_used: the parameter 'y' is never used"),
        (unbound, "the variable ?y is not bound by a source"),
        (wrong_arity, "add takes 2 inputs, not 1"),
        (no_tensor, "no_tensor: neg: operand 1 is 3, expected a Tensor"),
        (truth, "truth: (= (rank ?x) 2) is a condition of a rule"),
        (wrong_word, "wrong_word: variant 'backward', expected one of forwards, backwards, with"),
        (one_way, "(backwards …) in a rule without (<=> …)"),
        (wrong_value, "expected a Tensor, a Value or a constant"),
    ],
)
def test_mistakes_are_one_line_with_their_place(
    function: Callable[..., Rewrite], reason: str
) -> None:
    with pytest.raises(RuleError) as caught:
        rule(law="l")(function)
    line = function.__code__.co_firstlineno
    assert str(caught.value).startswith(f"{__file__}:{line}: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_law_is_one_line() -> None:
    with pytest.raises(RuleError, match="expected one line without"):
        rule(law='"')(unbound)


def test_names_that_do_not_exist_name_the_nearest() -> None:
    with pytest.raises(
        AttributeError, match=r"unknown operator 'matmull'; did you mean 'matmul'\?"
    ):
        getattr(ops, "matmull")  # noqa: B009 - the types refuse it
    with pytest.raises(AttributeError, match=r"unknown function 'rnk'; did you mean 'rank'\?"):
        getattr(fn, "rnk")  # noqa: B009 - the types refuse it


def test_what_is_optional_is_a_tensor_or_a_value() -> None:
    with pytest.raises(UsageError, match="expected tensors or values"):
        optional()


@pytest.mark.usefixtures("plain_operators")
def test_the_stubs_are_what_operators_and_functions_say() -> None:
    folder = Path(ops.__file__ or "").parent
    for name, text in stubs().items():
        assert (folder / name).read_text(encoding="utf-8") == text, (
            f"{name}: python -m relational_tensat.rules.builder.stubs writes it"
        )
