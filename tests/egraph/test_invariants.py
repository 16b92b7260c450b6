"""Each invariant notices the fault that it is named for."""

from __future__ import annotations

import pytest

from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.rules.language import parse_rules
from tests.egraph.invariants import ACYCLIC_ONLY, broken_invariants, invariant_files
from tests.graphs import shared_matmuls

#: What a fault does to the e-graph of ``shared_matmuls``, whose ids 1 to 8 are input, two weights,
#: two matmuls, add, relu, relu.
FAULTS = {
    "class_without_kept_node": "UPDATE enode SET filtered = true WHERE id = 4",
    "congruent_duplicates": "UPDATE enode SET c1 = 2 WHERE id = 5",
    "cycles": "UPDATE enode SET c0 = 8 WHERE id = 7",
    "dangling_children": "UPDATE enode SET c0 = 99 WHERE id = 6",
    "ids_not_dense": "DELETE FROM eclass WHERE id = 5",
    "height_labels": "UPDATE eclass SET height = 1 WHERE id = 6",
    "non_canonical_ids": "UPDATE eclass SET parent = 4 WHERE id = 5",
    "two_types_in_a_class": "UPDATE eclass SET parent = 1, type = 99 WHERE id = 5;"
    " INSERT INTO value_type VALUES (99, 'float32[1]')",
    "union_find_not_flat": "UPDATE eclass SET parent = 7 WHERE id = 6;"
    " UPDATE eclass SET parent = 8 WHERE id = 7",
    "unions_unexplained": "UPDATE eclass SET parent = 4 WHERE id = 5",
    "unknown_class": "DELETE FROM eclass WHERE id = 5",
    "unknown_signature": "UPDATE enode SET signature = 99 WHERE id = 5",
    "wrong_heads": "UPDATE enode SET head = head + 1 WHERE id = 5",
    "wrong_operand_types": "UPDATE enode SET c0 = 0, c1 = 1 WHERE id = 8;"
    " UPDATE signature SET operands = [] WHERE id = (SELECT signature FROM enode WHERE id = 8)",
}


def test_every_invariant_has_a_fault() -> None:
    assert set(FAULTS) == {path.stem for path in invariant_files()}
    assert set(FAULTS) >= ACYCLIC_ONLY


def test_a_sound_egraph_breaks_none() -> None:
    egraph = EGraph.create(shared_matmuls())
    rules = '(rule twice (law "idempotent") (from (relu (relu ?x))) (to (relu ?x)))'
    explore(egraph, parse_rules(rules, "test.rules"), ExplorationOptions(iterations=3))
    assert broken_invariants(egraph) == {}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_is_noticed(name: str) -> None:
    egraph = EGraph.create(shared_matmuls())
    egraph.connection.execute(FAULTS[name])
    assert name in broken_invariants(egraph)
