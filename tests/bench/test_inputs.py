from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from relational_tensat.load import load_model
from relational_tensat.models import MODELS

INPUTS = Path(__file__).parents[2] / "bench" / "inputs"
BLOCK = INPUTS / "transformer_block.onnx"


def test_the_exported_block_is_small_and_complete() -> None:
    assert BLOCK.stat().st_size < 1_000_000
    model = onnx.load(BLOCK, load_external_data=False)
    onnx.checker.check_model(model, full_check=True)
    assert [entry.version for entry in model.opset_import] == [20]
    operators = {node.op_type for node in model.graph.node}
    assert {"MatMul", "Softmax", "LayerNormalization", "Gelu", "Transpose", "Add"} <= operators
    for tensor in model.graph.initializer:
        assert tensor.data_location == onnx.TensorProto.DEFAULT


def test_its_weights_are_no_constants() -> None:
    model = onnx.load(BLOCK)
    floats = [
        numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims
    ]
    assert len(floats) == 16
    assert all(array.std() > 0.01 for array in floats)


def test_it_runs() -> None:
    session = onnxruntime.InferenceSession(BLOCK, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).standard_normal((1, 16, 64), dtype=np.float32)
    (y,) = session.run(None, {"x": x})
    assert y.shape == x.shape
    assert np.isfinite(y).all()
    assert 0.1 < np.abs(y - x).mean() < 10


def test_the_shipped_nasrnn_is_what_its_builder_makes() -> None:
    shipped, built = load_model(INPUTS / "nasrnn.json"), MODELS["nasrnn"]()
    assert shipped.name == built.name
    assert shipped.nodes == built.nodes
    assert shipped.types == built.types
    assert shipped.outputs == built.outputs
