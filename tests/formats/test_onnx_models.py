"""The models inside the onnx package: read, written, and computing the same."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import numpy_helper

from relational_tensat.formats import load_model, save_model
from relational_tensat.formats.onnx_metadata import OLDEST_WRITTEN_OPSET
from tests.formats.onnx_tools import assert_equal, assert_same_results, session

_DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
_FOLDERS = ("simple", "pytorch-operator", "pytorch-converted")
_SMALL = sorted(path.parent for name in _FOLDERS for path in (_DATA / name).glob("*/model.onnx"))
_LIGHT = sorted((_DATA / "light").glob("*.onnx"))
#: onnxruntime has no kernels of older versions.
_OLDEST_RUN = 7
#: Sizes of dynamic dimensions.
_DIMS = {"test_sequence_model8": {"n": 0}}
#: onnxruntime needs locales that a machine may lack, or has no such operator.
_NOT_RUN = {"StringNormalizer", "Gradient"}


def _stored(path: Path, kind: onnx.TypeProto) -> Any:
    data = path.read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


@pytest.mark.parametrize("folder", _SMALL, ids=lambda folder: folder.name)
def test_small_models_give_their_stored_results(folder: Path, tmp_path: Path) -> None:
    graph = load_model(folder / "model.onnx", _DIMS.get(folder.name))
    model = onnx.load(folder / "model.onnx")
    is_runnable = model.opset_import[0].version >= _OLDEST_RUN
    save_model(graph, tmp_path / "a.onnx", None if is_runnable else OLDEST_WRITTEN_OPSET)
    if _NOT_RUN & {node.op_type for node in model.graph.node}:
        return
    initialized = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initialized]
    data = folder / "test_data_set_0"
    feed = {
        value.name: _stored(data / f"input_{index}.pb", value.type)
        for index, value in enumerate(inputs)
    }
    names = [value.name for value in model.graph.output]
    results = session(tmp_path / "a.onnx").run(names, feed)
    for index, (value, result) in enumerate(zip(model.graph.output, results, strict=True)):
        assert_equal(_stored(data / f"output_{index}.pb", value.type), result)


@pytest.mark.parametrize("path", _LIGHT, ids=lambda path: path.stem)
def test_light_models_keep_names_and_size(path: Path, tmp_path: Path) -> None:
    graph = load_model(path)
    assert len(graph.inputs) == 1
    for weight in graph.weights.values():
        assert weight.data is not None
        assert weight.type.size < 2000 or not any(weight.data.strides)
    target = tmp_path / "a.onnx"
    save_model(graph, target)
    assert target.stat().st_size < path.stat().st_size
    written, original = onnx.load(target), onnx.load(path)
    names = {name for node in written.graph.node for name in node.output}
    kept = {"Conv", "Relu", "Concat", "BatchNormalization", "LRN", "MaxPool", "Softmax"}
    for node in original.graph.node:
        if node.op_type in kept:
            assert node.output[0] in names


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet"])
def test_light_models_compute_the_same(name: str, tmp_path: Path) -> None:
    path = _DATA / "light" / f"light_{name}.onnx"
    original = onnx.load(path)
    if name == "squeezenet":  # equal logits of 1e10: softmax would show their rounding only
        original.graph.output[0].name = original.graph.node[-1].input[0]
        del original.graph.node[-1]
    onnx.save(original, tmp_path / "a.onnx")
    save_model(load_model(tmp_path / "a.onnx"), tmp_path / "b.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same_results(original, onnx.load(tmp_path / "b.onnx"))
