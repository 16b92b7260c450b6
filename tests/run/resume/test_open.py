"""What a killed process left is opened, whatever it searched by, and explored on by any strategy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from bench.kills.kills import broken_invariants
from relational_tensat import EGraph, Options, optimize
from relational_tensat.cli.main import main
from relational_tensat.egraph import EGraph as Subgraph
from relational_tensat.explore import ExplorationOptions, Observer, explore
from relational_tensat.formats import save_model
from tests.egraph.invariants import assert_invariants
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed
from tests.run.resume.kills import Copies, copied, gone_on, known_us
from tests.run.resume.models import RULES, layers
from tests.tiers import nightly

LIMITS: dict[str, Any] = {
    "cost": "tensat_t4", "node_limit": 90, "subgraph_nodes": 45, "restarts": 1, "rules": RULES,
    "tree_budget": 4, "tree_steps": 2, "tree_threshold": 0.0, "tree_decisions": 2,
    "extract_every": 1, "verify_runs": 1, "time_limit_s": None,
}  # fmt: skip
SEARCHES = ("saturation", "focus", "mcts", "focus-mcts")


@pytest.fixture(
    scope="module", params=["saturation", "focus", nightly("mcts"), nightly("focus-mcts")]
)
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return what a run by one of the searches left at some moments, its end among them."""
    folder = tmp_path_factory.mktemp(request.param)
    save_model(layers(2, 3), folder / "layers.json")
    db = folder / "run.duckdb"
    progress = Copies(db, (1, 4, 9))
    options = Options.of(search=request.param, db=db, **LIMITS)
    optimize(folder / "layers.json", options, progress=progress)
    return [*progress.copies, copied(db, folder / "end")]


def test_all_invariants_hold_of_what_is_opened_and_explored_on(
    killed: list[Path], tmp_path: Path
) -> None:
    for number, path in enumerate(killed):
        copy = copied(path, tmp_path / str(number))
        known = known_us(copy)
        with EGraph.open(copy) as egraph:
            counted = egraph.subgraph.counts()
            assert (egraph.subgraph.e_nodes, egraph.subgraph.e_classes) == counted
            was_universe = egraph.subgraph.is_universe
        assert list(broken_invariants(copy)) == []
        with EGraph.open(copy) as egraph:
            ((first,),) = egraph.sql("SELECT coalesce(max(iteration), 0) FROM iteration_log")
            exploration = egraph.explore(RULES, iterations=2)
            numbers = [entry.iteration for entry in exploration.log]
            assert numbers == list(range(first + 1, first + 1 + len(numbers)))
            assert exploration.iterations == first + len(numbers)
            assert_invariants(egraph.subgraph)
            found = egraph.extract("tensat_t4")
            assert found.cost_us <= found.original_us
            if not was_universe:
                assert found.cost_us <= known + 1e-6


def test_it_goes_on_by_its_own_search_or_another(
    killed: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = killed[0].parents[1].name[:-1]  # of the folder, which pytest numbers
    other = SEARCHES[(SEARCHES.index(search) + 1) % len(SEARCHES)]
    for path, changes in ((killed[-2], {}), (killed[0], {"search": other, "node_limit": 150})):
        copy = copied(path, tmp_path / str(len(changes)))
        result = gone_on(copy, **changes)
        assert result.resumed_after and result.iterations > result.resumed_after
        assert main(["explain", str(copy), "--check"]) == 0
        assert "checked: every step is what its rule says" in capsys.readouterr().out


def test_the_cheapest_graph_of_a_final_extraction_stays(killed: list[Path], tmp_path: Path) -> None:
    """Another extractor finds a costlier one in the e-graph that has grown, or one as cheap."""
    copy = copied(killed[-1], tmp_path / "ended")
    gone_on(copy, search="saturation", extractor="greedy", iterations=1, extract_every=0)


def test_between_any_two_statements(tmp_path: Path) -> None:
    copies: list[Path] = []
    egraph = Subgraph.create(mixed(), tmp_path / "whole.duckdb")
    execute, count = egraph.database.execute, 0

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count % 23 == 0:
            copies.append(copied(tmp_path / "whole.duckdb", tmp_path / f"at{count}"))
        return execute(*args, **kwargs)

    egraph.database.execute = counting  # type: ignore[method-assign]
    limits = ExplorationOptions(3, 2, node_limit=600)
    explore(egraph, example_rules(), limits)
    egraph.close()
    iterations = set()
    for copy in copies:
        assert list(broken_invariants(copy)) == []
        with duckdb.connect(str(copy)) as connection:
            rows = connection.execute("SELECT max(iteration) FROM iteration_log").fetchall()
            named = connection.execute(
                "SELECT count(*) FROM union_log ANTI JOIN instance_log AS i ON i.id = instance"
                " WHERE rule > 0"
            ).fetchall()
        iterations |= set(rows)
        assert named == [(0,)]
    assert len(iterations) > 2


def test_in_the_middle_of_any_write(tmp_path: Path) -> None:
    """The log of changes is cut anywhere: the last whole commit counts."""
    whole: list[Path] = []

    def after(iteration: int) -> None:
        whole[:] = [copied(tmp_path / "whole.duckdb", tmp_path / f"after{iteration}")]

    egraph = Subgraph.create(mixed(), tmp_path / "whole.duckdb")
    created = (tmp_path / "whole.duckdb.wal").stat().st_size
    explore(
        egraph,
        example_rules(),
        ExplorationOptions(3, 2, node_limit=600),
        observer=Observer(after=after),
    )
    egraph.close()
    size = whole[0].with_name("whole.duckdb.wal").stat().st_size - created
    iterations = set()
    for part in range(1, 7):
        copy = copied(whole[0], tmp_path / f"cut{part}")
        log = copy.with_name("whole.duckdb.wal")
        log.write_bytes(log.read_bytes()[: created + size * part // 7])
        assert list(broken_invariants(copy)) == []
        with duckdb.connect(str(copy)) as connection:
            rows = connection.execute("SELECT max(iteration) FROM iteration_log").fetchall()
        iterations |= set(rows)
    assert len(iterations) > 1
