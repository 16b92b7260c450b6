"""Generated SQL names in its first line the rules that it serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from relational_tensat.egraph import EGraph, rebuild
from relational_tensat.egraph.database import Database
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.explore.compile.compiled_rules import named_rules
from relational_tensat.explore.rule_run import run_on_sources
from relational_tensat.rules.library import load_rules
from tests.explore.example_rules import example_rules
from tests.explore.graphs import separate_sums

NAMED = {
    "match", "pair", "unjudged_singles", "unjudged_pairs", "application",
    "build", "fresh", "bind", "new_classes", "root_unions",
}  # fmt: skip


def test_the_first_line_names_the_rules() -> None:
    statements = set()
    for rule in load_rules(only=["reassociate-right", "merge-products-sharing-left"]):
        for statement in run_on_sources(rule):
            if statement.name in NAMED:
                statements.add(statement.name)
                first = statement.text.partition("\n")[0]
                assert first.startswith("-- "), statement
                assert rule.name in first, statement
    assert statements == NAMED


def test_the_first_line_of_what_an_exploration_adds_names_the_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cycle filter's is of the multi-pattern rules, that of edges of the others, the log's of all."""
    first_lines: dict[str, str] = {}
    execute = Database.execute

    def recorded(
        self: Database,
        text: str,
        params: Mapping[str, Any] | None = None,
        name: str = "generated",
        *arrays: Any,
    ) -> list[tuple[Any, ...]]:
        first_lines[name] = text.partition("\n")[0]
        return execute(self, text, params, name, *arrays)

    monkeypatch.setattr(Database, "execute", recorded)
    rules = example_rules("join-sums", "swap")
    explore(EGraph.create(separate_sums(3)), rules, ExplorationOptions(1))
    assert first_lines["suspect"] == "-- suspect: join-sums"
    assert first_lines["head_edges"] == "-- heads: swap"
    assert first_lines["log_instances"].endswith(f": {', '.join(rule.name for rule in rules)}")


def test_what_serves_all_rules_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "MANY_CLASSES", 0)
    (rule,) = load_rules(only=["reciprocal-twice"])
    texts = [s.text for s in run_on_sources(rule) if s.name == "canonicalize_many"]
    assert texts
    for text in texts:
        assert "all rules" in text.partition("\n")[0]


def test_of_many_rules_some_are_named_and_all_counted() -> None:
    names = [f"r{i}" for i in range(217)]
    assert named_rules(names[:2]) == "r0, r1"
    assert named_rules(names).startswith("r0, r1, ")
    assert named_rules(names).endswith(", … (217 rules)")
