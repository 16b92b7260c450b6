"""Spellings that onnxruntime has faster kernels for: what it makes of them, and that a run finds them."""

from __future__ import annotations

import math
from pathlib import Path

import onnx
import pytest

from relational_tensat import Graph, Options, UsageError, load_model, optimize
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.tensor import Attrs, Node, build_graph
from tests.graphs import f32, weight
from tests.run.backend.runs import run_for_backend
from tests.run.backend.saved_kernels import saved_kernels

_WINDOW: Attrs = {"stride": (1, 1), "pad": "same"}


def gated() -> Graph:
    """A gate of one number per channel between two convolutions."""
    return build_graph(
        "gated",
        {"x": f32(1, 32, 14, 14)},
        {name: weight(32, 32, 1, 1, seed=n) for n, name in enumerate("abcd")},
        [
            Node("conv", ("x", "a"), ("y",), _WINDOW),
            Node("reduce_mean", ("y",), ("m",), {"axes": (2, 3), "keepdims": True}),
            Node("conv", ("m", "b"), ("g",), _WINDOW),
            Node("sigmoid", ("g",), ("s",)),
            Node("mul", ("s", "y"), ("z",)),
            Node("conv", ("z", "c"), ("u",), _WINDOW),
        ],
        ["u"],
    )


def grouped() -> Graph:
    """Four groups of eight channels between two convolutions."""
    return build_graph(
        "grouped",
        {"x": f32(1, 32, 14, 14)},
        {
            "a": weight(32, 32, 1, 1),
            "b": weight(32, 8, 3, 3, seed=1),
            "c": weight(32, 32, 1, 1, seed=2),
        },
        [
            Node("conv", ("x", "a"), ("y",), _WINDOW),
            Node("conv", ("y", "b"), ("z",), _WINDOW),
            Node("conv", ("z", "c"), ("u",), _WINDOW),
        ],
        ["u"],
    )


def eighteen_channels() -> Graph:
    """A convolution of each of 18 channels between two of one tap."""
    return build_graph(
        "eighteen",
        {"x": f32(1, 32, 14, 14)},
        {
            "a": weight(18, 32, 1, 1),
            "b": weight(18, 1, 3, 3, seed=1),
            "c": weight(16, 18, 1, 1, seed=2),
        },
        [
            Node("conv", ("x", "a"), ("y",), _WINDOW),
            Node("relu", ("y",), ("r",)),
            Node("conv", ("r", "b"), ("z",), _WINDOW),
            Node("conv", ("z", "c"), ("u",), _WINDOW),
        ],
        ["u"],
    )


def parted() -> Graph:
    """Two halves of a convolution's channels, of which one goes on, and then both."""
    return build_graph(
        "parted",
        {"x": f32(1, 32, 14, 14)},
        {name: weight(*shape, seed=n) for n, (name, shape) in enumerate({
            "a": (64, 32, 1, 1), "b": (32, 32, 3, 3), "c": (32, 64, 1, 1),
        }.items())},
        [
            Node("conv", ("x", "a"), ("y",), _WINDOW),
            Node("leaky_relu", ("y",), ("l",), {"alpha": 0.125}),
            Node("split", ("l",), ("p", "q"), {"axis": 1, "sizes": (32, 32)}),
            Node("conv", ("q", "b"), ("r",), _WINDOW),
            Node("concat", ("p", "r"), ("j",), {"axis": 1}),
            Node("conv", ("j", "c"), ("u",), _WINDOW),
        ],
        ["u"],
    )  # fmt: skip


def scaled_and_shifted() -> Graph:
    """A factor and a summand per channel before a convolution."""
    return build_graph(
        "scaled",
        {"x": f32(1, 32, 14, 14)},
        {"s": weight(32, 1, 1), "b": weight(32, 1, 1, seed=1), "w": weight(32, 32, 3, 3, seed=2)},
        [
            Node("mul", ("x", "s"), ("y",)),
            Node("add", ("y", "b"), ("z",)),
            Node("relu", ("z",), ("r",)),
            Node("conv", ("r", "w"), ("u",), _WINDOW),
        ],
        ["u"],
    )


