"""A run with ``--search focus``: verified, explained, and kept."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from relational_tensat import Options, optimize
from relational_tensat.cli.main import main
from relational_tensat.formats import save_model
from relational_tensat.run.result import Result
from tests.run.resume.models import RULES, layers

#: So many e-nodes, of some hundreds that saturation would make.
LIMITS = {
    "subgraph_nodes": 120, "node_limit": 120, "restarts": 1, "rules": RULES, "verify_runs": 1,
    "time_limit_s": None,
}  # fmt: skip


def model_in(folder: Path) -> Path:
    """Return the file of a model on which saturation misses much within the limits."""
    path = folder / "layers.json"
    save_model(layers(2, 5), path)
    return path


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Return the database of a run, and its result."""
    path = tmp_path_factory.mktemp("search") / "run.duckdb"
    options = Options.of(cost="tensat_t4", search="focus", **LIMITS, db=path)
    return path, optimize(model_in(path.parent), options, output=path.with_name("out.json"))


def test_its_result_is_verified_and_explained(
    stored: tuple[Path, Result], capsys: pytest.CaptureFixture[str]
) -> None:
    path, result = stored
    assert result.verification.ok
    assert result.optimal
    plain = optimize(
        layers(2, 5), Options.of(cost="tensat_t4", node_limit=120, rules=RULES, search="saturation")
    )
    assert result.subgraphs[0].best_us == pytest.approx(plain.cost_after_us)
    assert result.cost_after_us < 0.8 * plain.cost_after_us
    assert main(["explain", str(path), "--check"]) == 0
    text = capsys.readouterr().out
    assert "checked: every step is what its rule says" in text
    assert f"→ {result.cost_after_us:,.2f} µs in" in text


def test_its_database_tells_which_subgraphs_and_rules_led_to_the_result(
    stored: tuple[Path, Result],
) -> None:
    path, result = stored
    with duckdb.connect(str(path), read_only=True) as connection:
        subgraphs = connection.execute("FROM subgraph ORDER BY id").fetchall()
        ((outside,),) = connection.execute(
            "SELECT count(*) FROM chosen ANTI JOIN subgraph_node AS m ON m.enode = chosen.enode"
        ).fetchall()
        rules = connection.execute(
            "SELECT DISTINCT r.name FROM chosen JOIN subgraph_node AS m ON m.enode = chosen.enode\n"
            "JOIN subgraph_application AS a ON a.subgraph = m.subgraph AND a.id = m.application\n"
            "JOIN rule AS r ON r.id = a.rule"
        ).fetchall()
    assert [row[:5] for row in subgraphs] == [subgraph.row[:5] for subgraph in result.subgraphs]
    assert outside == 0
    assert {name for (name,) in rules} >= set(result.rules_used)


def test_extractions_between_iterations_change_nothing_and_are_events(
    stored: tuple[Path, Result], capsys: pytest.CaptureFixture[str]
) -> None:
    path, expected = stored
    argv = ["run", str(path.with_name("layers.json")), "-o", str(path.with_name("events.json"))]
    argv += ["--cost", "tensat_t4", "--search", "focus", "--set", "verify-runs=1"]
    argv += ["--set", "subgraph-nodes=120", "--node-limit", "120", "--set", "restarts=1"]
    argv += [argument for file in RULES for argument in ("--rules", str(file))]
    assert main([*argv, "--set", "extract-every=2", "--json", "--json-events"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["cost_after_us"] == pytest.approx(expected.cost_after_us)
    assert [subgraph["best_us"] for subgraph in result["subgraphs"]] == [
        w.best_us for w in expected.subgraphs
    ]
    events = [json.loads(line) for line in captured.err.splitlines() if line.startswith("{")]
    extracted = [event for event in events if event["event"] == "extracted"]
    assert len(extracted) > len(expected.subgraphs)
    costs_us = [event["best_us"] for event in extracted]
    assert costs_us == sorted(costs_us, reverse=True)
    iterations = [event for event in events if event["event"] == "iteration"]
    assert len(iterations) == len(expected.log)
