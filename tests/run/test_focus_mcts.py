"""A run with ``--search focus-mcts``: focus, a tree search of its universe, focus from what that found."""

from __future__ import annotations

import signal
from pathlib import Path

import duckdb
import pytest

from bench.models import MODELS
from relational_tensat import Options, optimize
from relational_tensat.base.files import resource_dir
from relational_tensat.cli.main import main
from relational_tensat.explore.outcome import SubgraphReport
from relational_tensat.explore.strategies.mcts.decisions import TreeSearch
from relational_tensat.explore.subgraphs.firings import Fired, Subgraphs
from relational_tensat.explore.subgraphs.node_arrays import Ints
from relational_tensat.run.pipeline import resume
from relational_tensat.run.result import Result
from tests.run.resume.models import RULES, layers
from tests.run.test_search import model_in

LIMITS = {
    "cost": "tensat_t4", "rules": RULES, "verify_runs": 1, "time_limit_s": None,
    "subgraph_nodes": 120, "node_limit": 120, "restarts": 1,
    "tree_budget": 16, "tree_steps": 4, "tree_threshold": 0.0,
}  # fmt: skip


def options(path: Path | None = None, search: str = "focus-mcts", **changes: object) -> Options:
    """Return the options of a small search."""
    return Options.of(search=search, db=path, **{**LIMITS, **changes})


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Return the database of a run, and its result."""
    path = tmp_path_factory.mktemp("search") / "run.duckdb"
    return path, optimize(model_in(path.parent), options(path), output=path.with_name("out.json"))


def test_its_result_is_verified_and_explained(
    stored: tuple[Path, Result], capsys: pytest.CaptureFixture[str]
) -> None:
    path, result = stored
    assert result.verification.ok
    assert result.stop_reason == "focus"
    assert result.cost_after_us <= min(subgraph.best_us for subgraph in result.subgraphs) + 1e-6
    assert main(["explain", str(path), "--check"]) == 0
    assert "checked: every step is what its rule says" in capsys.readouterr().out


def test_the_tree_search_has_subgraphs_between_those_of_focus(stored: tuple[Path, Result]) -> None:
    _, result = stored
    kinds = [subgraph.kind for subgraph in result.subgraphs]
    first = kinds.index("rollout")
    assert kinds[first : first + 3] == ["rollout", "decision", "universe"]
    assert {"rollout", "decision"}.isdisjoint(kinds[:first] + kinds[first + 2 :])
    assert kinds[first + 3] == "chosen"
    rollout, chosen = result.subgraphs[first], result.subgraphs[first + 3]
    assert chosen.seed_us == min(rollout.best_us, result.subgraphs[first + 1].best_us)
    assert [subgraph.subgraph for subgraph in result.subgraphs] == list(range(1, len(kinds) + 1))
    assert [decision.decision for decision in result.decisions] == list(
        range(result.subgraphs[first - 1].iteration + 1, rollout.iteration + 1)
    )
    iterations = [subgraph.iteration for subgraph in result.subgraphs]
    assert iterations == sorted(iterations)
    assert [entry.iteration for entry in result.log] == list(range(1, result.iterations + 1))


@pytest.mark.nightly
def test_it_is_never_dearer_than_either_alone() -> None:
    for graph in (layers(2, 5), layers(3, 3)):
        both = optimize(graph, options(node_limit=150, subgraph_nodes=150))
        for search in ("focus", "mcts"):
            alone = optimize(graph, options(None, search, node_limit=150, subgraph_nodes=150))
            assert both.cost_after_us <= alone.cost_after_us + 1e-6
            if search == "focus":
                before = [w.row[:9] for w in alone.subgraphs]
                assert [w.row[:9] for w in both.subgraphs][: len(before)] == before


def test_what_holds_of_subgraphs_and_trees_holds_in_its_database(
    stored: tuple[Path, Result],
) -> None:
    path, _ = stored
    with duckdb.connect(str(path), read_only=True) as connection:
        for file in sorted((resource_dir("sql") / "invariants" / "subgraphs").glob("*.sql")):
            query = file.read_text(encoding="utf-8")
            assert connection.execute(query).fetchall() == [], file.stem
        for name in ("not_live", "twice", "visits"):
            file = resource_dir("sql") / "invariants" / "search_tree" / f"{name}.sql"
            query = file.read_text(encoding="utf-8")
            assert connection.execute(query).fetchall() == [], name


@pytest.mark.nightly
def test_the_same_seed_draws_the_same(tmp_path: Path) -> None:
    rows = []
    for name in ("one", "again"):
        path = tmp_path / f"{name}.duckdb"
        optimize(layers(2, 4), options(path, seed=3))
        with duckdb.connect(str(path), read_only=True) as connection:
            rows.append(
                [
                    connection.execute(f"FROM {table}").fetchall()
                    for table in ("tree_rollout", "subgraph_node", "enode")
                ]
            )
    assert rows[0] == rows[1]


@pytest.mark.nightly
def test_where_the_tree_search_fills_the_universe_both_its_subgraphs_are_kept() -> None:
    graph = layers(2, 5)
    whole = optimize(graph, options())
    limit = next(subgraph.universe for subgraph in whole.subgraphs if subgraph.kind == "decision")
    result = optimize(graph, options(universe_limit=limit))
    assert result.stop_reason == "universe"
    assert [subgraph.kind for subgraph in result.subgraphs][-2:] == ["rollout", "decision"]


@pytest.mark.nightly
def test_ctrl_c_in_the_tree_keeps_what_focus_has_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, model = tmp_path / "run.duckdb", model_in(tmp_path)
    alone = optimize(model, options(None, "focus"))
    fire = Subgraphs.fire

    def pressing(subgraphs: Subgraphs, rules: Ints, iteration: int) -> Fired:
        signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr(Subgraphs, "fire", fire)
        return fire(subgraphs, rules, iteration)

    monkeypatch.setattr(Subgraphs, "fire", pressing)
    result = optimize(model, options(db))
    assert result.stop_reason == "interrupted"
    before = [subgraph.row[:9] for subgraph in alone.subgraphs]
    assert [subgraph.row[:9] for subgraph in result.subgraphs][: len(before)] == before
    assert {subgraph.kind for subgraph in result.subgraphs[len(before) :]} <= {
        "rollout",
        "decision",
    }
    assert result.cost_after_us <= alone.cost_after_us + 1e-6
    assert resume(db).cost_after_us <= result.cost_after_us + 1e-6


def test_ctrl_c_while_the_subgraphs_of_the_tree_are_kept_ends_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep = TreeSearch._keep_subgraphs

    def pressing(search: TreeSearch, reason: str) -> tuple[SubgraphReport, ...]:
        signal.raise_signal(signal.SIGINT)
        return keep(search, reason)

    monkeypatch.setattr(TreeSearch, "_keep_subgraphs", pressing)
    result = optimize(layers(2, 5), options())
    assert result.stop_reason == "interrupted"
    assert result.subgraphs[-1].kind == "decision"
    assert result.cost_after_us <= min(subgraph.best_us for subgraph in result.subgraphs) + 1e-6


@pytest.mark.nightly
def test_a_tree_search_has_half_of_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    limits_s: list[float | None] = []
    run = TreeSearch.run

    def noting(search: TreeSearch) -> tuple[str, tuple[SubgraphReport, ...]]:
        limits_s.append(search._guard.seconds_left)
        return run(search)

    monkeypatch.setattr(TreeSearch, "run", noting)
    result = optimize(layers(2, 5), options(time_limit_s=1_000.0))
    assert result.stop_reason == "focus"
    (limit_s,) = limits_s
    assert limit_s is not None and 450 < limit_s <= 500


@pytest.mark.nightly
def test_where_focus_has_found_everything_there_is_no_tree_search() -> None:
    limits = {"node_limit": 50_000, "subgraph_nodes": 2_000, "multi_iterations": 99}
    result = optimize(MODELS["vgg19"](), options(**limits, multi_schedule="saturated"))
    assert result.stop_reason == "saturated"
    assert result.decisions == ()
