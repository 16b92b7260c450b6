from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from relational_tensat.base.errors import UnsoundRuleError, UsageError
from relational_tensat.egraph import EGraph
from relational_tensat.explore import (
    Exploration,
    ExplorationOptions,
    IterationReport,
    Observer,
    explore,
)
from relational_tensat.tensor import Node, build_graph
from relational_tensat.verify.evaluate import SeededWeights, evaluate_graph, random_inputs
from tests.egraph.extraction import cheapest_graph, original_graph
from tests.egraph.invariants import assert_invariants
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, separate_sums, sum_of
from tests.graphs import f32, shared_matmuls


def run(
    graph: Any, rules: tuple[str, ...], limits: ExplorationOptions | None = None
) -> tuple[EGraph, Exploration]:
    egraph = EGraph.create(graph)
    return egraph, explore(egraph, example_rules(*rules), limits)


def rows(egraph: EGraph, query: str) -> list[Any]:
    return egraph.connection.execute(query).fetchall()


def test_saturation() -> None:
    egraph, exploration = run(sum_of(4), ("swap", "regroup"))
    assert exploration.stop_reason == "saturated"
    # every non-empty subset of the operands is a class; e-nodes: 4 leaves, and the ways to split each
    # larger subset in two (ordered): 6 pairs * 2, 4 triples * 6, 1 quadruple * 14
    assert egraph.counts() == (4 + 6 * 2 + 4 * 6 + 14, 15)
    assert exploration.log[-1].unions == 0
    assert_invariants(egraph)


def test_no_rules_saturate_at_once() -> None:
    egraph = EGraph.create(shared_matmuls())
    exploration = explore(egraph, [])
    assert (exploration.stop_reason, exploration.iterations, exploration.rules) == (
        "saturated",
        1,
        {},
    )
    assert egraph.counts() == (8, 8)


def test_no_iterations() -> None:
    egraph, exploration = run(sum_of(4), ("swap",), ExplorationOptions(iterations=0))
    assert (exploration.stop_reason, exploration.iterations, exploration.log) == (
        "iterations",
        0,
        (),
    )
    assert egraph.counts() == (7, 7)


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_the_iteration_limit(iterations: int) -> None:
    egraph, exploration = run(
        sum_of(6), ("swap", "regroup"), ExplorationOptions(iterations=iterations)
    )
    assert (exploration.stop_reason, exploration.iterations) == ("iterations", iterations)
    assert [entry.iteration for entry in exploration.log] == [*range(1, iterations + 1)]
    assert_invariants(egraph)


@pytest.mark.parametrize("cycle_filter", ["efficient", "vanilla", "none"])
@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_invariants_after_every_iteration(iterations: int, cycle_filter: str) -> None:
    limits = ExplorationOptions(
        iterations, 2, multi_schedule="first", node_limit=600, cycle_filter=cycle_filter
    )
    egraph, exploration = run(mixed(), (), limits)
    assert exploration.iterations == iterations
    assert_invariants(egraph, cycle_filter)
    after = cheapest_graph(egraph)
    inputs, weights = random_inputs(mixed(), 3), SeededWeights(mixed(), 3)
    left, right = (evaluate_graph(graph, inputs, weights) for graph in (mixed(), after))
    for name, value in left.items():
        assert value == pytest.approx(right[name], rel=1e-9, abs=1e-9)


def test_every_iteration_is_reported_to_progress() -> None:
    reports: list[IterationReport] = []

    def progress(entry: IterationReport) -> None:
        reports.append(entry)
        assert (entry.e_nodes, entry.e_classes) == egraph.counts()

    egraph = EGraph.create(sum_of(5))
    exploration = explore(
        egraph, example_rules("swap", "regroup"), observer=Observer(progress=progress)
    )
    assert tuple(reports) == exploration.log
    assert len(reports) == exploration.iterations > 3
    assert all(entry.seconds > 0 and entry.statements > 0 for entry in reports)
    assert exploration.statements == sum(entry.statements for entry in reports)
    assert sum(entry.seconds for entry in reports) <= exploration.seconds


