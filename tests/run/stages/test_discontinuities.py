"""Floors, conversions and comparisons behind products: what is of integers stays, the rest is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from relational_tensat import Options, optimize
from relational_tensat.run.result import Result
from relational_tensat.run.stages import extract
from relational_tensat.verify.sessions import Session, open_session
from tests.formats.onnx_tools import constant, model, tensor

node = onnx.helper.make_node
FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
SIZE = 1000
#: What makes "q" of "x": times 0.1 times 10, which is another float than times 1.
PRODUCTS = [node("Mul", ["x", "a"], ["p"]), node("Mul", ["p", "b"], ["q"])]
SUMS = [node("Add", ["x", "a"], ["p"]), node("Add", ["p", "b"], ["q"])]
RELUS = [node("Relu", ["x"], ["p"]), node("Relu", ["p"], ["q"])]
CAST = node("Cast", ["f"], ["y"], to=INT64)


def optimized(
    folder: Path, nodes: list[onnx.NodeProto], **outputs: int
) -> tuple[Result, onnx.ModelProto, list[float]]:
    """Optimize a model; return the result, what was written, and the share of elements that flip."""
    source, target = folder / "m.onnx", folder / "out.onnx"
    numbers = {"a": 0.1, "b": 10.0, "c": 3.0}
    used = {name for each in nodes for name in each.input}
    constants = [constant(name, n, np.float32) for name, n in numbers.items() if name in used]
    kinds = [tensor(name, [SIZE], kind) for name, kind in outputs.items()]
    onnx.save(model(nodes, [tensor("x", [SIZE])], kinds, constants, 18), source)
    result = optimize(source, Options.of(cost="t4", verify_runs=1), output=target)
    x = {"x": np.arange(SIZE, dtype=np.float32) - SIZE // 2}
    before, after = (
        open_session(path, 1, Session.AS_WRITTEN).run(None, x) for path in (source, target)
    )
    flips = [float((a != b).mean()) for a, b in zip(before, after, strict=True)]
    return result, onnx.load(target), flips


def ops(written: onnx.ModelProto) -> list[str]:
    return [each.op_type for each in written.graph.node]


CASES: list[tuple[list[onnx.NodeProto], dict[str, int]]] = [
    ([*PRODUCTS, node("Floor", ["q"], ["f"]), CAST], {"y": INT64}),
    ([*PRODUCTS, node("Round", ["q"], ["f"]), CAST, node("Abs", ["q"], ["z"])], {"y": INT64, "z": FLOAT}),
    ([*SUMS, node("Cast", ["q"], ["y"], to=INT64)], {"y": INT64}),
    ([*PRODUCTS, node("Cast", ["q"], ["y"], to=BOOL)], {"y": BOOL}),
    ([*PRODUCTS, node("Greater", ["q", "c"], ["y"])], {"y": BOOL}),
    ([*PRODUCTS, node("Equal", ["q", "x"], ["y"])], {"y": BOOL}),
    (
        [
            *PRODUCTS,
            node("Ceil", ["q"], ["g"]),
            node("Relu", ["g"], ["r"]),
            node("Relu", ["r"], ["f"]),
            CAST,
        ],
        {"y": INT64},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "outputs"), CASES)
def test_integers_are_what_they_were(
    tmp_path: Path, nodes: list[onnx.NodeProto], outputs: dict[str, int]
) -> None:
    """The slow way: on all whole numbers there are, in onnxruntime."""
    result, written, flips = optimized(tmp_path, nodes, **outputs)
    assert flips == [0.0] * len(outputs)
    assert ops(written)[:2] == [each.op_type for each in nodes[:2]]
    assert not result.rejections
    assert any("outputs of integers depend on it" in note for note in result.notes)


@pytest.mark.parametrize(
    ("last", "label"),
    [
        ([node("Floor", ["q"], ["y"])], "Floor at 'y'"),
        ([node("Greater", ["q", "c"], ["m"]), node("Where", ["m", "q", "x"], ["y"])], "Greater at 'm'"),
    ],
)  # fmt: skip
def test_floats_behind_a_step_are_rewritten_and_the_report_names_it(
    tmp_path: Path, last: list[onnx.NodeProto], label: str
) -> None:
    result, written, flips = optimized(tmp_path, [*PRODUCTS, *last], y=FLOAT)
    assert ops(written).count("Mul") == 1
    assert flips[0] > 0
    (caution,) = result.verification.warnings
    assert label in caution


def test_what_orders_floats_is_named_and_stays_in_reach(tmp_path: Path) -> None:
    """A largest element is another only where two are equal: networks end so."""
    last = node("ArgMax", ["q"], ["i"], axis=0, keepdims=1)
    result, written, _ = optimized(tmp_path, [*PRODUCTS, last], i=INT64)
    assert ops(written).count("Mul") == 1
    assert any("ArgMax at 'i'" in caution for caution in result.verification.warnings)


@pytest.mark.parametrize("nodes", [RELUS, [*PRODUCTS[:1], node("Identity", ["p"], ["q"])]])
def test_where_floats_are_the_same_nothing_is_named(
    tmp_path: Path, nodes: list[onnx.NodeProto]
) -> None:
    result, written, flips = optimized(tmp_path, [*nodes, node("Floor", ["q"], ["y"])], y=FLOAT)
    assert len(ops(written)) == 2 and flips == [0.0]
    assert result.verification.warnings == ()


def test_what_is_extracted_all_the_same_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_: Any) -> tuple[str, ...]:
        return ()

    monkeypatch.setattr(extract, "behind_integers", none)
    nodes, outputs = CASES[0]
    result, _, flips = optimized(tmp_path, nodes, **outputs)
    assert result.unchanged and flips == [0.0]
    (rejection,) = result.rejections
    assert "rounded otherwise before Floor at 'f'" in rejection.why
