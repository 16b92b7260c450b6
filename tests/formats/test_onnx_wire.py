"""Skeletons: messages without their large weights, which are mapped, and put into files as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from relational_tensat.base.errors import ModelError
from relational_tensat.formats import load_model, onnx_emit, onnx_external, onnx_wire, save_model
from relational_tensat.formats.onnx_wire import (
    PLACEHOLDER,
    WireError,
    with_large_weights,
    without_large_weights,
)
from tests.formats.onnx_tools import constant, model


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (onnx_wire, onnx_emit, onnx_external):
        monkeypatch.setattr(module, "LARGE_BYTES", 64)


def _model(dtype: type[np.generic] = np.float32, size: int = 8) -> onnx.ModelProto:
    values = np.arange(size * size, dtype=np.float64).reshape(size, size)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [helper.make_tensor_value_info("x", kind, [2, size])]
    outputs = [helper.make_tensor_value_info("y", kind, [2, size])]
    weights = [constant("w", values, dtype), constant("b", np.arange(size), dtype)]
    return model(nodes, inputs, outputs, weights)


def test_what_is_taken_out_is_put_back_byte_for_byte() -> None:
    message = memoryview(_model().SerializeToString())
    skeleton, regions = without_large_weights(message)
    proto = onnx.ModelProto.FromString(skeleton)
    raw = {tensor.name: tensor.raw_data for tensor in proto.graph.initializer}
    assert raw["w"] == PLACEHOLDER
    assert len(raw["b"]) == 8 * 4
    assert list(regions) == ["w"]
    data = {name: message[region.start : region.stop] for name, region in regions.items()}
    chunks = with_large_weights(proto, data)
    assert onnx.ModelProto.FromString(b"".join(chunks)) == onnx.ModelProto.FromString(
        bytes(message)
    )
    assert any(chunk is data["w"] for chunk in chunks)  # not a copy


def test_every_truncation_and_every_changed_byte_is_a_message_or_an_error() -> None:
    whole = _model(size=5).SerializeToString()
    n_errors = 0
    for index in range(len(whole)):
        for message in (
            whole[:index],
            whole[:index] + bytes([whole[index] ^ 0xFF]) + whole[index + 1 :],
        ):
            try:
                without_large_weights(memoryview(message))
            except WireError:
                n_errors += 1
    assert n_errors > 10


def test_an_initializer_that_is_there_twice_is_named(tmp_path: Path) -> None:
    proto = _model()
    proto.graph.initializer.append(proto.graph.initializer[0])
    path = tmp_path / "twice.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="the initializer 'w' is there twice"):
        load_model(path)


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
def test_large_weights_are_mapped_and_come_back(
    dtype: type[np.generic], external: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.onnx"
    onnx.save_model(
        _model(dtype), path, save_as_external_data=external, location="a.bin", size_threshold=0
    )
    data = load_model(path).weights["w"].data
    assert data is not None
    assert not data.flags.owndata
    assert not data.flags.writeable
    np.testing.assert_array_equal(data, np.arange(64).reshape(8, 8).astype(dtype))
    copy = tmp_path / "b.onnx"
    save_model(load_model(path), copy)
    onnx.checker.check_model(copy, full_check=True)
    again = load_model(copy).weights["w"].data
    assert again is not None
    np.testing.assert_array_equal(again, data)


def test_data_of_the_wrong_length_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    proto = _model()
    proto.graph.initializer[0].raw_data += b"1234"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(
        ModelError, match=r"'w' of shape \[8, 8\]: has 260 bytes of data, expected 256"
    ):
        load_model(path)


def test_external_data_that_is_too_short_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    onnx.save_model(_model(), path, save_as_external_data=True, location="a.bin", size_threshold=0)
    (tmp_path / "a.bin").write_bytes(b"1" * 100)
    with pytest.raises(ModelError, match=r"a\.onnx: not a valid ONNX model: .*tensor.*w"):
        load_model(path)


def test_an_element_type_of_its_own_is_read_as_before(tmp_path: Path) -> None:
    values = np.arange(64, dtype=np.float32).reshape(8, 8)
    weight = onnx.TensorProto(name="w", data_type=onnx.TensorProto.BFLOAT16, dims=[8, 8])
    weight.raw_data = (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    kind = onnx.TensorProto.BFLOAT16
    proto = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [helper.make_tensor_value_info("x", kind, [2, 8])],
        [helper.make_tensor_value_info("y", kind, [2, 8])],
        [weight],
    )
    path = tmp_path / "a.onnx"
    path.write_bytes(proto.SerializeToString())
    data = load_model(path).weights["w"].data
    assert data is not None
    np.testing.assert_array_equal(data, values)
