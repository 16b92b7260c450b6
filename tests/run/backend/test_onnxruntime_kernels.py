"""What the backend's rules say that onnxruntime runs is what it says itself, for small graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relational_tensat import load_profile, save_model
from relational_tensat.cost import as_source
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.run.backend_costs import BackendCosts
from relational_tensat.tensor import Attrs, Graph, Node, TensorType, Weight, build_graph
from tests.graphs import f32, weight
from tests.run.backend.saved_kernels import (
    disagreement,
    predicted_kernels,
    saved_kernels,
)

_IMAGE = f32(1, 32, 14, 14)
_WINDOW: Attrs = {"stride": (1, 1), "pad": "same"}


def number(value: float) -> Weight:
    return Weight(f32(), np.float32(value))


def index(value: int) -> Weight:
    return Weight(TensorType("int64", ()), np.array(value))


def convolutions() -> Graph:
    """A residual block: activations, a sum and a norm on the way out of convolutions."""
    weights = {f"w{i}": weight(32, 32, 3, 3, seed=i) for i in range(4)}
    weights |= {f"v{i}": weight(32, seed=i) for i in range(4)} | {
        "variance": Weight(f32(32), np.ones(32, np.float32))
    }
    return build_graph(
        "convolutions",
        {"x": _IMAGE},
        weights,
        [
            Node("conv", ("x", "w0", "v0"), ("a",), _WINDOW),
            Node("relu", ("a",), ("b",)),
            Node("conv", ("b", "w1"), ("c",), _WINDOW),
            Node("batch_norm", ("c", "v0", "v1", "v2", "variance"), ("d",), {"epsilon": 1e-5}),
            Node("sigmoid", ("d",), ("e",)),
            Node("conv", ("e", "w2", "v1"), ("f",), _WINDOW),
            Node("add", ("f", "b"), ("g",)),
            Node("relu", ("g",), ("h",)),
            Node("conv", ("h", "w3", "v2"), ("i",), _WINDOW),
            Node("sigmoid", ("i",), ("j",)),
            Node("mul", ("i", "j"), ("y",)),
        ],
        ["y"],
    )


def gelu_amid_convolutions() -> Graph:
    """As in ConvNeXt, and where products are convolutions: it is one kernel of blocks."""
    return build_graph(
        "gelu",
        {"x": _IMAGE},
        {"w": weight(64, 32, 1, 1), "u": weight(32, 64, 1, 1)},
        [
            Node("conv", ("x", "w"), ("a",), _WINDOW),
            Node("gelu", ("a",), ("b",)),
            Node("conv", ("b", "u"), ("c",), _WINDOW),
            Node("gelu", ("c",), ("d",)),
            Node("conv", ("d", "w"), ("y",), _WINDOW),
        ],
        ["y"],
    )


def norm_behind_a_concatenation() -> Graph:
    """As in DenseNet: no convolution takes the norm in, so it is one itself."""
    return build_graph(
        "dense",
        {"x": _IMAGE},
        {
            "w": weight(32, 32, 3, 3),
            "u": weight(32, 64, 1, 1),
            **{name: weight(64) for name in "sbm"},
            "v": Weight(f32(64), np.ones(64, np.float32)),
        },
        [
            Node("conv", ("x", "w"), ("a",), _WINDOW),
            Node("relu", ("a",), ("b1",)),
            Node("conv", ("b1", "w"), ("c",), _WINDOW),
            Node("concat", ("b1", "c"), ("d",), {"axis": 1}),
            Node("batch_norm", ("d", "s", "b", "m", "v"), ("e",), {"epsilon": 1e-5}),
            Node("relu", ("e",), ("f",)),
            Node("conv", ("f", "u"), ("y",), _WINDOW),
        ],
        ["y"],
    )


def encoder_layer() -> Graph:
    """Products with biases, a scale, GELU as it is spelled out, a norm of a sum."""
    weights = {
        "w1": weight(64, 256),
        "v1": weight(256),
        "w2": weight(256, 64, seed=1),
        "v2": weight(64),
        "s": weight(64),
        "b": weight(64),
    }
    weights |= {
        "root": number(2**0.5),
        "one": number(1),
        "half": number(0.5),
        "eighth": number(0.125),
    }
    return build_graph(
        "encoder",
        {"x": f32(1, 16, 64), "q": f32(1, 16, 64), "k": f32(1, 64, 16)},
        weights,
        [
            Node("matmul", ("q", "k"), ("scores",)),
            Node("mul", ("scores", "eighth"), ("scaled",)),
            Node("softmax", ("scaled",), ("p",), {"axis": 2}),
            Node("matmul", ("p", "x"), ("o",)),
            Node("matmul", ("o", "w1"), ("a",)),
            Node("add", ("a", "v1"), ("h",)),
            Node("div", ("h", "root"), ("c",)),
            Node("erf", ("c",), ("d",)),
            Node("add", ("d", "one"), ("e",)),
            Node("mul", ("h", "e"), ("f",)),
            Node("mul", ("f", "half"), ("g",)),
            Node("matmul", ("g", "w2"), ("i",)),
            Node("add", ("v2", "i"), ("j",)),
            Node("add", ("j", "o"), ("r",)),
            Node("layer_norm", ("r", "s", "b"), ("y",), {"axis": 2, "epsilon": 1e-5}),
        ],
        ["y"],
    )


def gated_decoder() -> Graph:
    """SiLU, a root-mean-square norm as it is spelled out, halves of a tensor, a transposed factor."""
    weights = {
        "w": weight(64, 64),
        "s": weight(64),
        "two": number(2),
        "one": number(1),
        "epsilon": number(1e-6),
    }
    return build_graph(
        "decoder",
        {"z": f32(1, 16, 64), "k": f32(1, 16, 64)},
        weights,
        [
            Node("add", ("z", "k"), ("x",)),
            Node("pow", ("x", "two"), ("a",)),
            Node("reduce_mean", ("a",), ("b",), {"axes": (2,), "keepdims": True}),
            Node("add", ("b", "epsilon"), ("c",)),
            Node("sqrt", ("c",), ("d",)),
            Node("div", ("one", "d"), ("e",)),
            Node("mul", ("x", "e"), ("f",)),
            Node("mul", ("s", "f"), ("n",)),
            Node("matmul", ("n", "w"), ("h",)),
            Node("sigmoid", ("h",), ("i",)),
            Node("mul", ("h", "i"), ("j",)),
            Node(
                "slice",
                ("j",),
                ("l",),
                {"axes": (2,), "starts": (0,), "ends": (32,), "steps": (1,)},
            ),
            Node(
                "slice",
                ("j",),
                ("r",),
                {"axes": (2,), "starts": (32,), "ends": (64,), "steps": (1,)},
            ),
            Node("concat", ("r", "l"), ("t",), {"axis": 2}),
            Node("transpose", ("k",), ("u",), {"perm": (0, 2, 1)}),
            Node("matmul", ("t", "u"), ("y",)),
        ],
        ["y"],
    )


def mlp() -> Graph:
    """Matrices: product, bias and activation are one."""
    return build_graph(
        "mlp",
        {"x": f32(8, 32)},
        {"w": weight(32, 32), "v": weight(32)},
        [
            Node("matmul", ("x", "w"), ("a",)),
            Node("add", ("a", "v"), ("b",)),
            Node("relu", ("b",), ("c",)),
            Node("matmul", ("c", "w"), ("d",)),
            Node("relu", ("d",), ("y",)),
        ],
        ["y"],
    )


def images_in_blocks() -> Graph:
    """Few channels, depthwise, gates, a sum, pools, images side by side, a norm over channels, a factor."""
    depthwise = {"stride": (1, 1), "pad": "same"}
    means = {"axes": (2, 3), "keepdims": True}
    pool = {"kernel": (3, 3), "stride": (1, 1), "pad": "same"}
    return build_graph(
        "blocks",
        {"x": f32(1, 3, 14, 14)},
        {
            "w0": weight(32, 3, 3, 3),
            "w1": weight(32, 1, 3, 3),
            "w2": weight(32, 32, 1, 1, seed=2),
            "w3": weight(32, 32, 1, 1, seed=3),
            "w4": weight(16, 96, 3, 3),
            "w5": weight(18, 16, 1, 1),
            "gamma": weight(32, 1, 1),
            "s": weight(16),
            "v": weight(16, seed=1),
        },
        [
            Node("conv", ("x", "w0"), ("a",), _WINDOW),
            Node("hard_swish", ("a",), ("b",)),
            Node("conv", ("b", "w1"), ("c",), depthwise),
            Node("reduce_mean", ("c",), ("d",), means),
            Node("conv", ("d", "w2"), ("e",), _WINDOW),
            Node("hard_sigmoid", ("e",), ("f",), {"alpha": 0.25, "beta": 0.5}),
            Node("mul", ("c", "f"), ("g",)),
            Node("conv", ("g", "w3"), ("h",), _WINDOW),
            Node("mul", ("h", "gamma"), ("i",)),
            Node("add", ("b", "i"), ("j",)),
            Node("max_pool", ("j",), ("k",), pool),
            Node("avg_pool", ("j",), ("l",), pool),
            Node("concat", ("j", "k", "l"), ("m",), {"axis": 1}),
            Node("conv", ("m", "w4"), ("n",), _WINDOW),
            Node("transpose", ("n",), ("o",), {"perm": (0, 2, 3, 1)}),
            Node("layer_norm", ("o", "s", "v"), ("p",), {"axis": 3, "epsilon": 1e-5}),
            Node("transpose", ("p",), ("q",), {"perm": (0, 3, 1, 2)}),
            Node("conv", ("q", "w5"), ("r",), _WINDOW),
            Node("sigmoid", ("r",), ("t",)),
            Node("mul", ("r", "t"), ("y",)),
        ],
        ["y"],
    )


def many_images_in_blocks() -> Graph:
    """As in DenseNet: seven images side by side are more than an e-node has operands."""
    growing = [Node("conv", (f"a{i}", f"w{i}"), (f"a{i + 1}",), _WINDOW) for i in range(7)]
    joined = Node("concat", tuple(f"a{i}" for i in range(1, 8)), ("b",), {"axis": 1})
    return build_graph(
        "many",
        {"a0": _IMAGE},
        {f"w{i}": weight(32, 32, 1, 1, seed=i) for i in range(7)} | {"u": weight(32, 224, 1, 1)},
        [*growing, joined, Node("conv", ("b", "u"), ("y",), _WINDOW)],
        ["y"],
    )


def pieces() -> Graph:
    """Three slices that are all of a value, and two gathers that are all of one of them."""
    bounds = [(0, 2), (2, 5), (5, 8)]
    cuts: list[Attrs] = [
        {"axes": (1,), "starts": (b,), "ends": (e,), "steps": (1,)} for b, e in bounds
    ]
    return build_graph(
        "pieces",
        {"x": f32(4, 8, 6)},
        {"zero": index(0), "last": index(-1)},
        [
            Node("relu", ("x",), ("r",)),
            *(Node("slice", ("r",), (f"s{i}",), cut) for i, cut in enumerate(cuts)),
            Node("gather", ("s0", "last"), ("g1",), {"axis": 1}),
            Node("gather", ("s0", "zero"), ("g0",), {"axis": 1}),
            Node("add", ("g0", "g1"), ("g",)),
            Node("add", ("s1", "s2"), ("s",)),
        ],
        ["g", "s"],
    )


@pytest.mark.parametrize(
    "make",
    [
        pieces,
        many_images_in_blocks,
        convolutions,
        gelu_amid_convolutions,
        norm_behind_a_concatenation,
        encoder_layer,
        gated_decoder,
        mlp,
        images_in_blocks,
    ],
)
def test_the_kernels_are_those_of_the_model_that_onnxruntime_saves(
    make: Callable[[], Graph], tmp_path: Path
) -> None:
    graph = make()
    save_model(graph, tmp_path / "model.onnx")
    backend = load_backend("onnxruntime")
    rules = backend.rules(has_fixed_shapes=True)
    costs = BackendCosts(as_source(load_profile("cpu")), backend, rules)
    predicted = predicted_kernels(costs.as_run(graph))
    assert disagreement(predicted, saved_kernels(tmp_path / "model.onnx")) == {}
    assert predicted["ReorderInput"] + predicted["ReorderOutput"] < len(graph.nodes) / 2


def test_computed_filters_keep_an_image_out_of_blocks(tmp_path: Path) -> None:
    graph = build_graph(
        "computed",
        {"x": _IMAGE, "k": f32(32, 1, 1, 1)},
        {"w": weight(32, 32, 3, 3)},
        [
            Node("conv", ("x", "w"), ("a",), _WINDOW),
            Node("mul", ("w", "k"), ("u",)),
            Node("conv", ("a", "u"), ("y",), _WINDOW),
        ],
        ["y"],
    )
    save_model(graph, tmp_path / "model.onnx")
    backend = load_backend("onnxruntime")
    rules = backend.rules(has_fixed_shapes=True)
    costs = BackendCosts(as_source(load_profile("cpu")), backend, rules)
    saved = saved_kernels(tmp_path / "model.onnx")
    assert disagreement(predicted_kernels(costs.as_run(graph)), saved) == {}
    assert saved == {"ReorderInput": 1, "Conv": 2, "ReorderOutput": 1, "Mul": 1}
