"""The JSON form: exact round trips, and what the text looks like."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

from relational_tensat.formats import load_model, save_model
from relational_tensat.tensor import (
    DTYPE_BYTES,
    Graph,
    Node,
    TensorType,
    Weight,
    build_graph,
    numpy_dtype,
)

_NAMES = st.text(min_size=1, max_size=6)
_SHAPES = st.lists(st.integers(1, 4), max_size=3).map(tuple)


def _round_trip(graph: Graph) -> Graph:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        save_model(graph, path)
        assert [file.name for file in Path(folder).iterdir()] == ["model.json"]
        return load_model(path)


def _assert_identical(graph: Graph, again: Graph) -> None:
    assert again.name == graph.name
    assert list(again.inputs.items()) == list(graph.inputs.items())
    assert again.nodes == graph.nodes
    assert again.outputs == graph.outputs
    assert again.types == graph.types
    assert again.metadata == graph.metadata
    assert list(again.weights) == list(graph.weights)
    for name, weight in graph.weights.items():
        other = again.weights[name]
        assert other.type == weight.type
        assert (other.data is None) == (weight.data is None)
        if weight.data is not None and other.data is not None:
            assert other.data.dtype == weight.data.dtype
            assert other.data.tobytes() == weight.data.tobytes()


@st.composite
def _weights(draw: st.DrawFn) -> Weight:
    kind = TensorType(draw(st.sampled_from(sorted(DTYPE_BYTES))), draw(_SHAPES))
    dtype = numpy_dtype(kind.dtype)
    how = draw(st.sampled_from(["none", "array", "uniform"]))
    if how == "none":
        return Weight(kind)
    if how == "uniform":
        kind = kind.with_shape((draw(st.integers(1, 100)), 3))
        element = draw(numpy_strategies.from_dtype(dtype))
        return Weight(kind, np.broadcast_to(np.array(element, dtype), kind.shape))
    return Weight(kind, draw(numpy_strategies.arrays(dtype, kind.shape)))


@st.composite
def _graphs(draw: st.DrawFn) -> Graph:
    """Graphs of element-wise operators, splits and tuples over values of one shape."""
    kind = TensorType("float32", (draw(st.integers(2, 5)), draw(st.integers(1, 3))))
    names = iter(draw(st.lists(_NAMES, min_size=30, max_size=30, unique=True)))
    inputs = {next(names): kind for _ in range(draw(st.integers(1, 3)))}
    weights = {next(names): draw(_weights()) for _ in range(draw(st.integers(0, 3)))}
    values, nodes = list(inputs), []
    numbers = st.floats(allow_nan=False) | st.integers(-5, 5)
    for _ in range(draw(st.integers(1, 6))):
        one, other = draw(st.sampled_from(values)), draw(st.sampled_from(values))
        result, label = next(names), draw(st.just("") | _NAMES)
        match draw(st.sampled_from(["relu", "add", "smul", "clip", "split", "transpose"])):
            case "add":
                nodes.append(Node("add", (one, other), (result,), {}, label))
            case "smul":
                nodes.append(Node("smul", (one,), (result,), {"value": draw(numbers)}, label))
            case "clip":
                bounds = {"min": draw(st.just(float("-inf")) | numbers), "max": float("inf")}
                nodes.append(Node("clip", (one,), (result,), bounds, label))
            case "split":
                parts, sizes = (result, next(names)), (1, kind.shape[0] - 1)
                nodes.append(Node("split", (one,), parts, {"axis": 0, "sizes": sizes}, label))
                joined = next(names)
                nodes.append(Node("concat", parts, (joined,), {"axis": 0}))
                result = joined
            case "transpose":
                middle = next(names)
                nodes.append(Node("transpose", (one,), (middle,), {"perm": (1, 0)}, label))
                nodes.append(Node("transpose", (middle,), (result,), {"perm": (1, 0)}))
            case _:
                nodes.append(Node("relu", (one,), (result,), {}, label))
        values.append(result)
    nodes.append(Node("noop", tuple(values[-2:]), ("all the outputs",)))
    metadata = draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2))
    outputs = (values[-1], "all the outputs")
    return build_graph(draw(st.text(max_size=5)), inputs, weights, nodes, outputs, metadata)


@given(_graphs())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_round_trip_is_exact(graph: Graph) -> None:
    _assert_identical(graph, _round_trip(graph))


@given(_weights())
@settings(deadline=None, max_examples=100)
def test_weight_data_survives_bit_for_bit(weight: Weight) -> None:
    inputs = {"x": TensorType("float32", (2,))}
    graph = build_graph("w", inputs, {"w": weight}, [Node("relu", ("x",), ("y",))], ["y", "w"])
    _assert_identical(graph, _round_trip(graph))


def _example() -> Graph:
    kind = TensorType("float32", (4, 4))
    weights = {
        "uniform": Weight(kind.with_shape((512, 4)), np.full((512, 4), 0.5, np.float32)),
        "small": Weight(TensorType("float32", (2,)), np.array([1.5, -np.inf], np.float32)),
        "large": Weight(kind.with_shape((4, 8)), np.arange(32, dtype=np.float32).reshape(4, 8)),
        "unknown": Weight(kind),
    }
    nodes = [
        Node("matmul", ("x", "unknown"), ("a",), {"act": "relu"}),
        Node("relu", ("a",), ("y",), {}, "last"),
    ]
    return build_graph("example", {"x": kind}, weights, nodes, ["y"], {"source": "test"})


def test_weights_are_written_in_the_shortest_form(tmp_path: Path) -> None:
    save_model(_example(), tmp_path / "model.json")
    written = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    data = {weight["name"]: weight.get("data") for weight in written["weights"]}
    assert data["uniform"] == {"fill": 0.5}
    assert data["small"] == [1.5, "-inf"]
    assert list(data["large"]) == ["base64"]
    assert data["unknown"] is None


def test_uniform_weights_stay_one_number_in_memory() -> None:
    again = _round_trip(_example())
    data = again.weights["uniform"].data
    assert data is not None
    assert data.strides == (0, 0)


def test_each_node_is_one_line(tmp_path: Path) -> None:
    save_model(_example(), tmp_path / "model.json")
    lines = (tmp_path / "model.json").read_text(encoding="utf-8").splitlines()
    assert sum('"op": ' in line for line in lines) == 2
    assert all(line.count('"op": ') <= 1 for line in lines)


def test_nodes_may_stand_in_any_order_and_defaults_be_left_out(tmp_path: Path) -> None:
    text = {
        "format": "relational_tensat.graph",
        "version": 1,
        "name": "n",
        "inputs": [{"name": "x", "dtype": "float32", "shape": [2, 2]}],
        "weights": [],
        "nodes": [
            {"op": "relu", "inputs": ["a"], "outputs": ["y"]},
            {"op": "matmul", "inputs": ["x", "x"], "outputs": ["a"]},
        ],
        "outputs": ["y"],
    }
    path = tmp_path / "model.json"
    path.write_text(json.dumps(text), encoding="utf-8")
    graph = load_model(path)
    assert [node.op for node in graph.nodes] == ["matmul", "relu"]
    assert graph.types["y"] == TensorType("float32", (2, 2))


def test_the_documented_example_is_valid(tmp_path: Path) -> None:
    from relational_tensat.formats import json_values

    lines = (json_values.__doc__ or "").split("By example::")[1].split("\n\n")[1]
    path = tmp_path / "model.json"
    path.write_text(lines, encoding="utf-8")
    graph = load_model(path)
    assert graph.output_types() == (TensorType("float32", (1, 4, 8, 8)),)
    weight = graph.weights["b"].data
    assert weight is not None
    assert weight.tolist() == [0.0, 1.5, float("-inf"), 2.0]


def test_the_schema_names_the_keys_that_are_read() -> None:
    from relational_tensat.formats import json_values

    schema_path = Path(json_values.__file__).with_name("model.schema.json")
    schema = json.loads(schema_path.read_text(encoding="utf-8"))
    properties = schema["properties"]
    assert properties["format"]["const"] == json_values.FORMAT
    assert properties["version"]["const"] == json_values.VERSION
    assert set(schema["required"]) == set(properties) - {"metadata"}
    assert schema["additionalProperties"] is False
    assert set(properties["nodes"]["items"]["properties"]) == {
        "op", "inputs", "outputs", "attrs", "name",
    }  # fmt: skip


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    save_model(_example(), path)
    before = path.read_bytes()
    broken = _example()
    broken.metadata["bad"] = {1, 2}  # type: ignore[index]
    with pytest.raises(TypeError):
        save_model(broken, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.json"]
