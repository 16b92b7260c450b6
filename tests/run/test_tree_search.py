"""A run with ``--search mcts``: verified, explained, kept, and the same for the same seed."""

from __future__ import annotations

import signal
from pathlib import Path

import duckdb
import pytest

from bench.models import MODELS
from relational_tensat import Options, optimize
from relational_tensat.base.files import resource_dir
from relational_tensat.cli.main import main
from relational_tensat.explore import IterationReport
from relational_tensat.explore.subgraphs.firings import Fired, Subgraphs
from relational_tensat.explore.subgraphs.node_arrays import Ints
from relational_tensat.formats import save_model
from relational_tensat.run.pipeline import resume
from relational_tensat.run.progress import Silent
from relational_tensat.run.result import Result
from tests.cli.schema import check_schema
from tests.run.resume.models import RULES, layers

LIMITS = {"node_limit": 120, "tree_budget": 16, "tree_steps": 4, "tree_threshold": 0.0}


def options(path: Path | None = None, **changes: object) -> Options:
    """Return the options of a small search."""
    limits = {"rules": RULES, "search": "mcts", "time_limit_s": None, **LIMITS, **changes}
    return Options.of(cost="tensat_t4", db=path, **limits)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Return the database of a run, and its result."""
    path = tmp_path_factory.mktemp("search") / "run.duckdb"
    model = path.with_name("layers.json")
    save_model(layers(2, 4), model)
    return path, optimize(model, options(path), output=path.with_name("out.json"))


def test_its_result_is_verified_and_explained(
    stored: tuple[Path, Result], capsys: pytest.CaptureFixture[str]
) -> None:
    path, result = stored
    assert result.verification.ok
    assert result.cost_after_us < result.cost_before_us
    assert result.cost_after_us <= min(subgraph.best_us for subgraph in result.subgraphs) + 1e-6
    assert {subgraph.kind for subgraph in result.subgraphs} <= {"decision", "rollout"}
    assert all(subgraph.e_nodes <= 120 for subgraph in result.subgraphs)
    check_schema(result.to_json())
    assert result.to_json()["decisions"]
    assert main(["explain", str(path), "--check"]) == 0
    assert "checked: every step is what its rule says" in capsys.readouterr().out


def test_its_database_has_the_universe_the_subgraphs_and_the_tree(
    stored: tuple[Path, Result],
) -> None:
    path, result = stored
    with duckdb.connect(str(path), read_only=True) as connection:

        def rows(query: str) -> list[tuple[object, ...]]:
            return connection.execute(query).fetchall()

        decided = rows(
            "SELECT r.name FROM tree_decision AS d JOIN rule AS r ON r.id = d.rule ORDER BY d.decision"
        )
        assert decided == [(decision.rule,) for decision in result.decisions]
        assert rows(
            "SELECT min(len(rules)), min(len(costs_us) - len(rules)) FROM tree_rollout"
        ) == [(1, 1)]
        assert rows("SELECT max(e_nodes) <= 120 FROM tree_rollout") == [(True,)]
        invariants = resource_dir("sql") / "invariants"
        files = sorted((*invariants.glob("subgraphs/*.sql"), *invariants.glob("search_tree/*.sql")))
        assert len(files) >= 8
        for file in files:
            assert rows(file.read_text(encoding="utf-8")) == [], file.stem


def test_the_same_seed_draws_the_same(tmp_path: Path) -> None:
    rollouts = []
    for name, seed in (("one", 0), ("again", 0), ("other", 7)):
        path = tmp_path / f"{name}.duckdb"
        optimize(layers(2, 3), options(path, seed=seed, tree_policy="uniform"))
        with duckdb.connect(str(path), read_only=True) as connection:
            rollouts.append(connection.execute("FROM tree_rollout").fetchall())
    first, second, third = rollouts
    assert first == second
    assert first != third


@pytest.mark.parametrize(
    "changes",
    [
        {"tree_variant": "paper", "tree_policy": "uniform", "tree_at_once": 1},
        {"tree_extractor": "greedy", "tree_decisions": 1},
        {"tree_extractor": "greedy-dag", "tree_decisions": 1},
        {"tree_extractor": "ilp", "tree_decisions": 1},
        {"tree_decisions": 1},
        {"universe_limit": 60},
    ],
)
def test_it_can_be_varied(changes: dict[str, object]) -> None:
    result = optimize(layers(2, 3), options(**changes))
    assert result.verification.ok
    assert result.e_nodes <= 120 or "universe_limit" not in changes
    assert result.cost_after_us <= result.cost_before_us
    assert len(result.decisions) <= 1 or "tree_decisions" not in changes


class PressesCtrlC(Silent):
    """Progress that presses Ctrl-C in the midst of the second decision."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch

    def iteration(self, report: IterationReport) -> None:
        fire = Subgraphs.fire

        def pressing(subgraphs: Subgraphs, rules: Ints, iteration: int) -> Fired:
            signal.raise_signal(signal.SIGINT)
            self._patch.setattr(Subgraphs, "fire", fire)
            return fire(subgraphs, rules, iteration)

        self._patch.setattr(Subgraphs, "fire", pressing)


def test_ctrl_c_keeps_the_subgraphs_and_the_cheapest_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = tmp_path / "run.duckdb"
    save_model(layers(2, 3), tmp_path / "layers.json")
    settings = options(db, node_limit=400, tree_budget=8, extractor="greedy")
    result = optimize(tmp_path / "layers.json", settings, progress=PressesCtrlC(monkeypatch))
    assert result.stop_reason == "interrupted"
    assert len(result.decisions) == 1
    assert {subgraph.kind for subgraph in result.subgraphs} == {"decision", "rollout"}
    cheapest_us = min(subgraph.best_us for subgraph in result.subgraphs)
    assert result.cost_after_us <= cheapest_us < result.cost_before_us
    with duckdb.connect(str(db), read_only=True) as connection:
        ((trees, decided, members),) = connection.execute(
            "SELECT (SELECT max(decision) FROM tree_rollout), (SELECT count(*) FROM tree_decision),\n"
            "    (SELECT count(*) FROM subgraph_node)"
        ).fetchall()
    assert (trees, decided) == (2, 1)
    assert members == sum(subgraph.e_nodes for subgraph in result.subgraphs)
    assert resume(db).cost_after_us <= cheapest_us


def test_a_time_limit_keeps_what_the_first_tree_has_found() -> None:
    result = optimize(layers(2, 3), options(node_limit=400, time_limit_s=1e-3))
    assert (result.stop_reason, result.decisions) == ("time", ())
    assert result.verification.ok
    assert [subgraph.kind for subgraph in result.subgraphs] == ["decision"]


@pytest.mark.nightly
def test_a_real_subgraph_that_no_rule_changes_has_every_graph(stored: tuple[Path, Result]) -> None:
    """Saturation with multi-pattern rules in every iteration has the same, and proves the same."""
    assert not stored[1].exhaustive  # its subgraphs' limits were met
    graph = MODELS["vgg19"]()
    found = optimize(graph, Options.of(cost="tensat_t4", search="mcts"))
    assert found.stop_reason == "saturated"
    assert found.exhaustive
    all_rules = {"multi_iterations": 99, "multi_schedule": "saturated", "cycle_filter": "none"}
    saturated = optimize(graph, Options.of(cost="tensat_t4", search="saturation", **all_rules))
    assert saturated.exhaustive
    assert found.cost_after_us == pytest.approx(saturated.cost_after_us)
