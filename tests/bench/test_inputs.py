from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from bench.models import MODELS
from relational_tensat.formats import load_model

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
    shipped, model = load_model(INPUTS / "nasrnn.json"), MODELS["nasrnn"]()
    assert shipped.name == model.name
    assert shipped.nodes == model.nodes
    assert shipped.types == model.types
    assert shipped.outputs == model.outputs


@pytest.mark.parametrize(
    ("name", "opset", "inputs"),
    [
        ("encoder_block", 14, ["x", "padding"]),
        ("decoder_block", 18, ["x"]),
        ("vit_block", 16, ["image"]),
        ("gated_mlp", 17, ["x"]),
    ],
)
def test_the_blocks_are_small_and_spell_their_norms_out(
    name: str, opset: int, inputs: list[str]
) -> None:
    path = INPUTS / f"{name}.onnx"
    assert path.stat().st_size < 1_000_000
    model = onnx.load(path, load_external_data=False)
    onnx.checker.check_model(model, full_check=True)
    assert [entry.version for entry in model.opset_import] == [opset]
    assert [value.name for value in model.graph.input] == inputs
    operators = {node.op_type for node in model.graph.node}
    assert {"ReduceMean", "Sqrt", "Pow"} <= operators
    assert not operators & {"LayerNormalization", "Gelu", "RMSNormalization"}
    weights = [numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
    drawn = [array for array in weights if array.dtype == np.float32 and array.size >= 64]
    assert len(drawn) >= 4
    assert all(array.std() > 0.01 for array in drawn)
    assert not model.metadata_props
    assert not any(node.metadata_props or node.doc_string for node in model.graph.node)


def test_the_decoder_masks_the_future_and_shares_its_keys() -> None:
    session = onnxruntime.InferenceSession(
        INPUTS / "decoder_block.onnx", providers=["CPUExecutionProvider"]
    )
    x = np.random.default_rng(0).standard_normal((1, 32, 96), dtype=np.float32)
    later = x.copy()
    later[:, 20:] += 1.0
    (before,), (after,) = session.run(None, {"x": x}), session.run(None, {"x": later})
    assert np.abs(before[:, :20] - after[:, :20]).max() < 1e-4
    assert np.abs(before[:, 20:] - after[:, 20:]).max() > 0.1
    model = onnx.load(INPUTS / "decoder_block.onnx")
    assert "Expand" in {node.op_type for node in model.graph.node}
