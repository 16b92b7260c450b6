"""A file with nodes that lead nowhere, or are known before inference, is written as it was read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from relational_tensat import Options, optimize
from tests.formats.onnx_tools import session
from tests.with_compilers import needs_c

OPTIONS = Options.of(cost="t4", only=("drop-no-op",))


def _optimized(
    text: str, folder: Path, options: Options = OPTIONS
) -> tuple[list[str], bytes, bytes]:
    """Return the operators of the result, and both files."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    onnx.checker.check_model(model)
    source, target = folder / "in.onnx", folder / "out.onnx"
    onnx.save(model, source)
    optimize(source, options, output=target)
    result = onnx.load(target)
    rows = np.ones((3, 4), np.float32)
    for expected, given in zip(
        session(model).run(None, {"x": rows}), session(result).run(None, {"x": rows}), strict=True
    ):
        np.testing.assert_allclose(given, expected)
    ops = [node.op_type for node in result.graph.node]
    return ops, source.read_bytes(), target.read_bytes()


@pytest.mark.parametrize("rows", ["3", "N"])
@pytest.mark.parametrize(
    "nodes",
    [
        "a = Exp(x) b = Sin(a) y = Relu(x)",
        "s = Shape<start=1>(x) f = Cast<to=1>(s) q = Sub(f, f) b = Cos(q) y = Relu(x)",
        "a = Floor(x) b = Floor(a) y = Floor(b)",
    ],
)
def test_what_is_not_read_is_not_written(nodes: str, rows: str, tmp_path: Path) -> None:
    ops, _, _ = _optimized(f"g (float[{rows},4] x) => (float[{rows},4] y) {{ {nodes} }}", tmp_path)
    assert len(ops) == 1


def test_ones_and_zeros_of_several_elements(tmp_path: Path) -> None:
    nodes = (
        "o = Constant<value = float[4] {1, 1, 1, 1}>() z = Constant<value = float[3,1] {0, 0, 0}>() "
        "a = Mul(o, x) b = Add(a, z) c = Div(b, o) d = Sub(c, z) y = Relu(d)"
    )
    ops, _, _ = _optimized(f"g (float[3,4] x) => (float[3,4] y) {{ {nodes} }}", tmp_path)
    assert ops == ["Relu"]


def test_what_makes_a_result_larger_stays(tmp_path: Path) -> None:
    nodes = "o = Constant<value = float[2,1,1] {1, 1}>() y = Mul(x, o)"
    ops, _, _ = _optimized(f"g (float[3,4] x) => (float[2,3,4] y) {{ {nodes} }}", tmp_path)
    assert "Mul" in ops


@pytest.mark.parametrize(
    ("nodes", "options"),
    [
        ("y = Relu(x)", OPTIONS),
        ("a = Exp(x) b = Sin(a) y = Relu(x)", Options.of(cost="t4", min_speedup=1.5)),
    ],
)
def test_the_original_is_copied_elsewhere(nodes: str, options: Options, tmp_path: Path) -> None:
    text = f"g (float[3,4] x) => (float[3,4] y) {{ {nodes} }}"
    _, before, after = _optimized(text, tmp_path, options)
    assert before == after


@needs_c
def test_kernels_are_looked_for_in_a_model_of_an_old_version(tmp_path: Path) -> None:
    """Local functions have no form in version 6."""
    text = "old (float[3, 4] x) => (float[3, 4] y) { a = Tanh(x) y = Sigmoid(a) }"
    model = onnx.parser.parse_model(f'<ir_version: 3, opset_import: ["" : 6]> {text}')
    onnx.save(model, tmp_path / "in.onnx")
    options = Options.of(effort="low", fuse=True)
    result = optimize(tmp_path / "in.onnx", options, output=tmp_path / "out.onnx")
    assert any("parts none has a faster kernel" in note for note in result.notes)