def norm_of_a_sum() -> Graph:
    """A sum that a layer norm alone reads."""
    return build_graph(
        "norm",
        {"x": f32(1, 32, 256), "y": f32(1, 32, 256)},
        {"s": weight(256), "b": weight(256, seed=1)},
        [
            Node("add", ("x", "y"), ("z",)),
            Node("layer_norm", ("z", "s", "b"), ("u",), {"axis": 2, "epsilon": 1e-5}),
        ],
        ["u"],
    )


def products(rows: int) -> Graph:
    """A product with a matrix of 4 MiB, which no cache has when it runs again, and one with a small one."""
    return build_graph(
        "products",
        {"x": f32(1, rows, 2048)},
        {"a": weight(2048, 512), "v": weight(512, seed=1), "b": weight(512, 16, seed=2)},
        [
            Node("matmul", ("x", "a"), ("y",)),
            Node("add", ("y", "v"), ("z",)),
            Node("erf", ("z",), ("e",)),
            Node("matmul", ("e", "b"), ("u",)),
        ],
        ["u"],
    )


def written(graph: Graph, folder: Path) -> tuple[Path, Path]:
    """Return the file of a graph, and that of what a run for the backend makes of it, which is cheaper."""
    source, target, result = run_for_backend(graph, folder)
    assert result.cost_after_us < result.cost_before_us
    return source, target


def test_an_offered_spelling_can_be_left_out_and_no_other(tmp_path: Path) -> None:
    source, _, result = run_for_backend(norm_of_a_sum(), tmp_path)
    assert "ort-layer-norm-of-a-sum" in result.rules_used
    options = Options.of(cost="analytic:cpu", backend="onnxruntime", end_to_end=False)
    without = optimize(source, options.replace(skip=("ort-layer-norm-of-a-sum",)))
    assert without.cost_after_us > result.cost_after_us
    with pytest.raises(UsageError, match="the backend does that by itself"):
        optimize(source, options.replace(skip=("ort-rms-norm",)))
    optimize(source, options.replace(skip=("ort-function-of-halves",)))  # each of that family


def test_an_image_is_gated_in_blocks(tmp_path: Path) -> None:
    before, after = map(saved_kernels, written(gated(), tmp_path))
    assert (before["ReorderInput"], before["ReorderOutput"]) == (2, 3)
    assert (after["ReorderInput"], after["ReorderOutput"], after["Resize"]) == (1, 1, 1)


def test_a_second_run_reads_the_spread_gate_that_the_first_wrote(tmp_path: Path) -> None:
    _, first, result = run_for_backend(gated(), tmp_path)
    graph = load_model(first)
    assert [node.op for node in graph.nodes if node.op in ("opaque", "ort_spread")] == [
        "ort_spread"
    ]
    folder = tmp_path / "again"
    folder.mkdir()
    _, second, again = run_for_backend(graph, folder)
    assert saved_kernels(second) == saved_kernels(first)
    assert again.cost_before_us == again.cost_after_us
    # its own weights take a little less time to come
    assert math.isclose(again.cost_after_us, result.cost_after_us, rel_tol=1e-3)


def test_groups_of_eight_become_groups_of_sixteen(tmp_path: Path) -> None:
    before, after = written(grouped(), tmp_path)
    if saved_kernels(before)["ReorderInput"] == 1:
        pytest.skip("on this processor onnxruntime's blocks are of eight channels")
    shapes = sorted(tuple(tensor.dims) for tensor in onnx.load(after).graph.initializer)
    assert shapes == [(32, 16, 3, 3), (32, 32, 1, 1), (32, 32, 1, 1)]
    assert saved_kernels(before)["ReorderInput"] == 2
    assert saved_kernels(after)["ReorderInput"] == 1


