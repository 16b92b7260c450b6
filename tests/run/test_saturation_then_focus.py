"""A run with ``--search auto``: saturation, and focus for as long as that is worth the wait."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from relational_tensat import Options, optimize
from relational_tensat.cli.main import main
from relational_tensat.explore.strategies import saturation, saturation_then_focus
from relational_tensat.tensor import Node, build_graph
from tests.graphs import f32
from tests.run.resume.models import RULES, layers

LIMITS = {
    "cost": "tensat_t4", "node_limit": 120, "subgraph_nodes": 120, "restarts": 1, "rules": RULES,
    "verify_runs": 1, "time_limit_s": None,
}  # fmt: skip


def test_where_a_limit_ends_saturation_it_goes_on_and_is_never_dearer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = tmp_path / "run.duckdb"
    plain = optimize(layers(2, 5), Options.of(search="saturation", **LIMITS))
    result = optimize(layers(2, 5), Options.of(search="auto", **LIMITS, db=db))
    assert plain.stop_reason == "nodes"
    assert result.stop_reason == "focus"
    assert result.verification.ok
    first, *subgraphs = result.subgraphs
    assert (first.kind, first.stop_reason) == ("saturation", "nodes")
    assert first.best_us == pytest.approx(plain.cost_after_us)
    assert (first.e_nodes, first.iteration) == (plain.e_nodes, plain.iterations)
    assert {subgraph.kind for subgraph in subgraphs} >= {"original", "chosen", "universe"}
    assert result.cost_after_us < 0.8 * plain.cost_after_us
    assert main(["explain", str(db), "--check"]) == 0
    assert "checked: every step is what its rule says" in capsys.readouterr().out


def test_all_is_not_extracted_from_where_the_time_would_not_be_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That comes in the end in any case."""
    moments = count(0, 10**6)  # each extraction seems to take longer than the search may
    monkeypatch.setattr(saturation_then_focus, "now_s", lambda: next(moments))
    monkeypatch.setattr(saturation_then_focus, "LEAST_S", 600.0)  # on a busy machine, too
    plain = optimize(layers(2, 5), Options.of(search="saturation", **LIMITS))
    result = optimize(layers(2, 5), Options.of(search="auto", **{**LIMITS, "time_limit_s": 600.0}))
    kinds = [subgraph.kind for subgraph in result.subgraphs]
    assert "original" in kinds and "universe" not in kinds
    assert result.stop_reason in ("patience", "time")
    assert result.cost_after_us <= min(each.best_us for each in result.subgraphs) + 1e-6
    assert result.cost_after_us < plain.cost_after_us and result.verification.ok


def test_where_time_or_few_iterations_end_it_nothing_goes_on() -> None:
    for limits in (
        {"time_limit_s": 0.0},
        {"node_limit": 50_000, "iterations": 1},
    ):
        options = {**LIMITS, **limits}
        graph = layers(1, 3)
        plain = optimize(graph, Options.of(search="saturation", **options))
        result = optimize(graph, Options.of(search="auto", **options))
        assert result.subgraphs == ()
        assert result.stop_reason == plain.stop_reason in ("time", "iterations")
        assert result.cost_after_us == pytest.approx(plain.cost_after_us)
        assert result.e_nodes == plain.e_nodes


def test_a_saturated_e_graph_is_gone_on_from_until_nothing_is_left() -> None:
    options = {**LIMITS, "node_limit": 50_000, "iterations": 99, "subgraph_nodes": 120}
    plain = optimize(layers(1, 3), Options.of(search="saturation", **options))
    result = optimize(layers(1, 3), Options.of(search="auto", **options))
    first, *subgraphs = result.subgraphs
    assert plain.stop_reason == "saturated" and not plain.search.exploration.is_exhaustive
    assert (first.kind, first.stop_reason) == ("saturation", "saturated")
    assert first.best_us == pytest.approx(plain.cost_after_us)
    assert subgraphs and result.cost_after_us <= plain.cost_after_us
    assert result.verification.ok
    assert "original" in {each.kind for each in subgraphs}
    # Within a limit of time, a default search grows the cheapest graph only.
    limited = optimize(layers(1, 3), Options.of(search="auto", **options | {"time_limit_s": 600.0}))
    assert "original" not in {each.kind for each in limited.subgraphs}
    assert limited.cost_after_us <= plain.cost_after_us


def test_from_as_many_iterations_as_by_default_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saturation_then_focus, "DEFAULT_ITERATIONS", 1)
    limits = {**LIMITS, "node_limit": 400, "iterations": 1}
    plain = optimize(layers(2, 5), Options.of(search="saturation", **limits))
    result = optimize(layers(2, 5), Options.of(search="auto", **limits))
    assert plain.stop_reason == "iterations"
    assert (result.subgraphs[0].stop_reason, result.stop_reason) == ("iterations", "focus")
    assert result.subgraphs[0].best_us == pytest.approx(plain.cost_after_us)
    assert result.cost_after_us < plain.cost_after_us - 1
    assert result.verification.ok


def test_where_iterations_end_it_with_little_left_it_is_saturated_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [Node("transpose", ("x",), ("t",), {"perm": (1, 0)}), Node("relu", ("t",), ("r",))]
    nodes += [Node("transpose", ("r",), ("u",), {"perm": (1, 0)}), Node("relu", ("u",), ("y",))]
    graph = build_graph("chain", {"x": f32(4, 4)}, {}, nodes, ["y"])
    limits = {**LIMITS, "node_limit": 50_000, "rules": ()}
    plain = optimize(graph, Options.of(search="saturation", **limits))
    assert (plain.stop_reason, plain.iterations) == ("saturated", 4)
    for share, iterations, is_grown_out in (
        (1e9, 3, True),
        (0.0, 3, False),  # too much is left
        (1e9, 2, False),  # more than a third as often again
    ):
        monkeypatch.setattr(saturation_then_focus, "DEFAULT_ITERATIONS", iterations)
        monkeypatch.setattr(saturation, "_FEW_MATCHES", share)
        monkeypatch.setattr(saturation, "_FEWER_MATCHES", share)
        options = Options.of(search="auto", **limits, iterations=iterations)
        result = optimize(graph, options)
        first = result.subgraphs[0]
        assert result.cost_after_us == pytest.approx(plain.cost_after_us)
        if is_grown_out:
            assert (first.stop_reason, first.iteration) == ("saturated", 4)
            assert first.e_nodes == plain.e_nodes and result.optimal
        else:
            assert first.stop_reason == "iterations"
