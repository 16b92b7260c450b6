"""The generated SQL, to be read: one file per kind of query. UPDATE_SNAPSHOTS=1 rewrites them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from relational_tensat.explore.compile.compiled_rules import (
    CompiledRules,
    join_query,
)
from relational_tensat.explore.compile.prefixes import live_skeletons
from relational_tensat.explore.compile.search_query import search_query
from relational_tensat.rules.language import parse_rules

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = os.environ.get("UPDATE_SNAPSHOTS") == "1"

#: Rules whose queries are kept: what is special about their sources, and the rules.
CASES = {
    "one_operator": """
        (rule swap (law "a + b = b + a") (from (add ?a ?b)) (to (add ?b ?a)))
        (rule square (law "a * a = a²") (from (mul ?a ?a)) (to (pow ?a (fill :value 2.0
          :dtype (dtype ?a) :shape (shape ?a)))))
    """,
    "nested": """
        (rule regroup (law "(a + b) + c = a + (b + c)")
          (from (add (add ?a ?b) ?c)) (to (add ?a (add ?b ?c))))
        (rule factor-in (law "(a / b) * b = a") (from (mul (div ?a ?b) ?b)) (to ?a))
    """,
    "deep": """
        (rule thrice (law "idempotent") (from (relu (relu (relu ?x)))) (to (relu ?x)))
    """,
    "branching": """
        (rule factor (law "a * c + b * c = (a + b) * c")
          (from (add (mul ?a ?c) (mul ?b ?c))) (to (mul (add ?a ?b) ?c)))
    """,
    "shared": """
        (rule regroup (law "(a + b) + c = a + (b + c)")
          (from (add (add ?a ?b) ?c)) (to (add ?a (add ?b ?c))))
        (rule thrice (law "none: to be read only") (unsound)
          (from (add (add (add ?a ?b) ?a) ?c)) (to ?c))
        (rule factor (law "none, too") (unsound)
          (from (add (add ?a ?c) (add ?b ?c))) (to ?c))
        (rule swap-inner (law "(a + b) + (c + d) = (a + c) + (b + d)")
          (from (add (add ?a ?b) (add ?c ?d))) (to (add (add ?a ?c) (add ?b ?d))))
    """,
    "multi_join": """
        (rule join-left (law "[A·B, A·C] = A·[B, C]") (symmetric)
          (from (matmul ?a ?b) (matmul ?a ?c))
          (let ?s (split (matmul ?a (concat ?b ?c :axis 1))
                         :axis 1 :sizes (list (dim ?b 1) (dim ?c 1))))
          (to (part ?s :index 0) (part ?s :index 1)))
        (rule swap-left (law "both commuted")
          (from (add ?a ?b) (add ?a ?c)) (to (add ?b ?a) (add ?c ?a)))
    """,
    "multi_cartesian": """
        (rule any-two (law "both commuted")
          (from (add ?a ?b) (mul ?c ?d)) (to (add ?b ?a) (mul ?d ?c)))
    """,
}


def search_of(compiled: CompiledRules) -> str:
    """Return the query of a search in an e-graph that has all that the rules speak of."""
    for pattern in compiled.patterns:
        for node in pattern.nodes:
            compiled.heads(node.example())
    compiled.register_heads()
    phase = "multi" if compiled.joins else "single"
    live = live_skeletons(compiled, phase)
    return search_query(live, compiled.node_columns, compiled.leaf_columns, phase)


def generated(case: str) -> str:
    """Return all queries of a case, each under a comment with its rules."""
    compiled = CompiledRules(parse_rules(CASES[case], f"{case}.rules"))
    names = ", ".join(rule.rule.name for rule in compiled.rules)
    texts = [f"-- of the rules {names}\n{search_of(compiled)};\n"]
    for group in compiled.joins:
        names = ", ".join(compiled.rules[number - 1].rule.name for number in group.rules)
        head = f"-- pairs of matches that share {list(group.shared)}, of the rules {names}"
        texts.append(f"{head}\n{join_query(group, compiled)};\n")
    return "\n".join(texts)


@pytest.mark.parametrize("case", CASES)
def test_the_sql_is_as_it_was(case: str) -> None:
    path = SNAPSHOTS / f"{case}.sql"
    if UPDATE:
        path.write_text(generated(case), encoding="utf-8")
    assert generated(case) == path.read_text(encoding="utf-8"), (
        "UPDATE_SNAPSHOTS=1 accepts the change"
    )


def test_there_is_no_other_snapshot() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.sql")} == set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_sql_parses(case: str) -> None:
    text = generated(case)
    compiled = CompiledRules(parse_rules(CASES[case], f"{case}.rules"))
    assert len(duckdb.extract_statements(text)) == 1 + len(compiled.joins)


def test_rules_of_one_shape_share_a_query() -> None:
    count: Callable[[str], int] = lambda case: generated(case).count("-- match")  # noqa: E731
    assert [count(case) for case in ("one_operator", "nested", "deep", "branching")] == [1] * 4
    assert count("multi_join") == 1
    assert generated("multi_join").count("-- pairs of matches") == 1


def test_the_sql_names_no_operator() -> None:
    compiled = CompiledRules(parse_rules(CASES["branching"], "test.rules"))
    text = search_of(compiled)
    assert "mul" not in text.replace("multi", "")
    assert "add" not in text


def test_what_only_later_leaves_join_is_multiplied_for_no_two_branches() -> None:
    text = """
        (rule once (law "none") (unsound)
          (from (add (mul ?a ?b) (mul (mul ?a ?b) ?c))) (to ?c))
        (rule twice (law "none") (unsound)
          (from (add (mul ?a ?b) (mul (add ?a ?b) ?c))) (to ?c))
    """
    expected = """
        (rule products (law "a·b + c·d = c·d + a·b")
          (from (add (mul ?a ?b) (mul ?c ?d))) (to (add (mul ?c ?d) (mul ?a ?b))))
    """
    shared = [
        search_of(CompiledRules(parse_rules(rules, "test.rules"))).count("AS MATERIALIZED")
        for rules in (text, text + expected)
    ]
    assert shared == [0, 1]