def test_channels_are_parted_in_blocks_and_values_keep_their_names(tmp_path: Path) -> None:
    source, target = written(parted(), tmp_path)
    before, after = saved_kernels(source), saved_kernels(target)
    assert (before["ReorderInput"], before["ReorderOutput"]) == (3, 3)
    assert (after["ReorderInput"], after["ReorderOutput"]) == (1, 1)
    names = {name for node in onnx.load(target).graph.node for name in node.output}
    assert names >= {"p", "q", "r", "j", "u"}


def test_channels_are_filled_up_so_that_all_convolutions_are_in_blocks(tmp_path: Path) -> None:
    _, after = written(eighteen_channels(), tmp_path)
    shapes = sorted(tuple(tensor.dims) for tensor in onnx.load(after).graph.initializer)
    assert shapes == [(16, 32, 1, 1), (32, 1, 3, 3), (32, 32, 1, 1)]
    made = {"ReorderInput": 1, "Conv": 2, "Conv+Relu": 1, "ReorderOutput": 1}
    assert saved_kernels(after) == made


def test_channels_are_scaled_and_shifted_in_blocks(tmp_path: Path) -> None:
    before, after = written(scaled_and_shifted(), tmp_path)
    assert (saved_kernels(before)["Mul"], saved_kernels(before)["Add"]) == (1, 1)
    made = {"ReorderInput": 1, "Conv": 1, "Conv+Relu": 1, "ReorderOutput": 1}
    assert saved_kernels(after) == made


def test_a_norm_of_a_sum_stays_two_kernels(tmp_path: Path) -> None:
    before, after = written(norm_of_a_sum(), tmp_path)
    assert saved_kernels(before) == {"SkipLayerNormalization": 1}
    assert saved_kernels(after) == {"Sum": 1, "LayerNormalization": 1}


def test_a_product_with_a_large_matrix_becomes_a_convolution(tmp_path: Path) -> None:
    before, after = written(products(8), tmp_path)
    assert saved_kernels(before)["Conv"] == 0
    made = saved_kernels(after)
    assert [made[name] for name in ("ReorderInput", "Conv", "ReorderOutput", "MatMul")] == [1] * 4


def test_what_is_offered_the_target_does_not_do_itself() -> None:
    backend = load_backend("onnxruntime")
    own = {rule.name for rule in backend.rules(has_fixed_shapes=True)}
    offered = {rule.name for rule in backend.rules(has_fixed_shapes=True, offered=True)}
    assert not own & offered
    assert "ort-gate-in-blocks" in offered
    open_shapes = backend.rules(has_fixed_shapes=False, offered=True)
    assert {rule.name.partition("[")[0] for rule in open_shapes} == {
        "ort-attention",
        "ort-attention-of-groups",
        "ort-attention-of-rows",
        "ort-attention-of-windows",
        "ort-attention-with-finite-mask",
        "ort-cast-of-halves",
        "ort-channels-filled-up",
        "ort-channels-of-biased-filled-up",
        "ort-function-of-halves",
        "ort-groups-of-eight",
        "ort-guarded-attention",
        "ort-keys-of-scaled-product-transposed-last",
        "ort-keys-transposed-last",
        "ort-layer-norm-of-a-sum",
        "ort-mask-of-choice",
        "ort-masked-attention-of-groups",
        "ort-masked-attention-of-rows",
        "ort-transpose-without-ones",
        "ort-part-of-biased-convolution",
        "ort-part-of-convolution",
        "ort-part-of-leaky-relu",
        "ort-part-of-silu",
        "ort-product-as-convolution",
        "ort-product-and-bias-as-convolution",
        "ort-rotary",
        "ort-rotary-of-rows",
        "ort-rows-and-columns-of-heads",
        "ort-scaled-and-shifted-in-blocks",
        "ort-windows-and-biases-for-parts-of-channels",
        "ort-windows-for-parts-of-channels",
    }
