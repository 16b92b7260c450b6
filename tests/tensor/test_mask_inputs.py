"""Which inputs are masks, and what their rows have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.mask_inputs import MaskInput, find_masks
from tests.graphs import f32, weight

LOWEST = float(np.finfo(np.float32).min)


def number(value: float, name: str) -> Node:
    return Node("fill", (), (name,), {"value": value, "dtype": "float32", "shape": ()})


def scores(*nodes: Node, last: str, **inputs: TensorType) -> Graph:
    """Return softmax(x·w + last), as attention has it."""
    return build_graph(
        "scores",
        {"x": f32(2, 3, 4), **inputs},
        {"w": weight(4, 3)},
        [
            *nodes,
            Node("matmul", ("x", "w"), ("s",)),
            Node("add", ("s", last), ("a",)),
            Node("softmax", ("a",), ("y",), {"axis": 2}),
        ],
        ["y"],
    )


def test_a_summand_of_scores_is_a_mask_also_behind_moves() -> None:
    moved = [
        Node("reshape", ("m",), ("r",), {"shape": (2, 3, 1)}),
        Node("expand", ("r",), ("e",), {"shape": (2, 3, 3)}),
        Node("transpose", ("e",), ("t",), {"perm": (0, 2, 1)}),
    ]
    assert find_masks(scores(last="m", m=f32(2, 1, 3))) == {"m": MaskInput(LOWEST, 0.0, -np.inf)}
    assert find_masks(scores(*moved, last="t", m=f32(2, 3))) == {
        "m": MaskInput(LOWEST, 0.0, -np.inf)
    }


def test_the_lowest_number_is_what_comes_out_of_products_and_differences() -> None:
    doubled = find_masks(scores(Node("smul", ("m",), ("d",), {"value": 8.0}), last="d", m=f32(3)))
    (mask,) = doubled.values()
    product = np.float32(8.0) * np.float32(mask.masked)
    assert np.isfinite(product) and product < 0.99 * np.float32(LOWEST)
    taken = find_masks(
        scores(number(0.0, "z"), Node("sub", ("z", "m"), ("d",)), last="d", m=f32(3))
    )
    assert taken == {"m": MaskInput(-LOWEST, 0.0, np.inf)}


@pytest.mark.parametrize("lowest", [-10000.0, LOWEST, -np.inf])
def test_what_is_multiplied_by_a_large_number_is_0_and_1(lowest: float) -> None:
    nodes = [
        number(1.0, "one"),
        number(lowest, "low"),
        Node("sub", ("one", "m"), ("inverse",)),
        Node("mul", ("inverse", "low"), ("added",)),
    ]
    assert find_masks(scores(*nodes, last="added", m=f32(3))) == {"m": MaskInput(0.0, 1.0)}


def test_conditions_are_0_and_1() -> None:
    nodes = [
        number(0.0, "zero"),
        number(LOWEST, "low"),
        Node("cast", ("m",), ("c",), {"dtype": "bool"}),
        Node("where", ("c", "zero", "low"), ("added",)),
    ]
    for dtype in ("int64", "bool", "float32"):
        graph = scores(*nodes, last="added", m=TensorType(dtype, (2, 1, 3)))
        assert find_masks(graph) == {"m": MaskInput(0, 1)}


def test_what_is_used_otherwise_too_is_no_mask() -> None:
    """Nor are the operands of products, what an activation is of, and what is returned."""
    nodes = [Node("relu", ("m",), ("d",))]
    assert find_masks(scores(*nodes, last="d", m=f32(3))) == {}
    both = build_graph(
        "both",
        {"m": f32(3, 3)},
        {},
        [
            Node("softmax", ("m",), ("p",), {"axis": 1}),
            Node("matmul", ("p", "m"), ("y",)),
        ],
        ["y"],
    )
    assert find_masks(both) == {}


def test_integers_that_index_more_than_two_rows_are_no_masks() -> None:
    def embedding(rows: int) -> Graph:
        return build_graph(
            "embedding",
            {"i": TensorType("int64", (2, 4))},
            {"table": Weight(f32(rows, 3))},
            [Node("gather", ("table", "i"), ("y",), {"axis": 0})],
            ["y"],
        )

    assert find_masks(embedding(3)) == {}
    assert find_masks(embedding(2)) == {"i": MaskInput(0, 1)}  # types of tokens


shapes = st.lists(st.integers(1, 5), min_size=0, max_size=4).map(tuple)


@given(shapes, st.integers(0, 3), st.booleans())
def test_rows_of_all_sorts_are_drawn_and_none_is_wholly_infinite(
    shape: tuple[int, ...], first: int, added: bool
) -> None:
    mask = MaskInput(-7.0, 0.0, -np.inf) if added else MaskInput(0.0, 1.0)
    array = np.random.default_rng(0).uniform(2.0, 3.0, shape)
    length = shape[-1] if shape else 1
    seen = set()
    for drawn in mask.draws(array, first):
        assert drawn.shape == array.shape and drawn.dtype == array.dtype
        for row, original in zip(drawn.reshape(-1, length), array.reshape(-1, length), strict=True):
            masked = row == mask.masked
            assert not np.isinf(row).all()
            if np.isinf(row).any():
                seen.add("infinite")
            elif masked.all():
                seen.add("wholly")
            elif masked.any():
                kept = original[~masked] if added else mask.kept
                assert (row[~masked] == kept).all()
                seen.add("right" if masked[-1] else "left")
            else:
                assert (row == mask.kept).all()
                seen.add("none")
    halves = {"right", "left"} if length > 1 else set()
    infinite = {"infinite"} if added and length > 1 else set()
    assert seen == {"wholly", "none"} | halves | infinite
