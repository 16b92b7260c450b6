"""Rules that ask for operands known before inference: in an e-graph, and in subgraphs."""

from __future__ import annotations

from relational_tensat.egraph import EGraph
from relational_tensat.egraph.egraph import classes_of_weights
from relational_tensat.explore import ExplorationOptions, explore
from tests.explore import universes
from tests.explore.example_rules import example_rules
from tests.explore.graphs import scaled_products
from tests.explore.subgraphs import side_by_side

RULES = example_rules("scale-columns", "join-known-sums")


def applied(egraph: EGraph) -> dict[str, int]:
    """Return how many e-nodes rules made that only one application of each of them makes."""
    rows = egraph.connection.execute(
        "SELECT r.name, count(DISTINCT e.class) FROM enode AS e JOIN rule AS r ON r.id = e.rule"
        " JOIN signature AS s ON s.id = e.signature JOIN symbol AS y ON y.id = s.symbol"
        " WHERE y.op IN ('matmul', 'split') GROUP BY r.name"
    ).fetchall()
    return dict(rows)


#: By u and uv; u beside uv.
EXPECTED = {"scale-columns": 2, "join-known-sums": 1}


def test_what_is_computed_is_left_alone() -> None:
    egraph = EGraph.create(scaled_products())
    explore(egraph, RULES, ExplorationOptions(1))
    assert applied(egraph) == EXPECTED


def test_what_is_computed_is_left_alone_in_subgraphs() -> None:
    subgraph = universes.universe_of(scaled_products(), RULES)
    universes.begin(subgraph, 1, universes.original(subgraph.egraph))
    universes.grow(subgraph, 1, 1)
    assert applied(subgraph.egraph) == EXPECTED


def test_what_is_computed_is_left_alone_in_subgraphs_side_by_side() -> None:
    universe = side_by_side.universe_of(scaled_products(), RULES)
    subgraphs = side_by_side.subgraphs_of(universe, 1, 1000)
    for _ in side_by_side.random_steps(subgraphs, 3, seed=0):
        pass
    universe.subgraph.flush()
    assert applied(universe.egraph)["scale-columns"] == EXPECTED["scale-columns"]
    rows = universe.egraph.connection.execute(
        "SELECT e.c1 FROM enode AS e JOIN rule AS r ON r.id = e.rule"
        " JOIN signature AS s ON s.id = e.signature"
        " JOIN symbol AS y ON y.id = s.symbol WHERE r.name = 'join-known-sums' AND y.op = 'add'"
    ).fetchall()
    addends = {addend for (addend,) in rows}
    made = {addend for addend in addends if addend > len(scaled_products().nodes)}
    assert made, "joined weights are known as soon as they are made, and joined again"
    assert addends <= set(classes_of_weights(universe.egraph, hidden=True).tolist())


def test_a_rule_says_what_it_asks_for() -> None:
    scale, join = RULES
    assert scale.known == ("s",) and join.known == ("b", "d")
    assert scale.everywhere.known == ()
