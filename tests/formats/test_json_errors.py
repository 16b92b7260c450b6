"""Malformed JSON models: one line that names file, place and reason."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from relational_tensat.base.errors import InputError, ModelError, RelationalTensatError, UsageError
from relational_tensat.formats import load_model, save_model
from relational_tensat.tensor import Node, TensorType, build_graph

_GOOD: dict[str, Any] = {
    "format": "relational_tensat.graph",
    "version": 1,
    "name": "good",
    "inputs": [{"name": "x", "dtype": "float32", "shape": [1, 3, 8, 8]}],
    "weights": [{"name": "w", "dtype": "float32", "shape": [4, 3, 3, 3], "data": {"fill": 0.5}}],
    "nodes": [
        {
            "op": "conv",
            "inputs": ["x", "w"],
            "outputs": ["c"],
            "attrs": {"stride": [1, 1], "pad": "same"},
        },
        {"op": "relu", "inputs": ["c"], "outputs": ["y"]},
    ],
    "outputs": ["y"],
}


def _error(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "model.json"
    path.write_bytes(data)
    with pytest.raises(RelationalTensatError) as caught:
        load_model(path)
    message = str(caught.value)
    assert isinstance(caught.value, InputError)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def _changed(path: str, value: Any) -> bytes:
    """Return the good model with the value at a path (``nodes.0.op``) replaced."""
    root = copy.deepcopy(_GOOD)
    *parents, last = [int(key) if key.isdecimal() else key for key in path.split(".")]
    place: Any = root
    for key in parents:
        place = place[key]
    place[last] = value
    return json.dumps(root).encode()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("format", "onnx", '$.format: "onnx", expected "relational_tensat.graph"'),
        ("version", 2, "$.version: version 2 (written by a newer release) is not supported"),
        ("version", 0, "$.version: version 0 is not supported, expected 1"),
        ("version", "1", '$.version: "1", expected an integer'),
        ("extra", 1, "$: unknown key 'extra'"),
        ("nods", [], "$: unknown key 'nods'; did you mean 'nodes'?"),
        ("name", 3, "$.name: 3, expected a string"),
        ("inputs", {}, "$.inputs: an object, expected an array"),
        ("inputs.0.shape", [1, -3], "$.inputs[0].shape[1]: -3, expected an integer of at least 0"),
        ("inputs.0.shape", [1, 2.5], "$.inputs[0].shape[1]: 2.5, expected an integer"),
        ("inputs.0.shape", [True], "$.inputs[0].shape[0]: true, expected an integer"),
        (
            "inputs.0.dtype",
            "float99",
            "$.inputs[0].dtype: unknown element type 'float99'; did you mean",
        ),
        ("inputs.0.dtyp", "x", "$.inputs[0]: unknown key 'dtyp'; did you mean 'dtype'?"),
        ("inputs.0.name", "", '$.inputs[0].name: "", expected a name'),
        ("weights.0.name", "x", "$.weights[0]: the value 'x' is defined twice"),
        ("weights.0.data", 1, "$.weights[0].data: 1, expected an object"),
        ("weights.0.data", [1, 2], "$.weights[0].data: 2 numbers, expected 108"),
        ("weights.0.data", {"fill": "big"}, '$.weights[0].data.fill: "big", expected a number'),
        ("weights.0.data", {"fill": 1e300}, "$.weights[0].data.fill: 1e+300, expected a number"),
        ("weights.0.data", {"base64": "AAAA"}, "$.weights[0].data.base64: 3 bytes, expected 432"),
        ("weights.0.data", {"base64": "?"}, "$.weights[0].data.base64: not base64"),
        ("weights.0.dtype", "complex64", "$.weights[0].data: a weight of element type complex64"),
        ("nodes.0.op", "convv", "$.nodes[0].op: unknown operator 'convv'; did you mean 'conv'?"),
        ("nodes.1.outputs", [], "$.nodes[1].outputs: an array, expected at least one name"),
        ("nodes.1.outputs", ["c"], "$.nodes[1]: the value 'c' is defined twice"),
        ("nodes.1.inputs", ["cc"], "$.nodes[1].inputs[0]: 'cc' is not defined"),
        ("nodes.0.attrs.stride", "1", '$.nodes[0].attrs.stride: "1", expected an array'),
        ("nodes.0.attrs.stride", [1, "a"], '$.nodes[0].attrs.stride[1]: "a", expected an integer'),
        ("nodes.0.attrs.pad", "sames", '$.nodes[0].attrs.pad: "sames", expected "same", "valid"'),
        ("nodes.0.attrs.strid", 1, "has no attribute 'strid'; did you mean 'stride'?"),
        ("nodes.0.attrs.act", "reluu", "did you mean 'relu'?"),
        ("nodes.0.attrs", {"stride": [1, 1]}, "$.nodes[0].attrs: conv needs the attribute 'pad'"),
        ("inputs.0.shape", [1, 5, 8, 8], "conv -> 'c': "),
        ("nodes.1.inputs", ["y"], "depends on itself (cyclic graph)"),
        ("outputs", ["yy"], "output 'yy' is not computed by any node; did you mean 'y'?"),
        ("outputs", [], "the graph has no outputs"),
        ("metadata", {"a": 1}, "$.metadata.a: 1, expected a string"),
    ],
)
def test_wrong_values_are_named(tmp_path: Path, path: str, value: Any, message: str) -> None:
    assert message in _error(tmp_path, _changed(path, value))


def test_the_good_model_is_good(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(_GOOD), encoding="utf-8")
    assert load_model(path).output_types() == (TensorType("float32", (1, 4, 8, 8)),)


def test_missing_keys_are_named(tmp_path: Path) -> None:
    for key in ("format", "version", "name", "inputs", "weights", "nodes", "outputs"):
        root = {name: value for name, value in _GOOD.items() if name != key}
        assert f"the key {key!r} is missing" in _error(tmp_path, json.dumps(root).encode())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty (0 bytes)"),
        (b"\xff\xfe{}", "byte 0: not UTF-8 text"),
        (b"hello", "line 1 column 1: not JSON"),
        (b"[1, 2]", "$: an array, expected an object"),
        (b'{"format": "a", "format": "b"}', "the key 'format' occurs twice in one object"),
        (b'{"format": NaN}', "NaN is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"1" * 5000, "not a model"),
        (b'["\\ud800"]', "half of a surrogate pair"),
    ],
)
def test_what_is_no_json_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    assert message in _error(tmp_path, data)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    whole = json.dumps(_GOOD).encode()
    for length in range(1, len(whole), 37):
        assert "not JSON: " in _error(tmp_path, whole[:length])
    assert "the text ends too early" in _error(tmp_path, whole[:-1])


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_model(tmp_path / "none.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        load_model(tmp_path / "folder.json")


def test_suffixes_decide(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'\.jsn' is not one of .* did you mean '\.json'\?"):
        load_model(tmp_path / "model.jsn")
    graph = build_graph(
        "g", {"x": TensorType("float32", (2,))}, {}, [Node("relu", ("x",), ("y",))], ["y"]
    )
    with pytest.raises(UsageError, match=r"\.json and \.onnx"):
        save_model(graph, tmp_path / "model")
    with pytest.raises(InputError, match="cannot be written"):
        save_model(graph, tmp_path / "missing" / "model.json")


def test_json_has_no_dynamic_dimensions(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(_GOOD), encoding="utf-8")
    with pytest.raises(UsageError, match="has no dynamic dimensions, but batch was given"):
        load_model(path, {"batch": 1})


def test_errors_are_model_errors(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(_changed("version", 9))
    with pytest.raises(ModelError):
        load_model(path)
