"""Rules that are written once: two directions, optional operands, choices."""

from __future__ import annotations

import pytest

from relational_tensat.base.errors import RuleError
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import (
    Apply,
    Expr,
    Rule,
    Term,
    Var,
    expr_text,
    rule_text,
    term_text,
)


def written(text: str) -> dict[str, Rule]:
    return {rule.name: rule for rule in parse_rules(text, "f.rules")}


def sides(rule: Rule) -> tuple[list[str], list[str]]:
    return [term_text(s) for s in rule.sources], [term_text(t) for t in rule.targets]


def test_two_directions_are_two_rules_each_with_its_own_worth() -> None:
    rules = written("""(rule right (law "(A·B)·C = A·(B·C)")
      (<=> (matmul (matmul ?a ?b) ?c) (matmul ?a (matmul ?b ?c)))
      (forwards (worth (= (rank ?a) 2)))
      (backwards left (law "A·(B·C) = (A·B)·C") (where (= (rank ?c) 2)) (worth false))
      (where (= (rank ?b) 2)))""")
    assert list(rules) == ["right", "left"]
    assert sides(rules["right"]) == tuple(reversed(sides(rules["left"])))
    assert [[expr_text(c) for c in r.conditions] for r in rules.values()] == [
        ["(= (rank ?b) 2)"],
        ["(= (rank ?b) 2)", "(= (rank ?c) 2)"],
    ]
    assert [[expr_text(c) for c in r.worth] for r in rules.values()] == [
        ["(= (rank ?a) 2)"],
        ["false"],
    ]
    assert [r.law for r in rules.values()] == ["(A·B)·C = A·(B·C)", "A·(B·C) = (A·B)·C"]


def test_an_optional_operand_is_there_or_is_not() -> None:
    rules = written("""(rule merge (law "columns")
      (from (matmul ?a ?b (optional ?u)) (matmul ?a ?c (optional ?v)))
      (let ?bias (concat ?u ?v :axis -1))
      (let ?s (split (matmul ?a (concat ?b ?c :axis -1) (optional ?bias))
                     :axis -1 :sizes (list (dim ?b -1) (dim ?c -1))))
      (to (part ?s :index 0) (part ?s :index 1))
      (where (= (rank ?b) 2) (optional (= (rank ?u) 1) :else (= (rank ?c) 2)))
      (with merge-biased (law "columns, and their biases")))""")
    plain = parse_rules(
        """(rule merge-biased (law "columns, and their biases")
      (from (matmul ?a ?b ?u) (matmul ?a ?c ?v))
      (let ?s (split (matmul ?a (concat ?b ?c :axis -1) (concat ?u ?v :axis -1))
                     :axis -1 :sizes (list (dim ?b -1) (dim ?c -1))))
      (to (part ?s :index 0) (part ?s :index 1))
      (where (= (rank ?b) 2) (= (rank ?u) 1)))
    (rule merge (law "columns")
      (from (matmul ?a ?b) (matmul ?a ?c))
      (let ?s (split (matmul ?a (concat ?b ?c :axis -1))
                     :axis -1 :sizes (list (dim ?b -1) (dim ?c -1))))
      (to (part ?s :index 0) (part ?s :index 1))
      (where (= (rank ?b) 2) (= (rank ?c) 2)))""",
        "f.rules",
    )
    assert {rule_body(rule) for rule in rules.values()} == {rule_body(rule) for rule in plain}


def rule_body(rule: Rule) -> str:
    return rule_text(rule).partition("\n")[2]


def test_variants_that_are_not_named_are_named_after_the_rule() -> None:
    rules = written("""(rule r (law "l") (each ?f relu tanh)
      (<=> (?f (matmul ?a ?b (optional ?v))) (matmul ?a ?b (optional ?v) :act ?f)))""")
    assert list(rules) == [
        "r[relu]", "r[tanh]", "r[relu,with]", "r[tanh,with]",
        "r[relu,backwards]", "r[tanh,backwards]", "r[relu,backwards,with]", "r[tanh,backwards,with]",
    ]  # fmt: skip


def test_the_innermost_name_and_law_of_a_variant_count() -> None:
    rules = written("""(rule a (law "1") (with b (law "2"))
      (<=> (neg (matmul ?x ?y (optional ?v))) (matmul ?x (neg ?y) (optional (neg ?v))))
      (backwards c (law "3") (with d (law "4"))))""")
    assert {name: rule.law for name, rule in rules.items()} == {
        "a": "1", "b": "2", "c": "3", "d": "4",
    }  # fmt: skip


def test_a_variant_may_take_some_of_the_choices() -> None:
    rules = written("""(rule r (law "l") (each ?f add mul sub)
      (<=> (?f (?f ?x ?b) ?c) (?f ?x (?f ?b ?c)))
      (forwards (for ?f add mul)) (backwards back (for ?f mul)))""")
    assert list(rules) == ["r[add]", "r[mul]", "back"]
    assert rules["back"].sources[0].op == "mul"


def test_attributes_can_be_optional() -> None:
    rules = written("""(rule r (law "l")
      (from (gelu (matmul ?a ?b (optional ?v)) (optional :else :approximate ?h)))
      (to (gelu (matmul ?a ?b (optional ?v)) (optional :else :approximate ?h))))""")
    assert rules["r"].sources[0].attrs == (("approximate", Var("h")),)
    assert rules["r[with]"].sources[0].attrs == ()