def test_the_logs_in_the_tables() -> None:
    limits = ExplorationOptions(3, 2, multi_schedule="first", node_limit=600)
    egraph, exploration = run(mixed(), (), limits)
    names = ", ".join(IterationReport.__dataclass_fields__)
    logged = rows(egraph, f"SELECT {names} FROM iteration_log ORDER BY iteration")
    assert [IterationReport(*row) for row in logged] == list(exploration.log)
    matches = dict(rows(egraph, "SELECT iteration, sum(matches)::INT FROM match_log GROUP BY 1"))
    assert matches == {entry.iteration: entry.matches for entry in exploration.log if entry.matches}
    unions = dict(rows(egraph, "SELECT iteration, count(*) FROM union_log GROUP BY 1"))
    assert unions == {entry.iteration: entry.unions for entry in exploration.log if entry.unions}


def test_what_each_rule_did() -> None:
    limits = ExplorationOptions(3, 2, multi_schedule="first", node_limit=600)
    egraph, exploration = run(mixed(), (), limits)
    assert list(exploration.rules) == [rule.name for rule in example_rules()]
    for column, table, aggregate in (
        ("matches", "match_log", "sum(matches)"),
        ("applied", "union_log", "count(*)"),
    ):
        logged = rows(
            egraph,
            f"SELECT r.name, {aggregate}::INT FROM {table} JOIN rule AS r ON r.id = rule GROUP BY 1",
        )
        counts = {name: getattr(stats, column) for name, stats in exploration.rules.items()}
        assert dict(logged) == {name: count for name, count in counts.items() if count}
    assert (exploration.rules["same"].matches, exploration.rules["same"].applied) == (1, 1)
    assert exploration.rules["grow"].matches > 0  # of what negate makes
    assert exploration.rules["zero"].matches == 0
    assert sum(stats.seconds for stats in exploration.rules.values()) <= exploration.seconds


def test_births_and_unions_name_iteration_and_rule() -> None:
    nodes = [
        Node("sub", ("x", "z"), ("a",)),
        Node("identity", ("a",), ("b",)),
        Node("relu", ("b",), ("y",)),
    ]
    graph = build_graph("born", {"x": f32(2), "z": f32(2)}, {}, nodes, ["y"])
    egraph, _ = run(graph, ("same", "negate", "swap"))
    born = rows(
        egraph, "SELECT op, children, iteration, rule FROM enode_text WHERE id > 5 ORDER BY id"
    )
    # a - b and its identity are one class, 3
    assert born == [
        ("neg", [2], 1, "negate"),
        ("add", [1, 6], 1, "negate"),
        ("add", [6, 1], 2, "swap"),
    ]
    unions = rows(
        egraph,
        "SELECT u.iteration, r.name, u.a, u.b FROM union_log AS u JOIN rule AS r ON r.id = u.rule"
        " ORDER BY ALL",
    )
    assert unions == [(1, "negate", 3, 7), (1, "same", 3, 4), (2, "swap", 3, 8)]
    assert_invariants(egraph)


def test_unions_by_congruence_name_no_rule() -> None:
    nodes = [
        Node("identity", ("x",), ("a",)), Node("tanh", ("x",), ("b",)), Node("tanh", ("a",), ("c",)),
        Node("add", ("b", "c"), ("y",)),
    ]  # fmt: skip
    egraph, _ = run(build_graph("g", {"x": f32(2)}, {}, nodes, ["y"]), ("same",))
    assert rows(egraph, "SELECT iteration, rule, a, b FROM union_log ORDER BY ALL") == [
        (1, 0, 3, 4),
        (1, 1, 1, 2),
    ]
    assert_invariants(egraph)


