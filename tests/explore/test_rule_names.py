"""Generated SQL says in its first line which rules it serves."""

from __future__ import annotations

from relational_tensat.explore.compile.compiled import named_rules
from relational_tensat.explore.rule_run import run_on_sources
from relational_tensat.rules.library import load_rules

NAMED = {
    "match", "pair", "unjudged_singles", "unjudged_pairs", "application",
    "hash_cons", "bind", "new_classes", "root_unions",
}  # fmt: skip


def test_the_first_line_names_the_rules() -> None:
    seen = set()
    for rule in load_rules(only=["reassociate-right", "merge-products-sharing-left"]):
        for statement in run_on_sources(rule):
            if statement.name in NAMED:
                seen.add(statement.name)
                first = statement.text.partition("\n")[0]
                assert first.startswith("-- "), statement
                assert rule.name in first, statement
    assert seen == NAMED


def test_of_many_rules_some_are_named_and_all_counted() -> None:
    names = [f"r{i}" for i in range(217)]
    assert named_rules(names[:2]) == "r0, r1"
    assert named_rules(names).startswith("r0, r1, ")
    assert named_rules(names).endswith(", … (217 rules)")
