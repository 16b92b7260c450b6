"""A model's file is copied as it is, with the data files that it names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relational_tensat import Options, optimize
from relational_tensat.formats import copy_model, load_model
from relational_tensat.formats.frontend import OtherDataError

onnx = pytest.importorskip("onnx")


def with_external_data(folder: Path) -> Path:
    """Write a model with a weight in a file of a folder beside it."""
    folder.mkdir()
    (folder / "data").mkdir()
    helper = onnx.helper
    weight = onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    tensor = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "external",
        [helper.make_tensor_value_info("x", tensor, [2, 4])],
        [helper.make_tensor_value_info("y", tensor, [2, 4])],
        [weight],
    )
    path = folder / "m.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(
        model, path, save_as_external_data=True, location="data/w.bin", size_threshold=0
    )
    return path


def test_external_data_goes_with_the_model(tmp_path: Path) -> None:
    source = with_external_data(tmp_path / "from")
    target = tmp_path / "to" / "copy.onnx"
    target.parent.mkdir()
    assert copy_model(source, target) == (tmp_path / "to" / "data" / "w.bin",)
    assert target.read_bytes() == source.read_bytes()
    data = target.parent / "data" / "w.bin"
    assert data.read_bytes() == (source.parent / "data" / "w.bin").read_bytes()
    assert load_model(target).weights["w"].data is not None
    assert copy_model(source, target) == ()  # the same content is there already
    beside = source.with_name("beside.onnx")
    assert copy_model(source, beside) == ()
    assert beside.read_bytes() == source.read_bytes()


def test_other_data_is_not_overwritten(tmp_path: Path) -> None:
    source = with_external_data(tmp_path / "from")
    target = tmp_path / "to" / "copy.onnx"
    (target.parent / "data").mkdir(parents=True)
    (target.parent / "data" / "w.bin").write_bytes(b"mine")
    with pytest.raises(OtherDataError, match="other content"):
        copy_model(source, target)
    assert (target.parent / "data" / "w.bin").read_bytes() == b"mine"
    assert not target.exists()
    result = optimize(source, Options.of(cost="t4", iterations=1), output=target)
    assert (target.parent / "data" / "w.bin").read_bytes() == b"mine"
    assert any("written from its graph" in note for note in result.notes)
    np.testing.assert_array_equal(load_model(target).weights["w"].data, np.ones((4, 4)))
