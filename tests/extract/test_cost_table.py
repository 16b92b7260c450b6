"""What of an e-graph is asked for: what a result can depend on, in one batch, and only what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from relational_tensat.cost import Configuration, CostCounts, CostSource
from relational_tensat.cost.source import MEASURED, CostAnswer
from relational_tensat.egraph import EGraph
from relational_tensat.explore import explore
from relational_tensat.extract.tables import extraction_problem
from relational_tensat.rules.library import load_rules
from relational_tensat.tensor import Graph, Node, Weight, build_graph
from tests.graphs import f32, fan_of_matmuls


class Recorder(CostSource):
    """Says 2 µs of everything and writes down what it is asked; guesses 5 µs."""

    def __init__(self) -> None:
        super().__init__("recorder")
        self.batches: list[list[Configuration]] = []

    def find(self, configurations: Sequence[Configuration]) -> Mapping[Configuration, CostAnswer]:
        """Say 2 µs."""
        self.batches.append(list(configurations))
        return {configuration: CostAnswer(2.0, MEASURED) for configuration in configurations}

    def estimate_us(self, configuration: Configuration) -> float:
        """Guess 5 µs."""
        return 5.0


def weighted() -> Graph:
    """Return x @ (w + v): the sum is known before inference."""
    return build_graph(
        "g",
        {"x": f32(2, 3)},
        {"w": Weight(f32(3, 4)), "v": Weight(f32(3, 4))},
        [Node("add", ("w", "v"), ("wv",)), Node("matmul", ("x", "wv"), ("y",))],
        ["y"],
    )


def sources(egraph: EGraph) -> dict[str, int]:
    rows = egraph.connection.execute(
        "SELECT y.op || ' ' || c.source, count(*) FROM cost AS c JOIN signature AS s ON s.id = c.signature "
        "JOIN symbol AS y ON y.id = s.symbol GROUP BY ALL"
    )
    return dict(rows.fetchall())


def test_what_depends_on_weights_only_is_not_asked_for() -> None:
    egraph, source = EGraph.create(weighted()), Recorder()
    extraction_problem(egraph, source)
    (batch,) = source.batches
    assert [configuration.op for configuration in batch] == ["matmul"]
    assert sources(egraph) == {
        "add recorder: estimated, not asked for": 1,
        "input recorder: free": 1,
        "matmul recorder: measured": 1,
        "weight recorder: free": 2,
    }
    assert source.counts == CostCounts(measured=1)


def test_nothing_is_asked_for_twice() -> None:
    egraph, source = EGraph.create(fan_of_matmuls(4)), Recorder()
    extraction_problem(egraph, source)
    extraction_problem(egraph, source)
    assert len(source.batches) == 1
    explore(egraph, load_rules(only=("merge-products-sharing-left",)))
    extraction_problem(egraph, source)
    assert len(source.batches) == 2
    first, second = map(set, source.batches)
    assert second
    assert not first & second
    assert len(second) == len(source.batches[1])


def test_what_comes_to_matter_is_asked_for_then(monkeypatch: pytest.MonkeyPatch) -> None:
    egraph, source = EGraph.create(weighted()), Recorder()
    extraction_problem(egraph, source)
    # as if an operator that is not foldable had the sum's signature, too
    egraph.connection.execute("UPDATE symbol SET foldable = false WHERE op = 'add'")
    monkeypatch.setattr(
        "relational_tensat.egraph.egraph.is_foldable", lambda symbol: symbol.op != "add"
    )
    extraction_problem(egraph, source)
    assert [configuration.op for configuration in source.batches[1]] == ["add"]
    costs = egraph.connection.execute(
        "SELECT c.cost_us FROM cost AS c JOIN signature AS s ON s.id = c.signature "
        "JOIN symbol AS y ON y.id = s.symbol WHERE y.op = 'add'"
    ).fetchall()
    assert costs == [(2.0,)]


def test_rows_that_are_there_hold_and_are_not_asked_for() -> None:
    egraph, source = EGraph.create(fan_of_matmuls(3)), Recorder()
    egraph.connection.execute(
        "INSERT INTO cost SELECT s.id, 1.5, 'mine' FROM signature AS s "
        "JOIN symbol AS y ON y.id = s.symbol WHERE y.op = 'matmul'"
    )
    problem = extraction_problem(egraph, source).problem
    assert [configuration.op for configuration in source.batches[0]] == ["add"]
    assert sorted(cost for cost in problem.cost_us.tolist() if cost) == [1.5] * 3 + [2.0] * 2
