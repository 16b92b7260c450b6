"""Evaluating whole graphs, folding, and drawing inputs and weights."""

from __future__ import annotations

import base64
import gc
import weakref
from typing import Any

import numpy as np
import onnx
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import Array, Graph, Node, TensorType, Weight, build_graph
from relational_tensat.verify import evaluate
from relational_tensat.verify.evaluate import (
    SeededWeights,
    evaluate_graph,
    evaluate_together,
    random_inputs,
)
from relational_tensat.verify.fold import evaluate_weight_only


def f32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


def weight(*shape: int, seed: int = 0) -> Weight:
    data = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Weight(f32(*shape), data)


def opaque(
    op_type: str, inputs: tuple[str, ...], output: str, kind: TensorType, **more: Any
) -> Node:
    names = [f"i{k}" for k in range(len(inputs))]
    proto = onnx.helper.make_node(op_type, names, ["o0"])
    attrs: Any = {
        "op_type": op_type,
        "domain": "",
        "opset": 20,
        "payload": base64.b64encode(proto.SerializeToString()).decode("ascii"),
        "out_types": ((kind.dtype, kind.shape),),
    }
    return Node("opaque", inputs, (output,), {**attrs, **more})


def mlp(layers: int = 3) -> Graph:
    nodes = []
    for k in range(layers):
        nodes.append(Node("matmul", (f"h{k}", f"w{k}"), (f"m{k}",)))
        nodes.append(Node("tanh", (f"m{k}",), (f"h{k + 1}",)))
    weights = {f"w{k}": Weight(f32(4, 4)) for k in range(layers)}
    return build_graph("mlp", {"h0": f32(2, 4)}, weights, nodes, [f"h{layers}"])


def test_a_graph_computes_what_numpy_does() -> None:
    graph = mlp()
    rng = np.random.default_rng(0)
    x, ws = rng.standard_normal((2, 4)), {f"w{k}": rng.standard_normal((4, 4)) for k in range(3)}
    expected = x
    for k in range(3):
        expected = np.tanh(expected @ ws[f"w{k}"])
    result = evaluate_graph(graph, {"h0": x}, ws)
    assert list(result) == ["h3"]
    np.testing.assert_allclose(result["h3"], expected, rtol=1e-13)


def test_floats_are_computed_in_float64_and_integers_stay() -> None:
    i32 = TensorType("int32", (2,))
    nodes = [
        Node("add", ("x", "x"), ("y",)),
        Node("mul", ("k", "k"), ("z",)),
    ]
    graph = build_graph("g", {"x": f32(2), "k": i32}, {}, nodes, ["y", "z"])
    result = evaluate_graph(graph, random_inputs(graph, 0), {})
    assert (result["y"].dtype, result["z"].dtype) == (np.float64, np.int32)


def test_outputs_may_be_tuples_inputs_or_repeated() -> None:
    nodes = [
        Node("split", ("x",), ("a", "b"), {"axis": 0, "sizes": (1, 2)}),
        Node("noop", ("b", "x"), ("t",)),
    ]
    graph = build_graph("g", {"x": f32(3)}, {}, nodes, ["t", "x", "a", "a"])
    result = evaluate_graph(graph, {"x": np.arange(3.0)}, {})
    assert [part.tolist() for part in result["t"]] == [[1, 2], [0, 1, 2]]
    assert result["x"].tolist() == [0, 1, 2]
    assert result["a"].tolist() == [0]


def test_weights_are_requested_once_when_needed_and_dropped_after_use() -> None:
    graph, alive, most = mlp(5), weakref.WeakSet[Any](), 0
    names: list[str] = []

    class Tracked(np.ndarray[Any, Any]):
        """An array that can be referred to weakly."""

    def provide(name: str, kind: TensorType) -> Array:
        nonlocal most
        gc.collect(0)
        names.append(name)
        array = np.zeros(kind.shape).view(Tracked)
        alive.add(_Token(array))
        most = max(most, len(alive))
        return array

    class _Token:
        """Lives as long as the array that it is attached to."""

        def __init__(self, array: Tracked) -> None:
            array.token = self  # type: ignore[attr-defined]

    evaluate_graph(graph, {"h0": np.zeros((2, 4))}, provide)
    assert names == ["w0", "w1", "w2", "w3", "w4"]
    assert most <= 2


