"""Comparisons see what a mask does to rows that it leaves nothing of, or half."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.formats import save_model
from relational_tensat.tensor import Array, Graph, Node, TensorType, Weight, build_graph
from relational_tensat.verify import Verification, equivalence, inputs, verify, verify_files
from relational_tensat.verify.inputs import RandomWeights
from relational_tensat.verify.random_values import SeededWeights
from relational_tensat.verify.sessions import Session
from tests.graphs import f32, weight

#: What weights of each element type take, as NumPy holds them.
STORED_BYTES = {"float16": 2, "bfloat16": 4, "float32": 4, "float64": 8}


def product(dtype: str) -> Graph:
    """Return x @ w of 4 x 4 matrices."""
    kind = TensorType(dtype, (4, 4))
    node = Node("matmul", ("x", "w"), ("y",))
    return build_graph("product", {"x": kind}, {"w": Weight(kind)}, [node], ["y"])


@pytest.mark.parametrize("dtype", sorted(STORED_BYTES))
def test_what_is_kept_is_what_is_drawn_and_drawn_once(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, kind = product(dtype), TensorType(dtype, (4, 4))
    drawn: list[str] = []
    draw = SeededWeights.draw

    def counted(self: SeededWeights, name: str, *others: Any) -> Any:
        drawn.append(name)
        return draw(self, name, *others)

    monkeypatch.setattr(SeededWeights, "draw", counted)
    for most, times in ((16 * STORED_BYTES[dtype], 1), (16 * STORED_BYTES[dtype] - 1, 4)):
        monkeypatch.setattr(inputs, "_FEW_BYTES", most)
        weights = RandomWeights(graph, seed=1, step=2)
        drawn.clear()
        stored, computed = weights["w"], weights("w", kind)
        again = weights["w"], weights("w", kind)
        assert len(drawn) == times
        assert stored.itemsize == STORED_BYTES[dtype]
        assert computed.dtype == np.float64
        assert np.array_equal(computed, stored)
        assert all(np.array_equal(value, stored) for value in again)
        assert np.array_equal(stored, RandomWeights(graph, seed=1, step=2, keep=False)["w"])


INT = TensorType("int64", (1, 6))


def attention(
    *nodes: Node, last: str, scores: str = "add", axis: int = 2, **inputs: TensorType
) -> Graph:
    """Return attention of one head, whose softmax is of its scores and of what the nodes make."""
    return build_graph(
        "attention",
        {"x": f32(1, 6, 8), **inputs},
        {"w": weight(8, 8)},
        [
            *nodes,
            Node("matmul", ("x", "w"), ("q",)),
            Node("transpose", ("x",), ("k",), {"perm": (0, 2, 1)}),
            Node("matmul", ("q", "k"), ("s",)),
            Node("add", ("s", last), ("a",)),
            Node("softmax", ("a" if scores == "add" else "s",), ("p",), {"axis": axis}),
            Node("matmul", ("p", "x"), ("y",)),
        ],
        ["y"],
    )


def of_integers(lowest: float, infinite_to: float) -> Graph:
    """Return attention as exports have it, whose mask is 0 and 1.

    Args:
        infinite_to: what masked scores have in the place of ``lowest`` where a row is masked wholly.
    """
    fills = {"zero": 0.0, "low": lowest, "other": infinite_to}
    nodes = [
        Node("fill", (), (name,), {"value": value, "dtype": "float32", "shape": ()})
        for name, value in fills.items()
    ]
    nodes += [
        Node("reshape", ("m",), ("rows",), {"shape": (1, 1, 6)}),
        Node("cast", ("rows",), ("kept",), {"dtype": "bool"}),
        Node("cast", ("kept",), ("numbers",), {"dtype": "float32"}),
        Node("reduce_max", ("numbers",), ("any",), {"axes": (2,), "keepdims": True}),
        Node("cast", ("any",), ("is_any",), {"dtype": "bool"}),
        Node("where", ("is_any", "low", "other"), ("masked",)),
        Node("where", ("kept", "zero", "masked"), ("added",)),
    ]
    return attention(*nodes, last="added", m=INT)


def compared_files(
    before: Graph, after: Graph, folder: Path, session: Session = Session.AS_BY_DEFAULT
) -> Verification:
    pytest.importorskip("onnxruntime")
    files = [folder / "before.onnx", folder / "after.onnx"]
    for graph, file in zip((before, after), files, strict=True):
        save_model(graph, file)
    return verify_files(before, *files, run_as=session)


ROWS = f32(1, 6, 1)


def test_a_mask_of_whole_rows_is_not_dropped(tmp_path: Path) -> None:
    """As a rule had it that is right for every number but such."""
    before = attention(last="m", m=ROWS)
    after = attention(last="m", m=ROWS, scores="dropped")
    given: dict[str, Array] = {"m": np.random.default_rng(0).standard_normal((1, 6, 1))}
    assert verify(before, after, inputs=given).ok  # random numbers do not show it
    for outcome in (
        verify(before, after),
        *(compared_files(before, after, tmp_path, session) for session in Session),
    ):
        failure = outcome.failure()
        assert "output 'y' (float32[1,6,8])" in failure
        assert "(at [0, " in failure and " instead of " in failure
        assert "rows of 'm' masked" in failure


def test_masked_rows_of_large_graphs_are_computed_beside_others_or_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(equivalence, "_FEW_NODES", 0)
    right, wrong = attention(last="m", m=ROWS), attention(last="m", m=ROWS, scores="dropped")
    beside, failure = verify(right, right), verify(right, wrong).failure()
    assert "rows of 'm' masked" in failure
    assert any(check.setting.rows for check in beside.outputs)

    def check(_: Graph, n_runs: int = 1) -> None:
        if n_runs > 1:
            raise InputError("no room")

    monkeypatch.setattr(equivalence, "check_memory", check)
    assert verify(right, right) == beside
    assert verify(right, wrong).failure() == failure


def test_what_rounding_would_make_of_a_mask_of_ones_excuses_nothing(tmp_path: Path) -> None:
    """(1 - 0.99999994) times the lowest number masks all the rest."""
    numbers = {"one": 1.0, "low": float(np.finfo(np.float32).min)}
    nodes = [
        Node("fill", (), (name,), {"value": value, "dtype": "float32", "shape": ()})
        for name, value in numbers.items()
    ]
    nodes += [Node("sub", ("one", "m"), ("i",)), Node("mul", ("i", "low"), ("added",))]
    before = attention(*nodes, last="added", m=ROWS)
    after = attention(*nodes, last="added", m=ROWS, scores="dropped")
    assert compared_files(before, before, tmp_path).ok
    checks = compared_files(before, after, tmp_path).outputs
    assert [bool(check.setting.rows) for check in checks if not check.ok] == [False, True]
    assert all(np.isfinite(check.max_relative_error) for check in checks)


@pytest.mark.parametrize("shape", [(1, 6, 6), (1, 1, 6), (6, 6), (6,)])
def test_the_same_graph_passes_with_masks_and_proves_something(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    graph = attention(last="m", m=f32(*shape))
    for outcome in (verify(graph, graph), compared_files(graph, graph, tmp_path)):
        assert outcome.ok and not outcome.warnings
        masked = [check for check in outcome.outputs if check.setting.rows]
        assert masked and all(check.proves_something for check in masked)


def test_rows_that_an_integer_mask_leaves_nothing_of_are_compared(tmp_path: Path) -> None:
    lowest = float(np.finfo(np.float32).min)
    for masked in (lowest, -1e9):
        before, after = of_integers(masked, masked), of_integers(masked, 0.0)
        assert verify(before, before).ok
        assert compared_files(before, before, tmp_path).ok
        assert "rows of 'm' masked" in compared_files(before, after, tmp_path).failure()
        if masked == lowest:  # beside -10^9 float64 has digits left
            assert "rows of 'm' masked" in verify(before, after).failure()
    other = of_integers(lowest, -np.inf)  # NaN where the other has equal weights
    assert "rows of 'm' masked" in verify(of_integers(lowest, lowest), other).failure()


def test_what_is_nan_by_a_mask_stays_nan() -> None:
    """What the original makes of rows without any key is its users' affair; it is not repaired."""
    infinite, finite = of_integers(-np.inf, -np.inf), of_integers(-np.inf, -1e9)
    assert verify(infinite, infinite).ok
    assert "nan" in verify(infinite, finite).failure()


