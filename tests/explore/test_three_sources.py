"""Rules of more than two sources, as kernels of several values have: joined, applied and filtered alike."""

from __future__ import annotations

from itertools import permutations

import pytest

from bench.models.builder import GraphBuilder
from relational_tensat.base.errors import RuleError
from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, explore
from relational_tensat.explore.apply import application, direct
from relational_tensat.rules.language import parse_rules
from relational_tensat.tensor import Graph
from tests.egraph.invariants import assert_invariants
from tests.explore.example_rules import example_rules

_TEXT = """
(rule join-three (law "[A·B, A·C, A·D] = A·[B, C, D]") {flag}
  (from (matmul ?a ?b) (matmul ?a ?c) (matmul ?a ?d))
  (let ?all (split (matmul ?a (concat ?b ?c ?d :axis 1)) :axis 1
                   :sizes (list (dim ?b 1) (dim ?c 1) (dim ?d 1))))
  (to (part ?all :index 0) (part ?all :index 1) (part ?all :index 2)))
"""
SIZE = 4


def _rules(flag: str = "") -> list:
    """The rule of three sources, beside one of two and one of one."""
    return [
        *parse_rules(_TEXT.format(flag=flag), "three.rules", 3),
        *example_rules("join-products", "swap"),
    ]


def products(count: int, *, is_cyclic: bool = False) -> Graph:
    """Products of one value, and one of another; the last one's other operand may be the first."""
    b = GraphBuilder("products")
    x = b.input("x", SIZE, SIZE)
    made = [b.op("matmul", x, b.weight(f"w{n}", SIZE, SIZE)) for n in range(count)]
    last = b.op("matmul", x, made[0]) if is_cyclic else b.op("tanh", x)
    return b.build(b.op("add", last, b.op("matmul", b.op("relu", x), made[-1])), *made)


def _explored(graph: Graph, cycle_filter: str, flag: str = "") -> tuple[EGraph, Exploration]:
    egraph = EGraph.create(graph)
    options = ExplorationOptions(1, 1, cycle_filter=cycle_filter, time_limit_s=None)
    exploration = explore(egraph, _rules(flag), options)
    assert_invariants(egraph, cycle_filter)
    return egraph, exploration


@pytest.mark.parametrize(("flag", "orders"), [("", 6), ("(symmetric)", 1)])
def test_each_three_matches_of_distinct_classes_are_joined(flag: str, orders: int) -> None:
    count = 4
    _, exploration = _explored(products(count), "efficient", flag)
    threes = {frozenset(three) for three in permutations(range(count), 3)}
    assert exploration.rules["join-three"].matches == orders * len(threes)
    assert exploration.rules["join-products"].matches == count * (count - 1) // 2


@pytest.mark.parametrize("cycle_filter", ["efficient", "vanilla"])
def test_one_that_would_need_its_own_result_is_rejected(cycle_filter: str) -> None:
    """x·w0, x·w1 and x·(x·w0): no kernel can give all three."""
    _, exploration = _explored(products(2, is_cyclic=True), cycle_filter, "(symmetric)")
    run = exploration.rules["join-three"]
    assert (run.matches, run.applied) == (1, 0)
    _, exploration = _explored(products(3), cycle_filter, "(symmetric)")
    assert exploration.rules["join-three"].applied


def _tables(cycle_filter: str) -> dict[str, object]:
    egraph, _ = _explored(products(4), cycle_filter)
    queries = ("FROM enode ORDER BY id", "FROM eclass ORDER BY id", "FROM union_log ORDER BY ALL")
    rows: dict[str, object] = {q: egraph.connection.execute(q).fetchall() for q in queries}
    egraph.close()
    return rows


@pytest.mark.parametrize("cycle_filter", ["efficient", "none"])
def test_labels_joined_and_looked_up_make_the_same_tables(
    cycle_filter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = _tables(cycle_filter)
    monkeypatch.setattr(direct, "MANY_LABELS", 1)
    monkeypatch.setattr(application, "MANY_LABELS", 1)
    assert _tables(cycle_filter) == looked_up


def test_a_rule_that_is_written_by_hand_has_two_at_most() -> None:
    with pytest.raises(RuleError, match="join-three: 3 sources, expected one or two"):
        parse_rules(_TEXT.format(flag=""), "three.rules")
