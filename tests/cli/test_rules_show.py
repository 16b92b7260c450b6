"""Rules printed in their own language, and as SQL."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from relational_tensat.cli.main import main
from relational_tensat.cli.rules_text import rule_sql
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.explore.compile.compiled_rules import CompiledRules
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Rule, rule_text
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed
from tests.explore.python_matcher import PythonMatcher
from tests.tiers import nightly

ALL = [*load_rules(), *taso_rules()]

#: What an iteration leaves: e-nodes, and classes with their height labels.
E_GRAPH = (
    "SELECT id, class, signature, c0, c1, c2, c3, c4, filtered FROM enode ORDER BY id",
    "SELECT id, parent, height FROM eclass ORDER BY id",
)


def test_a_printed_rule_reads_back_the_same() -> None:
    for rule in ALL:
        plain = replace(rule, name=rule.name.partition("[")[0])
        (again,) = parse_rules(rule_text(plain), "printed")
        assert replace(again, file=plain.file, line=plain.line) == plain, rule.name


def test_the_sql_is_all_that_a_rule_runs() -> None:
    for rule in load_rules(only=["reassociate-right", "merge-products-sharing-left"]):
        text = rule_sql(rule)
        assert text.startswith(f"-- rule {rule.name} (")
        assert duckdb.extract_statements(text)
        assert ("-- join " in text) == rule.is_multi
        changes = re.findall(r"(?:INSERT INTO|REPLACE TEMP TABLE) (\w+)", text)
        for search in ("match", "instance", "application", "enode", "eclass", "union_log"):
            assert search in changes, (rule.name, search)  # in this order
            changes = changes[changes.index(search) :]


@pytest.mark.parametrize("every", [3, nightly(1)])
def test_on_a_runs_database_it_runs_as_printed_and_gives_matches_and_e_graph(
    tmp_path: Path, every: int
) -> None:
    path = tmp_path / "run.duckdb"
    egraph = explored_mixed(path)
    matcher = PythonMatcher(egraph)
    rules = [rule for rule in example_rules() if not rule.unsound]
    expected = {rule.name: Counter(matcher.applications(rule)) for rule in rules}
    egraph.close()
    before = path.read_bytes()
    assert sum(bool(matches) for matches in expected.values()) > 4
    assert any(expected[rule.name] for rule in rules if rule.is_multi)
    texts = {rule.name: rule_sql(rule, path) for rule in rules}
    for rule in rules[::every]:
        with duckdb.connect(str(path), read_only=True) as connection:
            matches = run_as_printed(texts[rule.name], connection, rule)
            assert matches == Counter(
                (match.roots, match.bindings) for match in expected[rule.name].elements()
            ), rule.name
            alone = explored_mixed()
            explore(alone, [rule], ExplorationOptions(1, node_limit=1_000_000))
            for query in E_GRAPH:
                rows = connection.execute(query).fetchall()
                assert rows == alone.connection.execute(query).fetchall(), rule.name
            alone.close()
    assert path.read_bytes() == before
    for statement in (
        "TEMP TABLE suspect",
        "DELETE FROM application",
        "SET filtered = true",
        "SET height = lifted",
    ):
        assert any(statement in text for text in texts.values()), statement


def explored_mixed(path: Path | None = None) -> EGraph:
    egraph = EGraph.create(mixed(), path)
    explore(egraph, example_rules(), ExplorationOptions(2, node_limit=600))
    return egraph


def run_as_printed(
    text: str, connection: duckdb.DuckDBPyConnection, rule: Rule
) -> Counter[tuple[tuple[int, ...], ...]]:
    """Run what is printed where nothing can be changed; return roots and bindings of all matches."""
    slots = CompiledRules([rule]).rules[0].slots
    matches: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for statement in connection.extract_statements(text):
        rows = connection.execute(statement).fetchall()
        if "SELECT id, root0, root1, b" in statement.query:
            matches += Counter(
                ((root0, root1) if rule.is_multi else (root0,), tuple(b[s] for s in slots))
                for _, root0, root1, b in rows
            )
    return matches


def test_what_it_cannot_run_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show = ["rules", "show", "reassociate-right"]
    assert main([*show, "--db", "run.duckdb"]) == 2
    assert "--db goes with --sql" in capsys.readouterr().err
    missing = tmp_path / "none.duckdb"
    assert main([*show, "--sql", "--db", str(missing)]) == 3
    assert f"{missing}: no such database file" in capsys.readouterr().err
    old = tmp_path / "old.duckdb"
    egraph = EGraph.create(mixed(), old)
    egraph.connection.execute("UPDATE meta SET value = '1' WHERE key = 'format_version'")
    egraph.close()
    assert main([*show, "--sql", "--db", str(old)]) == 3
    assert "the database has format 1, expected" in capsys.readouterr().err