@pytest.mark.parametrize("low", [-1e4, -1e6])
def test_a_mask_that_leaves_few_digits_is_no_mistake(low: float, tmp_path: Path) -> None:
    """Beside -10^6, float32 has sixteenths only: another order of sums is another softmax there."""
    nodes = [Node("fill", (), ("low",), {"value": low, "dtype": "float32", "shape": ()})]
    nodes.append(Node("mul", ("m", "low"), ("added",)))
    before = attention(*nodes, last="added", m=f32(1, 1, 6))
    after = build_graph(
        "other order",
        before.inputs,
        before.weights,
        [
            *(node for node in before.nodes if "a" not in node.outputs),
            Node("smul", ("s",), ("half",), {"value": 0.5}),
            Node("add", ("half", "added"), ("b",)),
            Node("add", ("b", "half"), ("a",)),
        ],
        before.outputs,
    )
    assert verify(before, after).ok
    outcome = compared_files(before, after, tmp_path)
    assert outcome.failure() == ""
    excused = [check for check in outcome.outputs if "by rounding alone" in check.note]
    assert bool(excused) == (low == -1e6) and all(check.setting.rows for check in excused)


def test_given_masks_stay_as_they_are() -> None:
    graph = attention(last="m", m=ROWS)
    outcome = verify(graph, graph, inputs={"m": np.zeros((1, 6, 1))})
    assert not any(check.setting.rows for check in outcome.outputs)


def test_a_row_that_the_original_has_no_result_for_is_reported(tmp_path: Path) -> None:
    """It takes the last token that is kept: of a row without any, the one before the first."""
    nodes = [
        Node("cast", ("m",), ("numbers",), {"dtype": "int64"}),
        Node("reduce_sum", ("numbers",), ("length",), {"axes": (0, 1), "keepdims": False}),
        Node("fill", (), ("most",), {"value": 7, "dtype": "int64", "shape": ()}),
        Node("sub", ("length", "most"), ("place",)),
        Node("gather", ("x", "place"), ("token",), {"axis": 1}),
        Node("reshape", ("token",), ("row",), {"shape": (1, 1, 8)}),
        Node("mul", ("o", "row"), ("y",)),
    ]
    rows = [
        Node("reshape", ("m",), ("kept_rows",), {"shape": (1, 1, 6)}),
        Node("cast", ("kept_rows",), ("added",), {"dtype": "float32"}),
    ]
    base = attention(*rows, last="added", m=INT)
    body = [replace(node, outputs=("o",)) if "y" in node.outputs else node for node in base.nodes]
    graph = build_graph("last token", base.inputs, base.weights, [*body, *nodes], ["y"])
    for outcome in (verify(graph, graph), compared_files(graph, graph, tmp_path)):
        assert outcome.ok and outcome.runs
        assert any("rows of 'm' masked" in text for text in outcome.warnings)
