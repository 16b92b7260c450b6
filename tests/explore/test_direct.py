"""Roots that are put into the classes of their sources at once, beside those that are merged with them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bench.models.sequences import bert
from bench.scale.families import FAMILIES
from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, explore
from relational_tensat.explore.apply import application
from relational_tensat.rules.library import taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from tests.egraph.invariants import assert_invariants
from tests.explore.canonical import same
from tests.explore.example_rules import example_rules
from tests.explore.graphs import separate_sums

CASES = [
    (separate_sums(6), example_rules("join-sums", "swap"), 2),
    (FAMILIES["chain"].build(1200), FAMILIES["chain"].rules(), 0),
    (bert(), taso_rules(), 1),
]


def explored(
    graph: Graph, rules: Sequence[Rule], k_multi: int, cycle_filter: str
) -> tuple[EGraph, Exploration]:
    egraph = EGraph.create(graph)
    options = ExplorationOptions(20, k_multi, cycle_filter=cycle_filter, time_limit_s=None)
    return egraph, explore(egraph, rules, options)


@pytest.mark.parametrize(("graph", "rules", "k_multi"), CASES)
@pytest.mark.parametrize("cycle_filter", ["efficient", "none"])
def test_the_e_graph_is_the_same(
    graph: Graph,
    rules: Sequence[Rule],
    k_multi: int,
    cycle_filter: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    direct, as_direct = explored(graph, rules, k_multi, cycle_filter)
    monkeypatch.setattr(application, "build_direct", lambda *_, **__: None)
    beside, as_beside = explored(graph, rules, k_multi, cycle_filter)
    assert direct.next_id <= beside.next_id
    assert same(direct, beside)
    assert [entry.matches for entry in as_direct.log] == [e.matches for e in as_beside.log]
    assert_invariants(direct, cycle_filter)
    for egraph in (direct, beside):
        egraph.close()


def test_a_new_root_has_its_sources_class_and_a_reason() -> None:
    egraph, _ = explored(separate_sums(2), example_rules("swap"), 0, "efficient")
    query = "SELECT id, class FROM enode WHERE id <> class ORDER BY id"
    roots = egraph.connection.execute(query).fetchall()
    logged = egraph.connection.execute("SELECT b, a FROM union_log ORDER BY b").fetchall()
    assert roots and logged == roots
    (bindings,) = egraph.connection.execute("SELECT bindings FROM union_log LIMIT 1").fetchone()
    assert bindings[-1] == roots[0][0]
    egraph.close()
