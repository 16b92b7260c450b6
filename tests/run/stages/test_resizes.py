"""Interpolations as products: by the same operator of unit matrices, where they are linear."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from relational_tensat import Options, optimize
from relational_tensat.cost.cache import CostCache
from relational_tensat.formats import load_model
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.run.stages import opaque_times
from relational_tensat.run.stages.opaque_times import opaque_times_us
from relational_tensat.run.stages.resizes import resize_rules
from relational_tensat.tensor import Attrs, ValueType
from relational_tensat.tensor.operators.base import Types
from tests.formats.onnx_tools import assert_same_results

HALF = 'coordinate_transformation_mode="half_pixel"'
CUBIC = f'mode="cubic", {HALF}, cubic_coeff_a=-0.75'


def _file(folder: Path, attributes: str, scales: str = "1, 1, 1.6, 0.5", size: str = "8,5") -> Path:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3,5,10] x) => (float[2,3,{size}] z) {{
          c = Constant<value = float {{2}}>()
          s = Constant<value = float[4] {{{scales}}}>()
          h = Mul(x, c)
          y = Resize<{attributes}>(h, "", s)
          z = Relu(y)
        }}"""
    )
    onnx.checker.check_model(model, full_check=True)
    path = folder / "resized.onnx"
    onnx.save(model, path)
    return path


class _WithoutOpaque:
    """Costs that have no operator that nobody knows."""

    name = "without opaque"

    def cost_us(self, op: str, inputs: Types, output: ValueType, attrs: Attrs) -> float:
        return 100.0 if op == "opaque" else 1.0


@pytest.mark.parametrize("attributes", [CUBIC, f'mode="linear", {HALF}', f"{CUBIC}, antialias=1"])
def test_an_interpolation_is_products(attributes: str, tmp_path: Path) -> None:
    path, target = _file(tmp_path, attributes), tmp_path / "out.onnx"
    options = Options.of(backend="onnxruntime", only=("drop-reshape",), end_to_end=False)
    result = optimize(path, options, cost_model=_WithoutOpaque(), output=target)
    assert result.verification is not None and not result.verification.failure()
    assert any(name.startswith("resize-1") for name in result.rules_used)
    operators = {node.op_type for node in onnx.load(target).graph.node}
    assert "MatMul" in operators and "Resize" not in operators
    assert_same_results(onnx.load(path), onnx.load(target))


@pytest.mark.parametrize(
    ("attributes", "scales"),
    [
        ('mode="nearest"', "1, 1, 1.6, 0.5"),  # it chooses by rounding
        (CUBIC, "1, 1, 1.75, 0.5"),  # to the same size by another scale: between other places
    ],
)
def test_what_no_matrix_says_stays(attributes: str, scales: str, tmp_path: Path) -> None:
    load_backend("onnxruntime")
    graph = load_model(_file(tmp_path, attributes, scales))
    assert any(node.op == "opaque" for node in graph.nodes)
    assert resize_rules(graph) == []


def test_operators_behind_constants_are_timed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """onnxruntime counts nodes without those that are constants; a second run has the same prices."""
    path = _file(tmp_path, CUBIC)
    large = onnx.load(path)
    large.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 64
    large.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 64
    onnx.save(large, path)
    costs, graph = CostCache(tmp_path / "costs.duckdb"), load_model(path)
    monkeypatch.setattr(opaque_times, "_IDLE", 1e9)  # as if others were busy: nothing is kept
    opaque_times_us(path, graph, {}, 1, 0, costs)
    assert not costs.path.exists()
    monkeypatch.setattr(opaque_times, "_IDLE", 0.0)
    first = opaque_times_us(path, graph, {}, 1, 0, costs)
    assert [us > 0 for us in first.values()] == [True]
    names = [node.outputs[0] for node in graph.nodes]
    monkeypatch.setattr(opaque_times, "_node_times_us", lambda *_: dict.fromkeys(names, 7.0))
    assert opaque_times_us(path, graph, {}, 1, 0, costs) == first
    assert [*opaque_times_us(path, graph, {}, 1, 0, costs, again=True).values()] == [7.0]
