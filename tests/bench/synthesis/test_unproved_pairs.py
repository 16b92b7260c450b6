"""Many pairs in one e-graph: what is proved is what each pair alone gives."""

from __future__ import annotations

from bench.synthesis.unproved_pairs import TermPair, unproved_pairs
from relational_tensat.explore.derivation import DerivationEffort
from relational_tensat.rules.language import parse_rules
from relational_tensat.tensor.types import TensorType
from tests.explore.derivation.examples import ASSOCIATES, COMMUTES

_INPUTS = {name: TensorType("float32", (3, 5)) for name in "xyz"}
_EFFORT = DerivationEffort(iterations=4, e_nodes=2_000)


def pair(source: str, target: str) -> TermPair:
    (rule,) = parse_rules(f'(rule r (law "l") (from {source}) (to {target}))', "test")
    return rule.sources[0], rule.targets[0]


_SPLIT = "(split ?x :axis 1 :sizes [2 3])"
PAIRS = [
    pair("(add ?x ?y)", "(add ?y ?x)"),
    pair("(add ?x (add ?y ?z))", "(add ?z (add ?x ?y))"),
    pair("(add ?x (relu ?y))", "(add (relu ?x) ?y)"),
    pair("(mul ?x ?y)", "(mul ?y ?x)"),
    pair("(relu (add ?x ?y))", "(relu (add ?y ?x))"),
    pair(f"(part {_SPLIT} :index 1)", f"(part {_SPLIT} :index 1)"),
]  # fmt: skip


def test_pairs_together_are_proved_as_alone() -> None:
    laws = [COMMUTES, ASSOCIATES]
    together = unproved_pairs(PAIRS, _INPUTS, laws, _EFFORT)
    alone = [
        number for number, one in enumerate(PAIRS) if unproved_pairs([one], _INPUTS, laws, _EFFORT)
    ]
    assert together == alone == [2, 3]
