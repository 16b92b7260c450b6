"""Writing ONNX: weights, tuples, names, element types, external data, and failing safely."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest

from relational_tensat.base.errors import InputError, MissingDependencyError, ModelError
from relational_tensat.formats import (
    from_onnx_model,
    load_model,
    onnx_external,
    save_model,
    to_onnx_model,
)
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.operators import get_operator
from tests.formats.onnx_tools import session

_KIND = TensorType("float32", (4, 4))


def _weights_graph() -> Graph:
    weights = {
        "unknown": Weight(_KIND),
        "random": Weight(_KIND, np.arange(16, dtype=np.float32).reshape(4, 4)),
        "uniform": Weight(TensorType("float32", (4, 1000)), np.full((4, 1000), 2, np.float32)),
    }
    nodes = [
        Node("matmul", ("x", "unknown"), ("a",)),
        Node("matmul", ("a", "random"), ("b",)),
        Node("matmul", ("b", "uniform"), ("y",)),
    ]
    return build_graph("weights", {"x": _KIND}, weights, nodes, ["y"])


def test_weights_keep_what_is_known_of_them(tmp_path: Path) -> None:
    save_model(_weights_graph(), tmp_path / "a.onnx")
    written = onnx.load(tmp_path / "a.onnx")
    assert [value.name for value in written.graph.input] == ["x", "unknown"]
    assert "random" in {item.name for item in written.graph.initializer}
    assert "ConstantOfShape" in {node.op_type for node in written.graph.node}
    graph = load_model(tmp_path / "a.onnx")
    assert list(graph.inputs) == ["x"]
    assert set(graph.weights) == {"unknown", "random", "uniform"}
    assert graph.weights["unknown"].data is None
    assert graph.nodes == _weights_graph().nodes
    eye = np.eye(4, dtype=np.float32)
    (result,) = session(written).run(None, {"x": eye, "unknown": eye})
    np.testing.assert_allclose(
        result, np.full((4, 1000), 2) * np.arange(16).reshape(4, 4).sum(1)[:, None]
    )


def test_tuples_become_several_outputs(tmp_path: Path) -> None:
    nodes = [
        Node("relu", ("x",), ("a",)),
        Node("neg", ("x",), ("b",)),
        Node("noop", ("a", "b"), ("inner",)),
        Node("noop", ("inner", "a", "x"), ("all",)),
    ]
    graph = build_graph("tuple", {"x": _KIND}, {}, nodes, ["all"])
    save_model(graph, tmp_path / "a.onnx")
    runner = session(tmp_path / "a.onnx")
    names = [value.name for value in runner.get_outputs()]
    assert len(set(names)) == 4
    assert (names[0], names[1], names[3]) == ("a", "b", "x")
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    first, second, third, fourth = runner.run(None, {"x": x})
    np.testing.assert_array_equal(first, np.maximum(x, 0))
    np.testing.assert_array_equal(second, -x)
    np.testing.assert_array_equal(third, first)
    np.testing.assert_array_equal(fourth, x)


def test_concat_takes_the_parts_of_a_tuple() -> None:
    nodes = [
        Node("relu", ("x",), ("a",)),
        Node("noop", ("a", "x"), ("pair",)),
        Node("concat", ("pair", "x"), ("y",), {"axis": 0}),
    ]
    written = to_onnx_model(build_graph("tuple", {"x": _KIND}, {}, nodes, ["y"]))
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    (result,) = session(written).run(None, {"x": x})
    np.testing.assert_array_equal(result, np.concatenate([np.maximum(x, 0), x, x]))


def test_outputs_keep_the_names_they_were_read_with() -> None:
    metadata = {"onnx.outputs": '["first", "second", "a"]'}
    nodes = [Node("relu", ("x",), ("a",)), Node("neg", ("a",), ("first",))]
    graph = build_graph("names", {"x": _KIND}, {}, nodes, ["a", "x", "first"], metadata)
    written = to_onnx_model(graph)
    onnx.checker.check_model(written, full_check=True)
    assert [value.name for value in written.graph.output] == ["first", "second", "a"]
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
    relu, same, negative = session(written).run(None, {"x": x})
    np.testing.assert_array_equal(relu, np.maximum(x, 0))
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(negative, -np.maximum(x, 0))


@pytest.mark.parametrize(
    "dtype", ["float64", "float16", "int64", "int32", "int8", "uint8", "uint64", "bool", "bfloat16"]
)
@pytest.mark.parametrize("size", [3, 100])
def test_element_types_survive(dtype: str, size: int, tmp_path: Path) -> None:
    held = "float32" if dtype == "bfloat16" else dtype
    values = (np.arange(size) % 2).astype(held)
    uniform = np.ones(size).astype(held)
    kind = TensorType(dtype, (size,))
    weights = {"w": Weight(kind, values), "u": Weight(kind, uniform)}
    nodes = [Node("identity", ("w",), ("y",)), Node("identity", ("u",), ("z",))]
    graph = build_graph("types", {"x": _KIND}, weights, nodes, ["y", "z"])
    save_model(graph, tmp_path / "a.onnx")
    again = load_model(tmp_path / "a.onnx")
    assert again.output_types() == graph.output_types()
    for name, data in (("y", values), ("z", uniform)):
        weight = again.weights.get(name) or again.weights[{"y": "w", "z": "u"}[name]]
        assert weight.data is not None
        np.testing.assert_array_equal(weight.data, data)


def test_bfloat16_rounds_to_nearest_even() -> None:
    from relational_tensat.formats.arrays import bfloat16_bits_to_float, float_to_bfloat16_bits

    step = 2.0**-7  # between 1 and 2
    inputs = np.array([1, 1 + step / 2, 1 + 1.5 * step, -1 - step, np.inf, np.nan], np.float32)
    rounded = bfloat16_bits_to_float(float_to_bfloat16_bits(inputs))
    want = np.array([1, 1, 1 + 2 * step, -1 - step, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(rounded, want)


def test_large_weights_go_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_external, "_EXTERNAL_FROM_BYTES", 1000)
    data = np.random.default_rng(0).random((512, 512), dtype=np.float32)
    kind = TensorType("float32", (512, 512))
    nodes = [Node("matmul", ("x", "w"), ("y",))]
    graph = build_graph("large", {"x": kind}, {"w": Weight(kind, data)}, nodes, ["y"])
    path = tmp_path / "a.onnx"
    save_model(graph, path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.onnx", "a.onnx.data"]
    assert path.stat().st_size < 1000
    again = load_model(path).weights["w"].data
    assert again is not None
    np.testing.assert_array_equal(again, data)
    (result,) = session(path).run(None, {"x": np.eye(512, dtype=np.float32)})
    np.testing.assert_allclose(result, data, rtol=1e-6)
    (tmp_path / "a.onnx.data").unlink()
    with pytest.raises(ModelError, match=r"a\.onnx: its weights are in 'a\.onnx\.data'"):
        load_model(path)


def test_what_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.onnx"
    save_model(_weights_graph(), path)
    before = path.read_bytes()

    def refuse(*_: object, **__: object) -> None:
        raise onnx.checker.ValidationError("two\nlines")

    monkeypatch.setattr(onnx.checker, "check_model", refuse)
    with pytest.raises(
        ModelError, match="not written, the result is no valid ONNX model: two lines"
    ):
        save_model(_weights_graph(), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a.onnx"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing/a\.onnx: cannot be written"):
        save_model(_weights_graph(), tmp_path / "missing" / "a.onnx")
    (tmp_path / "a.onnx").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        save_model(_weights_graph(), tmp_path / "a.onnx")


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_a_missing_package_is_named(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else find(name)
    )
    text = rf"ONNX files need {missing}: pip install 'relational-tensat\[onnx\]'"
    with pytest.raises(MissingDependencyError, match=text):
        save_model(_weights_graph(), tmp_path / "a.onnx")
    with pytest.raises(MissingDependencyError, match=text):
        load_model(tmp_path / "a.onnx")


def test_every_operator_of_a_graph_keeps_its_name() -> None:
    nodes = [Node("relu", ("x",), ("a",), {}, "first"), Node("neg", ("a",), ("y",), {}, "second")]
    graph = from_onnx_model(to_onnx_model(build_graph("n", {"x": _KIND}, {}, nodes, ["y"])))
    assert [node.name for node in graph.nodes] == ["first", "second"]


@pytest.mark.parametrize(
    ("op", "scales", "version"), [("layer_norm", 2, 17), ("gelu", 0, 20), ("rms_norm", 1, 23)]
)
@pytest.mark.parametrize("read", [14, 24])
def test_the_operator_set_is_late_enough_for_single_nodes(
    op: str, scales: int, version: int, read: int
) -> None:
    kind = TensorType("float32", (4,))
    weights = {f"w{index}": Weight(kind, np.arange(4, dtype=np.float32)) for index in range(scales)}
    graph = build_graph(
        "g",
        {"x": _KIND},
        weights,
        [Node(op, ("x", *weights), ("y",), {"axis": 1, "epsilon": 1e-5} if weights else {})],
        ["y"],
        {"onnx.opset_import": f'{{"": {read}}}'},
    )
    written = to_onnx_model(graph)
    assert [node.op_type for node in written.graph.node] == [get_operator(op).onnx[0]]
    assert written.opset_import[0].version == max(version, read)


def test_no_two_nodes_have_one_name() -> None:
    """onnxruntime would refuse the model."""
    nodes = [
        Node("relu", ("x",), ("a",), {}, "n"),
        Node("neg", ("a",), ("b",), {}, "n"),
        Node("exp", ("b",), ("y",)),
    ]
    graph = build_graph("names", {"x": TensorType("float32", (2,))}, {}, nodes, ["y"])
    assert [node.name for node in to_onnx_model(graph).graph.node] == ["n", "", ""]
