"""Planted laws: false ones, which must not be written, and true ones without their conditions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bench.synthesis.judging import judged_pair
from bench.synthesis.store import SynthesisStore
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule, expr_text
from relational_tensat.rules.soundness import verify_rule

#: Laws that small terms suggest: sums of one product, dims that are equal, tensors of few truths.
FALSE_LAWS = {
    "product of one term": "(from (matmul ?a ?b)) (to (mul ?a ?b))",
    "product of one row": "(from (matmul ?a ?b)) (to (matmul ?b ?a))",
    "sum of one element": "(from (reduce_sum ?x :axes [0] :keepdims true)) (to ?x)",
    "mean of one element": "(from (reduce_mean ?x :axes [1] :keepdims true)) "
    "(to (reduce_sum ?x :axes [1] :keepdims true))",
    "softmax of one element": "(from (mul ?x (softmax ?x :axis 1))) (to ?x)",
    "square transpose": "(from (transpose (matmul ?a ?b) :perm [1 0])) "
    "(to (matmul (transpose ?a :perm [1 0]) (transpose ?b :perm [1 0])))",
    "equal halves": "(from (part (split (matmul ?a (concat ?b ?a :axis ?i)) :axis ?i :sizes ?s) :index 1)) "
    "(to (matmul ?a ?a)) (where (= ?s (list (dim ?b 1) (dim ?a 1))))",
    "equal parts": "(from (concat ?a ?b :axis 0)) (to (concat ?b ?a :axis 0))",
    "two truths": "(from (logical_and ?p (logical_not ?q))) (to (logical_and ?p ?q))",
    "truths by order": "(from (logical_or ?p ?q)) (to (logical_and ?p ?q))",
    "never equal": "(from (logical_or (less ?x ?y) (less ?y ?x))) (to (less_or_equal ?x ?y))",
    "where of equal truths": "(from (where ?p ?x ?y)) (to (where (logical_not ?p) ?x ?y))",
    "positive root": "(from (mul (sqrt ?x) (sqrt ?x))) (to (relu ?x))",
    "log of exponential": "(from (exp (log ?x))) (to ?x)",
    "nothing over itself": "(from (div ?x ?x)) (to (exp (sub ?x ?x)))",
    "relu of sum": "(from (relu (add ?x ?y))) (to (add (relu ?x) (relu ?y)))",
    "clip in order": "(from (clip (relu ?x) :max ?m)) (to (relu (clip ?x :max ?m)))",
    "largest of sum": "(from (reduce_max (add ?x ?y) :axes [1] :keepdims true)) "
    "(to (add (reduce_max ?x :axes [1] :keepdims true) (reduce_max ?y :axes [1] :keepdims true)))",
    "broadcast away": "(from (sub (add ?x ?y) ?y)) (to ?x)",
    "wide scale": "(from (reduce_sum (mul ?x ?b) :axes [1] :keepdims true)) "
    "(to (mul (reduce_sum ?x :axes [1] :keepdims true) ?b))",
}
#: So many rules that ship are tried without their conditions.
_REPAIRS = 20
#: Trials that refute what was written.
_MANY = 1_000


@dataclass(frozen=True)
class Planted:
    """What became of a planted law.

    Attributes:
        status: of ``JudgedPair``.
        condition: that was found, as text.
        is_refuted: what would be written fails on 1,000 trials: it must be False.
    """

    name: str
    status: str
    condition: str
    is_refuted: bool
    cpu_s: float


def false_laws() -> Iterator[Planted]:
    """Yield what becomes of false laws: refuted, or repaired."""
    for name, text in FALSE_LAWS.items():
        (rule,) = parse_rules(f'(rule planted (law "{name}") {text})', "planted")
        yield _planted(name, rule)


def without_conditions() -> Iterator[Planted]:
    """Yield what becomes of rules that ship once one condition, their only one, is dropped."""
    rules = [
        rule
        for rule in load_rules(None)
        if len(rule.conditions) == 1 and not rule.is_multi and verify_needed(rule)
    ]
    for rule in rules[:_REPAIRS]:
        yield _planted(rule.name, replace(rule, conditions=(), worth=(), name="planted"))


def verify_needed(rule: Rule) -> bool:
    """Whether a rule is wrong without its condition."""
    bare = replace(rule, conditions=(), worth=(), name="planted")
    return verify_rule(bare, trials=40, shrink=False).status == "unsound"


def _planted(name: str, rule: Rule) -> Planted:
    start_s = time.process_time()
    with SynthesisStore(None) as store:
        found = judged_pair(store, rule)
    more = found.rule.conditions[len(rule.conditions) :]
    is_refuted = found.status == "sound" and (
        verify_rule(found.rule, seed=7, trials=_MANY, shrink=False).status == "unsound"
    )
    condition = " ".join(map(expr_text, more))
    return Planted(name, found.status, condition, is_refuted, time.process_time() - start_s)
