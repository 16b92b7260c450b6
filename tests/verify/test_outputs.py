"""What a maximum makes of NaN is up to the runtime: it is not compared, and everything else is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relational_tensat.formats import save_model
from relational_tensat.tensor import Graph, Node, build_graph
from relational_tensat.verify import verify_files
from relational_tensat.verify.outputs import DefinedElements
from tests.graphs import f32

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

#: onnxruntime spreads the first element of a row and the third of 17, and passes over the others.
X = np.arange(17 * 17, dtype=np.float32).reshape(17, 17)
X[np.arange(17), np.arange(17)] = np.nan


def maxima(*, transposed: bool, factor: float = 1.0) -> Graph:
    """Return the largest of each row, and all numbers times a factor."""
    layout = [Node("transpose", ("x",), ("t",), {"perm": (1, 0)})] if transposed else []
    operand, axis = ("t", 0) if transposed else ("x", 1)
    largest = Node("reduce_max", (operand,), ("y",), {"axes": (axis,), "keepdims": False})
    scaled = Node("smul", ("x",), ("z",), {"value": factor})
    return build_graph("maxima", {"x": f32(17, 17)}, {}, [*layout, largest, scaled], ["y", "z"])


def compared(folder: Path, before: Graph, after: Graph) -> tuple[bool, tuple[str, ...]]:
    save_model(before, folder / "before.onnx")
    save_model(after, folder / "after.onnx")
    files = folder / "before.onnx", folder / "after.onnx"
    outcome = verify_files(before, *files, inputs={"x": X})
    return outcome.ok, outcome.warnings


def test_where_a_maximum_met_nan_files_may_differ_and_nowhere_else(tmp_path: Path) -> None:
    before = maxima(transposed=False, factor=2.0)
    ok, warnings = compared(tmp_path, before, maxima(transposed=True, factor=2.0))
    assert ok
    assert warnings == (
        "17 elements of output 'y' are not compared: they depend on a maximum or minimum that met "
        "NaN, which runtimes spread or pass over",
    )
    ok, _ = compared(tmp_path, before, maxima(transposed=True, factor=3.0))
    assert not ok


def test_without_nan_all_is_defined() -> None:
    defined = DefinedElements(maxima(transposed=False), [{"x": np.nan_to_num(X)}], {})
    assert defined.warnings == ()
    outputs = [[np.ones(17, np.float32), X]]
    assert defined.only(outputs)[0][0] is outputs[0][0]


def test_integers_that_depend_on_such_a_maximum_are_not_compared() -> None:
    graph = build_graph(
        "is it",
        {"x": f32(17, 17)},
        {},
        [
            Node("reduce_max", ("x",), ("y",), {"axes": (1,), "keepdims": False}),
            Node("cast", ("y",), ("n",), {"dtype": "bool"}),
        ],
        ["n"],
    )
    defined = DefinedElements(graph, [{"x": np.where(np.isnan(X), X, -np.inf)}], {})
    assert defined.warnings == ()  # NaN and infinity are both true
    defined = DefinedElements(graph, [{"x": np.where(np.isnan(X), X, 0.0)}], {})
    assert not defined.only([[np.ones(17, bool)]])[0][0].any()
