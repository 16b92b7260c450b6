"""Malformed ONNX files: one line that names file, place and reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from relational_tensat.base.errors import InputError
from relational_tensat.formats import load_model
from tests.formats.onnx_tools import constant, model, tensor


def _good() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Relu", ["a"], ["y"], name="last"),
    ]
    weight = constant("w", np.ones((2, 2)), np.float32)
    return model(nodes, [tensor("x", [3, 2])], [tensor("y", [3, 2])], [weight])


def _error(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_model(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def _unknown_operator(proto: onnx.ModelProto) -> None:
    proto.graph.node[1].op_type = "Reluu"


def _unknown_attribute(proto: onnx.ModelProto) -> None:
    proto.graph.node[1].attribute.append(helper.make_attribute("colour", 1))


def _defined_twice(proto: onnx.ModelProto) -> None:
    proto.graph.node[1].output[0] = "a"


def _cycle(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].input[0] = "y"


def _shape_mismatch(proto: onnx.ModelProto) -> None:
    proto.graph.input[0].CopyFrom(tensor("x", [3, 5]))


def _no_version(proto: onnx.ModelProto) -> None:
    del proto.opset_import[:]


def _future_version(proto: onnx.ModelProto) -> None:
    proto.opset_import[0].version = 9999


def _short_weight(proto: onnx.ModelProto) -> None:
    proto.graph.initializer[0].raw_data = b"1234"


def _place_that_is_no_number(proto: onnx.ModelProto) -> None:
    weight = proto.graph.initializer[0]
    weight.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "ten")):
        entry = weight.external_data.add()
        entry.key, entry.value = key, value


def _missing_output(proto: onnx.ModelProto) -> None:
    proto.graph.output[0].name = "z"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_unknown_operator, "No Op registered for Reluu"),
        (_unknown_attribute, "Unrecognized attribute: colour"),
        (_defined_twice, "not a valid ONNX model"),
        (_cycle, "topologically sorted"),
        (_shape_mismatch, "node 'product' (MatMul): "),
        (_no_version, "no operator set version"),
        (_future_version, "operator set version 9999 is newer than the installed onnx"),
        (_short_weight, "not a valid ONNX model"),
        (_missing_output, "Graph output 'z'"),
        (_place_that_is_no_number, "the place of its weights: invalid literal"),
    ],
)
def test_damage_is_named(
    damage: Callable[[onnx.ModelProto], None], message: str, tmp_path: Path
) -> None:
    proto = _good()
    damage(proto)
    assert message in _error(tmp_path, proto.SerializeToString())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty (0 bytes)"),
        (b"hello, this is no model", "not an ONNX model"),
        (b"\xff" * 100, "not an ONNX model"),
    ],
)
def test_what_is_no_model_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    assert message in _error(tmp_path, data)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = _good().SerializeToString()
    for length in range(1, len(whole), 5):
        assert _error(tmp_path, whole[:length])


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.onnx: no such file"):
        load_model(tmp_path / "none.onnx")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        load_model(tmp_path / "folder.onnx")
