"""Small models in which a law of the reals fails on a machine: no e-node computes anything else."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.rules.library import load_rules
from relational_tensat.tensor import Array, Graph, Node, TensorType, Weight, build_graph
from relational_tensat.verify.fold import evaluate_weight_only
from tests.explore.machine_values import disagreements

_N = 8


def _numbers(dtype: str, *values: float) -> dict[str, Weight]:
    kind = np.dtype("float32" if dtype == "bfloat16" else dtype)
    return {
        f"w{i}": Weight(TensorType(dtype, ()), np.array(value, kind))
        for i, value in enumerate(values)
    }


def _chain(dtype: str, *steps: tuple[str, float]) -> Graph:
    """Return a graph that applies operators with numbers, one after the other."""
    nodes = [
        Node(op, ("x" if i == 0 else f"t{i}", f"w{i}"), (f"t{i + 1}",))
        for i, (op, _) in enumerate(steps)
    ]
    weights = _numbers(dtype, *(value for _, value in steps))
    inputs = {"x": TensorType(dtype, (_N,))}
    return build_graph("chain", inputs, weights, nodes, [f"t{len(steps)}"])


def _unary(dtype: str, *nodes: Node, inputs: tuple[str, ...] = ("x",)) -> Graph:
    kinds = {name: TensorType(dtype, (_N,)) for name in inputs}
    operands = {name for node in nodes for name in node.inputs}
    outputs = [name for node in nodes for name in node.outputs if name not in operands]
    return build_graph("unary", kinds, {}, list(nodes), outputs)


_MAGIC = 1.5 * 2**23
_MODELS: Mapping[str, Graph] = {
    "int32 / 100000 / 100000": _chain("int32", ("div", 100000), ("div", 100000)),
    "int32 / 65536 / 65536": _chain("int32", ("div", 65536), ("div", 65536)),
    "int8 relu(|x|)": _unary("int8", Node("abs", ("x",), ("a",)), Node("relu", ("a",), ("y",))),
    "int8 relu(x) - relu(-x)": _unary(
        "int8",
        Node("relu", ("x",), ("a",)),
        Node("neg", ("x",), ("n",)),
        Node("relu", ("n",), ("b",)),
        Node("sub", ("a", "b"), ("y",)),
    ),
    "float16 * 1e-4 * 1e-4": _chain("float16", ("mul", 1e-4), ("mul", 1e-4)),
    "float16 * 300 * 300": _chain("float16", ("mul", 300), ("mul", 300)),
    "float16 / 1e-5": _chain("float16", ("div", 1e-5)),
    "float32 / 1e-30 / 1e-30": _chain("float32", ("div", 1e-30), ("div", 1e-30)),
    "float32 + 1e8 - 1e8": _chain("float32", ("add", 1e8), ("sub", 1e8)),
    "magic rounding": _chain("float32", ("add", _MAGIC), ("sub", _MAGIC)),
    "magic rounding, scaled": _chain(
        "float32", ("mul", 3.0), ("add", _MAGIC), ("add", 1.0), ("sub", _MAGIC), ("mul", 1 / 3)
    ),
    "exp(x) exp(y), exp(x + y)": _unary(
        "float32",
        Node("exp", ("x",), ("a",)),
        Node("exp", ("y",), ("b",)),
        Node("mul", ("a", "b"), ("p",)),
        Node("add", ("x", "y"), ("s",)),
        Node("exp", ("s",), ("q",)),
        inputs=("x", "y"),
    ),
}
_SPREAD = {
    "int8": [-128, -127, -2, -1, 0, 1, 2, 127],
    "int32": [-(2**31), -100001, -1, 0, 7, 123456, 2**31 - 1, 65537],
    "float16": [-3.5, -1.0, -0.25, 0.0, 0.001, 0.75, 1.5, 2.0],
    "float32": [-100.0, -3.5, -0.4, 0.0, 0.6, 1.25, 90.0, 2.0],
}


def _explored(graph: Graph) -> EGraph:
    egraph = EGraph.create(graph)
    explore(egraph, load_rules(), ExplorationOptions(iterations=6, node_limit=2000))
    return egraph


def _inputs(graph: Graph) -> dict[str, Array]:
    inputs = {}
    for index, (name, kind) in enumerate(graph.inputs.items()):
        numbers = np.array(_SPREAD[kind.dtype], kind.dtype)
        inputs[name] = -numbers if index else numbers
    return inputs


@pytest.mark.parametrize("name", list(_MODELS))
def test_all_e_nodes_of_a_class_agree_on_a_machine(name: str) -> None:
    graph = _MODELS[name]
    assert disagreements(_explored(graph), _inputs(graph), 1e-2) == []


def _normalized(mean: float) -> Graph:
    rng = np.random.default_rng(0)
    vector = TensorType("float32", (4,))
    weights = {
        "w": Weight(
            TensorType("float32", (4, 3, 1, 1)), rng.normal(size=(4, 3, 1, 1)).astype("f4")
        ),
        "s": Weight(vector, np.ones(4, np.float32)),
        "b": Weight(vector, np.zeros(4, np.float32)),
        "m": Weight(vector, np.full(4, mean, np.float32)),
        "v": Weight(vector, np.full(4, 1e-2, np.float32)),
    }
    nodes = [
        Node("conv", ("x", "w"), ("c",), {"stride": (1, 1), "pad": "valid"}),
        Node("batch_norm", ("c", "s", "b", "m", "v"), ("y",), {"epsilon": 1e-5}),
    ]
    return build_graph("norm", {"x": TensorType("float32", (1, 3, 4, 4))}, weights, nodes, ["y"])


@pytest.mark.parametrize(("mean", "moves"), [(1.0, True), (1e6, False)])
def test_a_batch_norm_with_a_large_mean_is_not_moved(mean: float, moves: bool) -> None:
    egraph = _explored(_normalized(mean))
    unions = egraph.database.execute("SELECT count(*) FROM union_log WHERE rule > 0")[0][0]
    assert (unions > 0) is moves


def test_a_mask_of_huge_numbers_is_still_a_bias() -> None:
    mask = np.triu(np.full((4, 4), -1e9, np.float32), 1)
    weights = {"m": Weight(TensorType("float32", (4, 4)), mask)}
    nodes = [Node("matmul", ("a", "b"), ("p",)), Node("add", ("p", "m"), ("y",))]
    square = TensorType("float32", (4, 4))
    egraph = _explored(build_graph("masked", {"a": square, "b": square}, weights, nodes, ["y"]))
    biased = [
        symbol.arity == 3
        for symbol in egraph.catalogue.symbols
        if symbol.op == "matmul" and dict(symbol.attrs).get("act") == "none"
    ]
    assert any(biased)


def test_folding_is_what_onnxruntime_computes() -> None:
    """T5's buckets of positions: in float64, the quotient of logarithms is cut elsewhere."""
    import onnx

    from tests.tensor.operators.onnx_oracle import run_onnx

    x = np.arange(1, 4097, dtype=np.float32) % 128 + 1
    values = {"e": 8.0, "c": float(np.log(np.float32(16))), "n": 8.0}
    constants = {name: np.array(value, np.float32) for name, value in values.items()}
    steps = [
        ("Div", "x", "e", "a"),
        ("Log", "a", "", "l"),
        ("Div", "l", "c", "d"),
        ("Mul", "d", "n", "m"),
    ]
    proto = [
        onnx.helper.make_node(op, [name for name in (a, b) if name], [out])
        for op, a, b, out in steps
    ]
    proto.append(onnx.helper.make_node("Cast", ["m"], ["y"], to=onnx.TensorProto.INT64))
    expected = run_onnx(proto, {"x": x}, {"y": TensorType("int64", x.shape)}, constants, 17)[0]

    nodes = [
        Node(op.lower(), tuple(name for name in (a, b) if name), (out,)) for op, a, b, out in steps
    ]
    nodes += [Node("cast", ("m",), ("i",), {"dtype": "int64"}), Node("add", ("z", "i"), ("y",))]
    data = {"x": x, **constants}
    weights = {n: Weight(TensorType("float32", v.shape), v) for n, v in data.items()}
    graph = build_graph("t5", {"z": TensorType("int64", x.shape)}, weights, nodes, ["y"])
    assert np.array_equal(evaluate_weight_only(graph)["i"], expected)
    exact = (np.log(x.astype(float) / 8) / float(constants["c"]) * 8).astype(np.int64)
    assert (exact != expected).sum() > 100
