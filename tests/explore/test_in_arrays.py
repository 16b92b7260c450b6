"""Applications found and carried out in arrays: the tables are those that statements make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from bench.scale.families import FAMILIES
from relational_tensat.egraph import EGraph, node_hashes
from relational_tensat.egraph.node_hashes import HashedRows, HashesCollideError, hash_columns
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.explore.apply.in_arrays import whole
from relational_tensat.models.bert import bert
from relational_tensat.models.squeezenet import squeezenet
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from tests.egraph.invariants import assert_invariants
from tests.explore.example_rules import example_rules
from tests.explore.graphs import separate_sums

CASES = [
    (separate_sums(6), example_rules("join-sums", "swap", "regroup"), 400),
    (FAMILIES["chain"].build(1200), FAMILIES["chain"].rules(), 50_000),
    (bert(), taso_rules(), 50_000),
    (squeezenet(), load_rules(), 600),
]


def tables(graph: Graph, rules: Sequence[Rule], limit: int, cycle_filter: str) -> dict[str, object]:
    egraph = EGraph.create(graph)
    options = ExplorationOptions(
        8, 1, cycle_filter=cycle_filter, node_limit=limit, time_limit_s=None
    )
    explore(egraph, rules, options)
    assert_invariants(egraph, cycle_filter)
    queries = {
        "enode": "FROM enode ORDER BY id",
        "eclass": "FROM eclass ORDER BY id",
        "union_log": "FROM union_log ORDER BY ALL",
    }
    rows = {name: egraph.connection.execute(query).fetchall() for name, query in queries.items()}
    egraph.close()
    return rows


@pytest.mark.parametrize(("graph", "rules", "limit"), CASES)
@pytest.mark.parametrize("cycle_filter", ["efficient", "none"])
def test_the_tables_are_those_that_statements_make(
    graph: Graph,
    rules: Sequence[Rule],
    limit: int,
    cycle_filter: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_arrays = tables(graph, rules, limit, cycle_filter)
    monkeypatch.setattr(whole, "MOST_NODES", 0)
    by_statements = tables(graph, rules, limit, cycle_filter)
    assert in_arrays == by_statements


def test_where_numbers_of_e_nodes_collide_statements_build(monkeypatch: pytest.MonkeyPatch) -> None:
    case = (*CASES[0], "efficient")
    expected = tables(*case)
    monkeypatch.setattr(node_hashes, "_FACTORS", np.ones(6, np.uint64))
    assert tables(*case) == expected


def test_a_row_is_told_from_another_of_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_hashes, "_FACTORS", np.zeros(6, np.uint64))
    columns = [np.array([3], np.int32), np.array([1], np.int32)]
    others = [columns[0], columns[1] + 1]
    rows = HashedRows(columns)
    assert rows.find(hash_columns(columns), columns).tolist() == [0]
    with pytest.raises(HashesCollideError):
        rows.find(hash_columns(others), others)
    with pytest.raises(HashesCollideError):
        HashedRows([np.array([3, 4], np.int32), np.zeros(2, np.int32)])