def rule_of(clauses: str) -> str:
    return f'(rule r (law "l")\n{clauses})'


BIASED = "(from (neg (matmul ?a ?b (optional ?v))))"


@pytest.mark.parametrize(
    ("clauses", "line", "reason"),
    [
        ("(<=> (relu ?a))", 2, "expected (<=> LEFT RIGHT)"),
        ("(<=> (relu ?a) (neg ?a))\n(to ?a)", 1, "(<=> …) stands instead of (from …) and (to …)"),
        ("(<=> (relu ?a) (neg ?a))\n(<=> (relu ?a) (neg ?a))", 3, "a second (<=> …)"),
        ("(<=> (relu ?a) ?a)", 2, "the source '?a' is no operator's term (r[backwards], backwards)"),
        ("(<=> (neg (neg ?a)) (add ?a ?b))", 2, "?b is not bound by a source; did you mean '?a'? (r,"),
        ("(from (relu ?a)) (to ?a)\n(backwards b)", 3, "(backwards …) in a rule without (<=> …)"),
        ("(from (relu ?a)) (to ?a)\n(with b)", 3, "(with …) in a rule without (optional …)"),
        ("(from (relu ?a)) (to ?a)\n(optional ?b)", 3, "unknown clause 'optional'"),
        ("(<=> (relu ?a) (neg ?a))\n(backwards b (wurth false))", 3, "did you mean 'worth'?"),
        ("(<=> (relu ?a) (neg ?a))\n(backwards b c)", 3, "'c' cannot stand in (backwards …)"),
        ("(<=> (relu ?a) (neg ?a))\n(backwards b) (backwards c)", 3, "a second name of the variant"),
        ("(<=> (relu ?a) (neg ?a))\n(where true) (where true)", 3, "a second (where …)"),
        ("(<=> (relu ?a) (neg ?a)) (let ?c (rank ?a))", 1, "the name ?c is never used"),
        (BIASED + "\n(to (matmul ?a ?b ?v))", 3, "did you mean '?b'? (r, without)"),
        (BIASED + "\n(to (matmul ?a ?b (optional)))", 3, "expected (optional X … :else Y …)"),
        (BIASED + "\n(to ?a (optional :else ?b :else ?c))", 3, "expected (optional X … :else Y …)"),
        ("(each ?f relu neg) (<=> (?f ?a) (exp ?a))\n(backwards (for ?f reluu))", 3, "'relu'?"),
        ("(from (relu ?a)) (to ?a)\n(for ?f relu)", 3, "unknown clause 'for'"),
        ("(from (relu ?a)) (to ?a)\n(ruleset)", 3, "expected (ruleset NAME …)"),
        ("(from (relu ?a)) (to ?a)\n(ruleset a+b)", 3, "a ruleset's name is letters, digits, - _ ."),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_line(clauses: str, line: int, reason: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse_rules(rule_of(clauses), "f.rules")
    assert str(caught.value).startswith(f"f.rules:{line}: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def normal(rule: Rule, *, backwards: bool = False, biases: bool = True) -> tuple[str, ...]:
    """Return a rule's sides with variables named in order, whatever they are called."""
    names: dict[str, str] = {}

    def text(term: Term | Expr) -> str:
        if isinstance(term, Var):
            return names.setdefault(term.name, f"?{len(names)}")
        if not isinstance(term, Apply):
            return expr_text(term)
        operands = term.children
        if not biases and term.op in ("matmul", "conv"):
            operands = operands[:2]
        attrs = [f":{name} {text(value)}" for name, value in term.attrs]
        return f"({' '.join([term.op, *map(text, operands), *attrs])})"

    sides: list[tuple[Term, ...]] = [rule.sources, rule.targets]
    return tuple(text(term) for side in (reversed(sides) if backwards else sides) for term in side)


def places(rule: Rule) -> tuple[str, int]:
    return rule.file, rule.line


def test_no_two_shipped_rules_are_each_other_backwards_unless_they_are_written_as_one() -> None:
    # a second rule of one law: what is known stands in a condition of its own
    rules = [rule for rule in load_rules() if not rule.name.startswith("known-operands-meet")]
    by_sides = {normal(rule): rule for rule in rules}
    pairs = [
        (rule, inverse)
        for rule in rules
        if (inverse := by_sides.get(normal(rule, backwards=True))) and inverse is not rule
    ]
    assert len(pairs) == 2 * 24
    assert [(a.name, b.name) for a, b in pairs if places(a) != places(b)] == []


#: Written apart: rules of two directions that have a bias in one only, and one whose bias moves.
_APART = {
    "convolution-of-joined-channels-with-bias", "reassociate-through-bias",
    "scale-left-factor-with-bias", "scale-right-factor-with-bias", "sum-of-convolutions-with-bias",
}  # fmt: skip


def test_no_shipped_rule_stands_twice_only_because_of_a_bias() -> None:
    rules = load_rules()
    unbiased = {normal(rule): rule for rule in rules}
    apart = set()
    for rule in rules:
        without = normal(rule, biases=False)
        other = unbiased.get(without)
        if other and without != normal(rule) and places(other) != places(rule):
            apart.add(rule.name)
    assert apart == _APART