def test_shared_weights_stay_while_needed() -> None:
    nodes = [Node("matmul", ("x", "w"), ("a",)), Node("matmul", ("a", "w"), ("y",))]
    graph = build_graph("g", {"x": f32(2, 2)}, {"w": Weight(f32(2, 2))}, nodes, ["y"])
    names = []

    def provide(name: str, kind: TensorType) -> Array:
        names.append(name)
        return 2 * np.eye(2)

    result = evaluate_graph(graph, {"x": np.eye(2)}, provide)["y"]
    np.testing.assert_array_equal(result, 4 * np.eye(2))
    assert names == ["w"]


def test_broadcast_weights_are_not_blown_up() -> None:
    size = 10**6  # 8 TB, were it stored
    nodes = [
        Node("slice", ("w",), ("y",), {"axes": (0,), "starts": (0,), "ends": (1,), "steps": (1,)})
    ]
    data = np.broadcast_to(np.float32(0.02), (size, size))
    graph = build_graph("g", {}, {"w": Weight(f32(size, size), data)}, nodes, ["y"])
    assert evaluate_graph(graph, {}, {"w": data})["y"].shape == (1, size)


@pytest.mark.parametrize(
    ("inputs", "weights", "message"),
    [
        ({}, {}, "the input 'h0' is not given"),
        ({"h": np.zeros((2, 4))}, {}, "the input 'h0' is not given; did you mean 'h'"),
        ({"h0": np.zeros((2, 3))}, {}, r"'h0' has shape \[2, 3\], expected float32\[2,4\]"),
        ({"h0": np.zeros((2, 4))}, {"w": np.zeros((4, 4))}, "weight 'w0' is not given; did you"),
    ],
)
def test_missing_values_are_named(inputs: Any, weights: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_graph(mlp(), inputs, weights)


def test_errors_name_the_node() -> None:
    kind = TensorType("int64", (1,))
    node = Node("gather", ("x", "k"), ("y",), {"axis": 0}, name="lookup")
    graph = build_graph("g", {"x": f32(3), "k": kind}, {}, [node], ["y"])
    with pytest.raises(InputError, match=r"node 'lookup' \(gather\): gather: an index"):
        evaluate_graph(graph, {"x": np.zeros(3), "k": np.array([3])}, {})


def test_opaque_nodes_are_run_in_their_declared_type() -> None:
    half = TensorType("float16", (2,))
    graph = build_graph("g", {"x": half}, {}, [opaque("Ceil", ("x",), "y", half)], ["y"])
    assert evaluate_graph(graph, {"x": np.array([0.5, 1.5])}, {})["y"].tolist() == [1.0, 2.0]


def foldable() -> Graph:
    """x @ (w + v)^T + opaque(b), and what depends on a weight without data."""
    nodes = [
        Node("add", ("w", "v"), ("s",)),
        Node("transpose", ("s",), ("t",), {"perm": (1, 0)}),
        Node("matmul", ("x", "t"), ("m",)),
        opaque("Ceil", ("b",), "c", f32(4)),
        Node("add", ("m", "c"), ("y",)),
        Node("relu", ("unknown",), ("u",)),
        Node("fill", (), ("two",), {"value": 2.0, "dtype": "float32", "shape": (2,)}),
        opaque("RandomNormalLike", ("b",), "random", f32(4), key="r"),
    ]
    weights = {
        "w": weight(4, 3),
        "v": weight(4, 3, seed=1),
        "b": weight(4),
        "unknown": Weight(f32(2)),
    }
    outputs = ["y", "u", "two", "random"]
    return build_graph("g", {"x": f32(2, 3)}, weights, nodes, outputs)


def test_weight_only_values_are_computed() -> None:
    graph = foldable()
    values: Any = evaluate_weight_only(graph)
    assert set(values) == {"t", "c"}  # not s, which only t needs; nothing random, no constant
    data: Any = {name: weight.data for name, weight in graph.weights.items()}
    assert values["t"].dtype == np.float32
    np.testing.assert_allclose(values["t"], (data["w"] + data["v"]).T, rtol=1e-6)
    np.testing.assert_array_equal(values["c"], np.ceil(data["b"]))


def test_what_onnxruntime_cannot_run_is_not_folded() -> None:
    node = opaque("Nonesuch", ("w",), "y", f32(2))
    graph = build_graph("g", {}, {"w": weight(2)}, [node], ["y"])
    assert evaluate_weight_only(graph) == {}


def test_folding_gives_the_same_graph() -> None:
    graph = mlp(2)
    weights = {name: weight(4, 4, seed=k) for k, name in enumerate(graph.weights)}
    nodes = [
        Node("transpose", ("w0",), ("t",), {"perm": (1, 0)}),
        Node("matmul", ("x", "t"), ("y",)),
    ]
    graph = build_graph("g", {"x": f32(2, 4)}, weights, nodes, ["y"])
    folded = {name: Weight(f32(4, 4), data) for name, data in evaluate_weight_only(graph).items()}
    short = build_graph("g", {"x": f32(2, 4)}, folded, nodes[1:], ["y"])
    inputs = random_inputs(graph, 0)
    own = {name: weight.data for name, weight in weights.items() if weight.data is not None}
    new = {name: weight.data for name, weight in folded.items() if weight.data is not None}
    np.testing.assert_array_equal(
        evaluate_graph(graph, inputs, own)["y"], evaluate_graph(short, inputs, new)["y"]
    )


def norms() -> Graph:
    vectors = {name: Weight(f32(3), np.full(3, 0.02, np.float32)) for name in ("s", "b", "m", "v")}
    weights: dict[str, Weight] = {
        **vectors,
        "k": Weight(f32(8, 3, 3, 3)),
        "e": Weight(f32(), np.array(1e-5, np.float32)),
        "n": Weight(TensorType("int64", (2,)), np.array([1, 2])),
        "d": Weight(f32(8)),
        "r": Weight(f32(1, 8, 2, 2), np.zeros((1, 8, 2, 2), np.float32)),
    }
    nodes = [
        Node("batch_norm", ("x", "s", "b", "m", "v"), ("y",), {"epsilon": 1e-5}),
        Node("conv", ("y", "k"), ("z",), {"stride": (1, 1), "pad": "same"}),
        Node("add", ("z", "e"), ("q",)),
        Node("reshape", ("d",), ("d4",), {"shape": (1, 8, 1, 1)}),
        Node("div", ("q", "d4"), ("o",)),
        Node("gather", ("o", "n"), ("g",), {"axis": 1}),
        opaque("Ceil", ("r",), "c", f32(1, 8, 2, 2)),
    ]
    return build_graph("g", {"x": f32(1, 3, 4, 4)}, weights, nodes, ["g", "c"])


def test_seeded_weights_are_scaled_positive_or_kept() -> None:
    drawn: Any = SeededWeights(norms(), 7)
    assert set(drawn) == set(norms().weights)
    for name in ("s", "v", "d"):  # scale, variance, divisor: also behind a reshape
        assert drawn[name].min() >= 0.5
    assert (drawn["b"] < 0).any() or (drawn["m"] < 0).any()
    assert drawn["k"].std() == pytest.approx(1 / (1.2 * np.sqrt(27)), rel=0.1)
    assert drawn["e"] == np.float32(1e-5)
    assert drawn["n"].tolist() == [1, 2]
    assert not drawn["r"].any()  # what an opaque operator takes may be sizes or scales
    assert all(drawn[name].dtype == np.float32 for name in ("s", "k", "d"))


def test_seeded_weights_depend_on_name_and_seed_only() -> None:
    a, b = SeededWeights(norms(), 7), SeededWeights(norms(), 7)
    first = {name: a[name] for name in a}
    for name in reversed(list(b)):
        np.testing.assert_array_equal(first[name], b[name])
    assert not np.array_equal(first["k"], SeededWeights(norms(), 8)["k"])
    assert not np.array_equal(a["b"], a["m"])
    np.testing.assert_array_equal(a("k", f32(8, 3, 3, 3)), a["k"])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_drawn_numbers_are_representable(dtype: str) -> None:
    kind = TensorType(dtype, (50,))
    graph = build_graph("g", {"x": kind}, {}, [Node("relu", ("x",), ("y",))], ["y"])
    x = random_inputs(graph, 0)["x"].astype(np.float32)
    if dtype == "float16":
        np.testing.assert_array_equal(x, x.astype(np.float16))
    else:
        assert not (x.view(np.uint32) & 0xFFFF).any()
    assert len(np.unique(x)) > 30


def test_integer_inputs_index_within_range() -> None:
    i64 = TensorType("int64", (400,))
    nodes = [
        Node("cast", ("k",), ("k32",), {"dtype": "int32"}),
        Node("reshape", ("k32",), ("k2",), {"shape": (20, 20)}),
        Node("gather", ("table", "k2"), ("y",), {"axis": 0}),
        Node("gather", ("small", "k"), ("z",), {"axis": 1}),
        Node("add", ("n", "n"), ("m",)),
    ]
    weights = {"table": Weight(f32(9, 2)), "small": Weight(f32(2, 5))}
    inputs = {"k": i64, "n": i64, "b": TensorType("bool", (400,))}
    graph = build_graph("g", inputs, weights, nodes, ["y", "z", "m", "b"])
    drawn = random_inputs(graph, 3)
    assert set(drawn["k"].tolist()) == set(range(5))
    assert set(drawn["n"].tolist()) == {0, 1}
    assert set(drawn["b"].tolist()) == {False, True}
    assert evaluate_graph(graph, drawn, SeededWeights(graph, 0))["y"].shape == (20, 20, 2)


def test_inputs_under_a_root_are_positive() -> None:
    nodes = [Node("sqrt", ("x",), ("y",))]
    graph = build_graph("g", {"x": f32(100)}, {}, nodes, ["y"])
    assert random_inputs(graph, 0)["x"].min() > 0


def test_exponents_are_small_whole_numbers() -> None:
    nodes = [Node("pow", ("x", "p"), ("y",))]
    graph = build_graph("g", {"x": f32(3)}, {"p": Weight(f32(3))}, nodes, ["y"])
    assert SeededWeights(graph, 0)["p"].tolist() == [2.0, 2.0, 2.0]


def test_strings_must_be_given() -> None:
    text = TensorType("string", (2,))
    node = opaque("StringNormalizer", ("x",), "y", text)
    graph = build_graph("g", {"x": text}, {}, [node], ["y"])
    with pytest.raises(InputError, match=r"'x' is .*must be given"):
        random_inputs(graph, 0)
    words = np.array(["a", "b"], dtype=object)
    assert evaluate_graph(graph, {"x": words}, {})["y"].tolist() == ["a", "b"]


def test_folded_constants_stay_small() -> None:
    size = 10**6  # 4 TB, were it stored
    data = np.broadcast_to(np.float32(0.02), (size, size))
    nodes = [
        Node("transpose", ("w",), ("t",), {"perm": (1, 0)}),
        Node("reshape", ("t",), ("y",), {"shape": (size, 1000, 1000)}),
    ]
    graph = build_graph("g", {}, {"w": Weight(f32(size, size), data)}, nodes, ["y"])
    folded = evaluate_weight_only(graph)["y"]
    assert folded.dtype == np.float32
    assert not any(folded.strides)


def test_no_two_rows_of_a_large_weight_are_equal() -> None:
    nodes = [Node("matmul", ("x", "w"), ("y",))]
    kind = f32(2048, 1024)
    graph = build_graph("g", {"x": f32(1, 2048)}, {"w": Weight(kind)}, nodes, ["y"])
    w = SeededWeights(graph, 0)["w"]
    assert w.shape == (2048, 1024)
    assert len({row.tobytes() for row in w}) == 2048
    assert len({column.tobytes() for column in w.T}) == 1024


def test_products_take_one_thread_and_then_as_many_as_before() -> None:
    library = evaluate._openblas()
    if library is None:
        pytest.skip("NumPy has another library than its own OpenBLAS")
    before = library.scipy_openblas_get_num_threads64_()
    with pytest.raises(KeyError), evaluate.one_product_thread():
        assert library.scipy_openblas_get_num_threads64_() == 1
        raise KeyError
    assert library.scipy_openblas_get_num_threads64_() == before


def test_several_inputs_take_each_weight_once() -> None:
    nodes = [
        Node("matmul", ("x", "w"), ("y",), {"act": "none"}),
        Node("matmul", ("y", "w"), ("z",), {"act": "none"}),
    ]
    graph = build_graph("twice", {"x": f32(2, 3)}, {"w": weight(3, 3)}, nodes, ["z"])
    draws, taken = [random_inputs(graph, seed) for seed in (0, 1)], []

    def take(name: str, kind: TensorType) -> Array:
        taken.append(name)
        return np.asarray(graph.weights[name].data)

    together = evaluate_together(graph, draws, take)
    assert taken == ["w"]
    for inputs, values in zip(draws, together, strict=True):
        assert np.array_equal(values["z"], evaluate_graph(graph, inputs, take)["z"])


def test_a_weight_that_is_only_moved_is_folded_in_its_own_type() -> None:
    nodes = [
        Node("reshape", ("w",), ("flat",), {"shape": (6,)}),
        Node("relu", ("flat",), ("positive",), {}),
        Node("add", ("x", "flat"), ("y",), {}),
        Node("add", ("y", "positive"), ("z",), {}),
    ]
    graph = build_graph("moved", {"x": f32(6)}, {"w": weight(2, 3)}, nodes, ["z"])
    folded = evaluate_weight_only(graph)
    data = np.asarray(graph.weights["w"].data)
    assert np.shares_memory(folded["flat"], data)
    assert folded["positive"].dtype == np.float32
    assert np.array_equal(folded["positive"], np.maximum(data, 0).reshape(6))
