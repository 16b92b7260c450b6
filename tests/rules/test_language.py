"""The rule language: what it reads, and that every mistake is named with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.base.errors import RuleError
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Apply, Call, Literal, Rule, Var
from relational_tensat.rules.syntax import Atom, Form, read_forms

GOOD = """
; joins two products
(rule merge
  (law "A·B and A·C are the columns of A·[B | C]")
  (from (matmul ?a ?b :act ?f)      # the first
        (matmul ?a ?c :act ?f))
  (let ?s (split (matmul ?a (concat ?b ?c :axis (last ?b)) :act ?f)
                 :axis (last ?b) :sizes (list (dim ?b -1) (dim ?c -1))))
  (to (part ?s :index 0) (part ?s :index 1))
  (where (= (rank ?b) (rank ?c)))
  (symmetric))
"""


def parse_one(text: str) -> Rule:
    (rule,) = parse_rules(text, "f.rules")
    return rule


def test_reads_a_rule() -> None:
    rule = parse_one(GOOD)
    assert (rule.name, rule.line, rule.file) == ("merge", 3, "f.rules")
    assert rule.law == "A·B and A·C are the columns of A·[B | C]"
    assert rule.symmetric and not rule.unsound and not rule.widened and rule.is_multi
    f = Var("f")
    assert rule.sources == (
        Apply("matmul", (Var("a"), Var("b")), (("act", f),)),
        Apply("matmul", (Var("a"), Var("c")), (("act", f),)),
    )
    assert rule.conditions == (Call("=", (Call("rank", (Var("b"),)), Call("rank", (Var("c"),)))),)


def test_what_separates_atoms() -> None:
    text = '(a#b :c?d;e (f\n"#g (" [1\r\n\t2])# h)\n"i"'
    form, last = read_forms(text, "f")
    assert isinstance(form, Form)
    assert isinstance(last, Atom)
    assert [(item.text, item.line) for item in form.items if isinstance(item, Atom)] == [
        ("a#b", 1), (":c?d", 1), ("#g (", 2),
    ]  # fmt: skip
    pair = form.items[-1]
    assert isinstance(pair, Form)
    assert (pair.square, pair.line, pair.head) == (True, 2, "1")
    assert [(item.text, item.line) for item in pair.items if isinstance(item, Atom)] == [
        ("1", 2), ("2", 3),
    ]  # fmt: skip
    assert (last.text, last.line, last.quoted, last.is_variable) == ("i", 4, True, False)


def test_let_is_put_in_where_it_stands() -> None:
    first, second = parse_one(GOOD).targets
    assert isinstance(first, Apply) and isinstance(second, Apply)
    assert first.children == second.children
    assert first.attrs == (("index", Literal(0)),)


def test_each_makes_one_rule_per_choice() -> None:
    text = """(rule r (law "?f and act ?g") (each ?f relu tanh) (each ?g none relu)
      (from (?f (matmul ?a ?b :act ?g))) (to (?f (matmul ?a ?b :act ?g))))"""
    rules = parse_rules(text, "f")
    assert [r.name for r in rules] == [
        "r[relu,none]",
        "r[relu,relu]",
        "r[tanh,none]",
        "r[tanh,relu]",
    ]
    assert rules[3].sources[0].op == "tanh"
    inner = rules[3].sources[0].children[0]
    assert isinstance(inner, Apply) and inner.attrs == (("act", Literal("relu")),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0), ("-1.5", -1.5), ("1e-5", 1e-5), ("-inf", float("-inf")),
    ],
)  # fmt: skip
def test_numbers_are_stored_as_their_attribute_stores_them(text: str, value: float) -> None:
    rule = parse_one(f'(rule r (law "l") (from (smul ?x :value {text})) (to ?x))')
    literal = dict(rule.sources[0].attrs)["value"]
    assert isinstance(literal, Literal)
    assert literal.value == value and isinstance(literal.value, float)


def test_constants_are_canonical() -> None:
    conv = "(conv ?x ?w :stride [1 1] :dilation [1 1] :pad [0 0 0 0])"
    rule = parse_one(f'(rule r (law "l") (from {conv}) (to {conv}))')
    attrs = dict(rule.sources[0].attrs)
    assert attrs["dilation"] == Literal(()) and attrs["pad"] == Literal("valid")


def rule_of(source: str, target: str = "?a", rest: str = "", law: str = '(law "l")') -> str:
    return f"(rule r {law}\n (from {source})\n (to {target})\n {rest})"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("(rule r", 1, "'(' is never closed"),
        ('(rule r (law "l")\n(from (relu [?a))', 2, "')' closes the '[' of line 2"),
        (")", 1, "closes nothing"),
        ('(rule r (law "l)\n)', 1, "does not end on its line"),
        ("relu", 1, "expected (rule NAME"),
        ("(rull r)", 1, "expected (rule NAME"),
        ("(rule)", 1, "expected a name"),
        ('(rule r (low "l"))', 1, "unknown clause 'low'; did you mean 'law'?"),
        (rule_of("(relu ?a)", law=""), 1, "(law …) is missing"),
        (rule_of("(relu ?a)", law="(law relu)"), 1, 'expected (law "…")'),
        (rule_of("(relu ?a)", law='(law "a") (law "b")'), 1, "a second (law …)"),
        ('(rule r (law "l") (to ?a))', 1, "(from …) is missing"),
        (rule_of("?a"), 2, "is no operator's term"),
        (rule_of("(rellu ?a)"), 2, "unknown operator 'rellu'; did you mean 'relu'?"),
        (rule_of("(opaque ?a)"), 2, "cannot be used in rules"),
        (rule_of("(relu ?a ?b)"), 2, "relu takes 1 inputs, not 2"),
        (rule_of("(smul ?a)"), 2, "smul needs the attribute 'value'"),
        (rule_of("(matmul ?a ?b :akt ?f)"), 2, "no attribute 'akt'; did you mean 'act'?"),
        (rule_of("(matmul ?a ?b :act)"), 2, ":act has no value"),
        (rule_of("(matmul ?a ?b :act ?f :act ?g)"), 2, ":act is given twice"),
        (rule_of("(matmul ?a ?b :act rellu)"), 2, "did you mean 'relu'?"),
        (rule_of("(concat ?a ?b :axis one)"), 2, "axis = 'one', expected int"),
        (rule_of("(concat ?a ?b :axis (last ?a))"), 2, "expected a constant or ?variable"),
        (rule_of("(smul ?a :value ?a)"), 2, "stands for a tensor and for an attribute"),
        (rule_of("(smul (relu ?a) :value ?v)", "?v"), 3, "is a value, expected a tensor"),
        (rule_of("(relu ?a)", "?b"), 3, "?b is not bound by a source"),
        (rule_of("(relu ?input)", "?inputt"), 3, "did you mean '?input'?"),
        (rule_of("(relu ?a)", "?a", "(where (= (rank ?b) 2))"), 4, "?b is not bound"),
        (rule_of("(relu ?a)", "?a", "(where (rnk ?a))"), 4, "unknown function 'rnk'; did you mean"),
        (rule_of("(relu ?a)", "?a", "(where (= 1))"), 4, "1 arguments, expected (= any any)"),
        (rule_of("(relu ?a)", "?a", "(where (len ?a))"), 4, "argument 1 of (len ints)"),
        (rule_of("(smul ?a :value ?v)", "?a", "(where (rank ?v))"), 4, "a tensor's variable"),
        (rule_of("(relu ?a)", "?a", "(where (< 1 two))"), 4, "'two' is no number"),
        (rule_of("(relu ?a)", "(smul ?a :value ?a)"), 3, "is a tensor, expected a value"),
        (rule_of("(relu ?a)", "?a ?a"), 3, "2 targets for 1 sources"),
        (rule_of("(relu ?a) (relu ?b) (relu ?c)", "?a ?b ?c"), 1, "3 sources, expected one or two"),
        (rule_of("(relu ?a)", "?a", "(symmetric)"), 1, "(symmetric) is about two sources"),
        (rule_of("(relu ?a)", "?a", "(unsound yes)"), 4, "(unsound) takes nothing"),
        (rule_of("(relu ?a)", "?a", "(widened yes)"), 4, "(widened) takes nothing"),
        (rule_of("(relu ?a)", "?a", "(where (known ?a))"), 4, "(known …) stands in (worth …)"),
        (rule_of("(relu ?a)", "?a", "(worth (not (known ?a)))"), 4, "(known …) stands in (worth …)"),
        (rule_of("(relu ?a)", "?a", "(let ?b (relu ?a))"), 1, "?b is never used"),
        (rule_of("(relu ?a)", "?b", "(let ?b ?a)"), 4, "another name for ?a"),
        (rule_of("(relu ?a)", "?b", "(let ?b (rellu ?a))"), 4, "'rellu'; did you mean 'relu'?"),
        (rule_of("(relu ?a)", "?a", "(let ?a (relu ?a))"), 4, "?a already has a meaning"),
        (rule_of("(relu ?a)", "?a", "(each ?f relu)"), 1, "each ?f is never used"),
        (rule_of("(?f ?a)", "?a", "(each ?f)"), 4, "expected (each ?name VALUE …)"),
        (rule_of("(relu ?a)") + "\n" + rule_of("(tanh ?a)"), 5, "already defined in line 1"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse_rules(text, "f.rules")
    message = str(caught.value)
    assert message.startswith(f"f.rules:{line}: ")
    assert reason in message
    assert "\n" not in message


def test_what_grows_with_each_name_has_a_limit() -> None:
    """40 names, each twice the one before: 1 kB of text for 2^39 parts."""
    lets = " ".join(f"(let ?l{i + 1} (join ?l{i} ?l{i}))" for i in range(39))
    lets = f"(let ?l0 (shape ?a)) {lets}"
    with pytest.raises(RuleError, match=r"f:4: \?l12 has more than 10000 parts"):
        parse_rules(rule_of("(relu ?a)", "(reshape (relu ?a) :shape ?l39)", lets), "f")
    terms = " ".join(f"(let ?t{i + 1} (add ?t{i} ?t{i}))" for i in range(39))
    terms = f"(let ?t0 (neg ?a)) {terms}"
    with pytest.raises(RuleError, match="has more than 10000 parts"):
        parse_rules(rule_of("(relu ?a)", "?t39", terms), "f")


def test_what_grows_with_each_choice_has_a_limit() -> None:
    choices = " ".join(f"(each ?f{i} relu tanh)" for i in range(30))
    source = "(relu ?a)"
    for i in range(30):
        source = f"(?f{i} {source})"
    with pytest.raises(RuleError, match="stands for 1073741824 rules, expected 1000 at most"):
        parse_rules(rule_of(source, "?a", choices), "f")


@given(st.text(alphabet='()[]?:"; \nrulefomthawx01', max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        parse_rules(text, "f")
    except RuleError as error:
        assert str(error).startswith("f:") and "\n" not in str(error)


@given(st.integers(0, len(GOOD) - 1))
def test_a_file_that_is_cut_off_is_refused(length: int) -> None:
    text = GOOD[:length]
    if "(" in text and text.rstrip() != GOOD.rstrip():
        with pytest.raises(RuleError):
            parse_rules(text, "f")