def test_rules_are_in_the_tables_as_they_were_written() -> None:
    egraph, _ = run(shared_matmuls(), ("twice", "join-products"))
    assert rows(egraph, "SELECT id, name, law, sources, unsound, file FROM rule ORDER BY id") == [
        (1, "twice", "relu is idempotent", 1, False, "example.rules"),
        (2, "join-products", "[A·B, A·C] = A·[B, C]", 2, False, "example.rules"),
    ]


def test_multi_pattern_rules_take_part_in_the_first_iterations() -> None:
    def born(limits: ExplorationOptions) -> set[int]:
        egraph, _ = run(separate_sums(3), ("swap", "join-sums"), limits)
        assert_invariants(egraph)
        iterations = rows(
            egraph, "SELECT DISTINCT iteration FROM enode_text WHERE rule = 'join-sums'"
        )
        return {iteration for (iteration,) in iterations}

    for count in (0, 1, 2):
        limits = ExplorationOptions(4, count, multi_schedule="first", node_limit=3000)
        assert born(limits) == set(range(1, count + 1))
    first, *later = sorted(
        born(ExplorationOptions(15, 2, multi_schedule="saturated", node_limit=3000))
    )
    assert first == 1
    assert later[:1] > [2]


def test_a_rule_that_changes_a_shape_stops_the_run() -> None:
    nodes = [
        Node("neg", ("x",), ("a",)),
        Node("tanh", ("a",), ("b",)),
        Node("relu", ("b",), ("y",)),
    ]
    graph = build_graph("oblong", {"x": f32(2, 3)}, {}, nodes, ["y"])
    egraph = EGraph.create(graph)
    with pytest.raises(
        UnsoundRuleError, match=r"'transposed' replaces float32\[2,3\] by float32\[3,2\]"
    ):
        explore(egraph, example_rules("grow", "transposed"))
    assert_invariants(egraph)
    assert original_graph(egraph).count_ops() == graph.count_ops()


def test_a_rule_that_is_wrong_for_other_shapes_only_goes_unnoticed() -> None:
    nodes = [Node("tanh", ("x",), ("y",))]
    _, exploration = run(build_graph("square", {"x": f32(2, 2)}, {}, nodes, ["y"]), ("transposed",))
    assert exploration.stop_reason == "saturated"


def test_an_unknown_cycle_filter_or_multi_schedule() -> None:
    with pytest.raises(UsageError, match=r"'eficient', expected one of .*did you mean 'efficient'"):
        ExplorationOptions(cycle_filter="eficient")
    with pytest.raises(UsageError, match=r"'frist', expected .*did you mean 'first'"):
        ExplorationOptions(multi_schedule="frist")


def test_an_exploration_can_be_continued_with_other_rules() -> None:
    egraph, _ = run(sum_of(4), ("swap",))
    explore(egraph, example_rules("regroup", "swap"))
    assert_invariants(egraph)
    assert egraph.counts() == run(sum_of(4), ("swap", "regroup"))[0].counts()


def test_a_file_holds_the_whole_run(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    egraph = EGraph.create(mixed(), path)
    exploration = explore(egraph, example_rules(), ExplorationOptions(2, node_limit=300))
    cheapest_graph(egraph)
    sizes = egraph.counts()
    egraph.close()
    with duckdb.connect(str(path), read_only=True) as connection:

        def query(text: str) -> list[Any]:
            return connection.execute(text).fetchall()

        assert query("SELECT count(*), count(DISTINCT class) FROM enode_text") == [sizes]
        assert query("SELECT count(*) FROM iteration_log") == [(exploration.iterations,)]
        assert query("SELECT count(*) > 0 FROM chosen JOIN enode_text AS e ON e.id = enode") == [
            (True,)
        ]
        assert query("SELECT bool_and(cost_us >= 0) FROM cost") == [(True,)]
        temporary = query("SELECT table_name FROM duckdb_tables() WHERE table_name = 'application'")
        assert temporary == []
