"""What is learned from earlier runs: how often each kind of application was needed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from relational_tensat import Options, optimize
from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.cli.main import main
from relational_tensat.explain.proof import ProofGraph
from relational_tensat.explain.stored import StoredEGraph
from relational_tensat.explore import ExplorationOptions
from relational_tensat.explore.learning import read_uses, weights_of
from tests.run.resume.models import RULES, layers

LIMITS = {
    "cost": "tensat_t4", "search": "focus", "world_nodes": 80, "node_limit": 80, "restarts": 1,
    "rules": RULES, "verify_runs": 1, "time_limit_s": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the database of a run."""
    path = tmp_path_factory.mktemp("learning") / "earlier.duckdb"
    optimize(layers(2, 5), Options.of(**LIMITS, db=path))
    return path


def test_the_slice_is_what_the_result_goes_back_to(earlier: Path) -> None:
    """Oracle: carried out alone and in order, its applications find what they need, and make the result."""
    with duckdb.connect(str(earlier), read_only=True) as connection:
        places = [
            row[0] for row in connection.execute("SELECT place FROM needed_application").fetchall()
        ]
        chosen = [row[0] for row in connection.execute("SELECT enode FROM chosen").fetchall()]
        ((applied, needed),) = connection.execute(
            "SELECT sum(applied), sum(needed) FROM rule_use"
        ).fetchall()
        graph = ProofGraph(StoredEGraph(connection))
    assert places == sorted(set(places))
    assert (applied, needed) == (len(graph.edges), len(places))
    assert 0 < len(places) < len(graph.edges)
    there = {node.form for node in graph.original.values()}
    for place in places:
        edge = graph.edges[place - 1]
        assert there.issuperset(edge.source)
        there.update(edge.target)
    assert there.issuperset(graph.first_form(enode) for enode in chosen)


def test_kinds_are_weighted_by_how_often_they_were_needed() -> None:
    """By hand: 30 of 200 were needed, so a kind that is as good as all has 0.15 of its applications."""
    uses = {("a", (True,)): (100, 30), ("a", (False,)): (80, 0), ("b", ()): (20, 0)}
    assert weights_of(uses) == pytest.approx(
        {("a", (True,)): (30 / 0.15 + 20) / 120, ("a", (False,)): 0.2, ("b", ()): 0.5}
    )
    assert weights_of({("a", ()): (10, 0)}) == {}


def run_of(search: str, path: Path, learn_from: tuple[Path, ...]) -> list[tuple[object, ...]]:
    """Return what a run, whose result is verified, carried out."""
    options = Options.of(**LIMITS | {"search": search}, learn_from=learn_from, db=path)
    assert optimize(layers(2, 4), options).verification.ok
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute("SELECT rule, bindings FROM union_log").fetchall()


def test_a_run_that_learns_has_another_order_and_a_verified_result(
    earlier: Path, tmp_path: Path
) -> None:
    plain, learned = tmp_path / "plain.duckdb", tmp_path / "learned.duckdb"
    assert run_of("focus", plain, ()) != run_of("focus", learned, (earlier,))
    assert main(["explain", str(learned), "--check"]) == 0
    assert run_of("best-first", tmp_path / "best_first.duckdb", (earlier,))


def test_what_cannot_be_learned_from_is_refused_in_one_line(tmp_path: Path, earlier: Path) -> None:
    empty = tmp_path / "empty.duckdb"
    duckdb.connect(str(empty)).close()
    for path, reason in (
        (empty, "not the database of a run"),
        (tmp_path / "none", "no such database"),
    ):
        with pytest.raises(InputError, match=reason):
            read_uses([path])
    with pytest.raises(UsageError, match="learn_from and search = saturation"):
        ExplorationOptions(search="saturation", learn_from=(earlier,))
