from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.extract import (
    UNUSED,
    ExtractionProblem,
    dag_cost_us,
    is_acyclic,
    reachable,
    relative_gap,
)
from tests.extract.instances import build, with_original

DIAMOND = build([(0, 1.0, [1, 2]), (1, 2.0, [3]), (2, 3.0, [3]), (3, 10.0, []), (4, 7.0, [])], 5)
"""A root over two classes that share a third; class 4 is not needed."""


def choice(*nodes: int) -> np.ndarray:
    return np.array(nodes, dtype=np.int32)


def test_shared_class_is_charged_once() -> None:
    assert dag_cost_us(DIAMOND, choice(0, 1, 2, 3, 4)) == 16.0


def test_reachable_drops_what_the_root_does_not_need() -> None:
    assert reachable(DIAMOND, choice(0, 1, 2, 3, 4)).tolist() == [0, 1, 2, 3, UNUSED]


def test_missing_class_is_named() -> None:
    with pytest.raises(RelationalTensatError, match="class 3 is needed"):
        dag_cost_us(DIAMOND, choice(0, 1, 2, UNUSED, 4))


def test_e_node_of_another_class_is_refused() -> None:
    assert not is_acyclic(DIAMOND, choice(0, 2, 2, 3, 4))


@pytest.mark.parametrize(
    "nodes",
    [
        [(0, 1.0, [0])],
        [(0, 1.0, [1]), (1, 1.0, [0])],
        [(0, 1.0, [1]), (1, 1.0, [2]), (2, 1.0, [1])],
    ],
)
def test_cycles_are_found(nodes: list[tuple[int, float, list[int]]]) -> None:
    problem = build(nodes, len(nodes))
    with pytest.raises(RelationalTensatError, match="cyclic"):
        dag_cost_us(problem, choice(*range(len(nodes))))


def test_deep_chain_needs_no_recursion() -> None:
    depth = 20_000
    nodes = [(level, 1.0, [level + 1]) for level in range(depth)]
    problem = build([*nodes, (depth, 1.0, [])], depth + 1)
    assert dag_cost_us(problem, np.arange(depth + 1, dtype=np.int32)) == depth + 1


def test_gap_is_a_fraction_of_the_cost() -> None:
    assert relative_gap(10.0, 9.0) == pytest.approx(0.1)
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(10.0, 11.0) == 0.0


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("cost_us", np.array([1.0, np.nan]), "costs nan"),
        ("cost_us", np.array([1.0, -np.inf]), "costs -inf"),
        ("cost_us", np.array([1.0, np.inf]), "costs inf"),
        ("cost_us", np.array([1, 1]), "expected float64"),
        ("node_class", np.array([0, 2], dtype=np.int32), "node_class must lie in 0 … 1"),
        ("child_idx", np.array([-1, 1], dtype=np.int32), "child_idx must lie"),
        ("child_idx", np.array([1, 1], dtype=np.int32), "same child class twice"),
        ("child_ptr", np.array([0, 2, 1], dtype=np.int32), "child_ptr must rise"),
        ("child_ptr", np.array([0, 2], dtype=np.int32), "child_ptr is int32"),
        ("root", 2, "the root 2 is none of 2"),
        ("original", np.array([0, UNUSED], dtype=np.int32), "original graph is no valid choice"),
        ("original", np.array([0, 0], dtype=np.int32), "original graph is no valid choice"),
    ],
)
def test_malformed_arrays_are_refused(field: str, value: object, message: str) -> None:
    arrays = {
        "cost_us": np.array([1.0, 1.0]),
        "node_class": np.array([0, 1], dtype=np.int32),
        "child_ptr": np.array([0, 2, 2], dtype=np.int32),
        "child_idx": np.array([0, 1], dtype=np.int32),
        "n_classes": 2,
        "root": 0,
        "original": np.array([UNUSED, UNUSED], dtype=np.int32),
        field: value,
    }
    with pytest.raises(InputError, match=message):
        ExtractionProblem(**arrays)  # type: ignore[arg-type]


def test_original_is_optional_and_kept() -> None:
    assert not DIAMOND.has_original
    assert with_original(DIAMOND, choice(0, 1, 2, 3, UNUSED)).has_original
