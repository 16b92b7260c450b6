"""Attention as one kernel: what it computes, and where it replaces its spelling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from relational_tensat import Graph, load_model
from relational_tensat.cost import Configuration
from relational_tensat.formats import to_onnx_model
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.tensor import Array, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.operators import get_operator
from tests.cost.fakes import configuration
from tests.graphs import f32
from tests.run.backend.runs import run_for_backend
from tests.run.backend.saved_kernels import saved_kernels
from tests.tiers import nightly

load_backend("onnxruntime")
_HEADS, _ROWS, _SIZE = 4, 8, 16


def f16(*shape: int) -> TensorType:
    return TensorType("float16", shape)


_INPUT = f32(1, _ROWS, _HEADS * _SIZE)
_FEEDS = {
    name: np.random.default_rng(seed).standard_normal(_INPUT.shape).astype(np.float32)
    for seed, name in enumerate("qkv")
}
_SCALED: dict[str, Any] = {"scale": 0.25}
KERNELS = [
    configuration("ort_attention", f32(2, 3, 5, 8), f32(2, 3, 7, 8), f32(2, 3, 7, 6), **_SCALED),
    configuration("ort_attention", *[f32(2, 3, 5, 8)] * 3, f32(1, 3, 5, 5), guarded=True),
    configuration("ort_attention", f32(2, 6, 5, 8), *[f32(2, 3, 7, 8)] * 2, **_SCALED),
    configuration("ort_heads_attention", *[f32(2, 5, 24)] * 3, heads=3, **_SCALED),
    configuration("ort_heads_attention", f32(2, 5, 24), *[f32(2, 7, 12)] * 2, heads=4),
    configuration("ort_attention", *[f16(2, 3, 5, 8)] * 3, f16(1, 3, 5, 5), guarded=True),
    configuration("ort_heads_attention", *[f16(2, 5, 24)] * 3, heads=3, **_SCALED),
    configuration(
        "ort_heads_attention", *[f32(2, 5, 24)] * 3, f32(2, 1, 5, 5), heads=3, guarded=True
    ),
]  # fmt: skip


def spelled(
    *,
    guarded: bool,
    lowest: float | None,
    bias: Array | None = None,
    scale: float = 0.25,
    dtype: str = "float32",
) -> Graph:
    """Attention of rows as exports of today have it.

    Args:
        lowest: what is added where the mask, an input, is false; None: what is added is an input.
        bias: a weight that is added where it is true; None: 0 is.
        scale: of the scores.
    """

    def heads(name: str, *perm: int) -> list[Node]:
        shape = {"shape": (1, _ROWS, _HEADS, _SIZE)}
        apart = Node("reshape", (name,), (f"{name}/heads",), shape)
        return [apart, Node("transpose", (f"{name}/heads",), (f"{name}/first",), {"perm": perm})]

    nodes = [*heads("q", 0, 2, 1, 3), *heads("k", 0, 2, 3, 1), *heads("v", 0, 2, 1, 3)]
    weights = {"zero": Weight(TensorType(dtype, ()), np.zeros((), dtype))}
    if bias is not None:
        weights["bias"] = Weight(f32(*bias.shape), bias)
    mask = TensorType(dtype if lowest is None else "bool", (1, 1, _ROWS, _ROWS))
    if lowest is not None:
        weights["lowest"] = Weight(TensorType(dtype, ()), np.array(lowest, dtype))
        nodes.append(
            Node("where", ("mask", "zero" if bias is None else "bias", "lowest"), ("added",))
        )
    nodes += [
        Node("matmul", ("q/first", "k/first"), ("scores",)),
        Node("smul", ("scores",), ("scaled",), {"value": scale}),
        Node("add", ("scaled", "mask" if lowest is None else "added"), ("masked",)),
        Node("softmax", ("masked",), ("soft",), {"axis": 3}),
    ]
    if guarded:
        nodes.append(Node("is_nan", ("soft",), ("nan",)))
        nodes.append(Node("where", ("nan", "zero", "soft"), ("kept",)))
    nodes += [
        Node("matmul", ("kept" if guarded else "soft", "v/first"), ("product",)),
        Node("transpose", ("product",), ("last",), {"perm": (0, 2, 1, 3)}),
        Node("reshape", ("last",), ("y",), {"shape": _INPUT.shape}),
    ]
    inputs = {**dict.fromkeys("qkv", TensorType(dtype, _INPUT.shape)), "mask": mask}
    return build_graph("attention", inputs, weights, nodes, ["y"])


def written(graph: Graph, folder: Path) -> tuple[Path, Path]:
    """Return the file of a graph, and that of what a run for the backend makes of it."""
    return run_for_backend(graph, folder)[:2]


def run(path: Path | bytes, feeds: dict[str, Array]) -> Any:
    session = onnxruntime.InferenceSession(
        path if isinstance(path, bytes) else str(path), providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, feeds)[0])


def masked(*rows: int) -> Array:
    """Return what keys each query may see: itself and those before it, but none in some rows."""
    mask = np.tril(np.ones((1, 1, _ROWS, _ROWS), bool))
    mask[:, :, list(rows)] = False
    return mask


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.op)
def test_a_kernel_computes_what_its_parts_do(kernel: Configuration) -> None:
    kinds = [kind for kind in kernel.inputs if isinstance(kind, TensorType)]
    names = [f"x{number}" for number in range(len(kinds))]
    attrs = dict(kernel.attrs)
    rng = np.random.default_rng(1)
    values = [rng.standard_normal(kind.shape).astype(kind.dtype) for kind in kinds]
    if attrs["guarded"]:
        values[3][..., 0, :] = -np.inf  # no key at all
        values[3][..., 1, 2:] = -np.inf
    inputs = dict(zip(names, kinds, strict=True))
    alone = build_graph("alone", inputs, {}, [Node(kernel.op, tuple(names), ("y",), attrs)], ["y"])
    model = to_onnx_model(alone)
    is_half = kinds[0].dtype == "float16"
    casts = ["Cast"] * is_half
    written_ops = [node.op_type for node in model.graph.node]
    assert written_ops == [*casts * len(kinds), "Attention", *casts]
    tolerance = 2e-3 if is_half else 1e-5
    found = run(model.SerializeToString(), dict(zip(names, values, strict=True)))
    with np.errstate(invalid="ignore"):
        expected = get_operator(kernel.op).evaluate([v.astype(np.float64) for v in values], attrs)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, atol=tolerance)
    older = to_onnx_model(alone, 17)
    spelling = run(older.SerializeToString(), dict(zip(names, values, strict=True)))
    np.testing.assert_allclose(spelling, expected, atol=tolerance)


def test_attention_guarded_against_masked_rows_is_one_kernel_with_zeros_there(
    tmp_path: Path,
) -> None:
    before, after = written(spelled(guarded=True, lowest=-np.inf), tmp_path)
    assert saved_kernels(after) == {"Attention": 1, "Where": 1}
    feeds = {**_FEEDS, "mask": masked(2, 5)}
    found = run(after, feeds)
    np.testing.assert_allclose(found, run(before, feeds), atol=1e-5)
    assert not found[0, [2, 5]].any()
    assert found[0, [0, 1, 3, 4, 6, 7]].all()


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("lowest", [-30.0, -3e38, float(np.finfo(np.float32).min)])
def test_a_row_that_is_masked_by_finite_numbers_has_equal_weights(
    lowest: float, guarded: bool, tmp_path: Path
) -> None:
    """Also by the lowest of them, which onnxruntime's kernel takes for -inf."""
    before, after = written(spelled(guarded=guarded, lowest=lowest), tmp_path)
    assert saved_kernels(after) == {"Attention": 1, "Where": 1}
    feeds = {**_FEEDS, "mask": masked(2)}
    found = run(after, feeds)
    np.testing.assert_allclose(found, run(before, feeds), atol=1e-5)
    assert found[0, 2].all()


@pytest.mark.parametrize(
    ("lowest", "guarded"), [(-np.inf, True), (-65504.0, True), nightly(-65504.0, False)]
)
def test_attention_of_halves_is_one_kernel_of_floats(
    lowest: float, guarded: bool, tmp_path: Path
) -> None:
    """As which onnxruntime computes its spelling: scores beside the lowest number are not lost."""
    graph = spelled(guarded=guarded, lowest=lowest, dtype="float16")
    before, after = written(graph, tmp_path)
    kernels = saved_kernels(after)
    assert kernels["Attention"] == 1
    assert not kernels["MatMul"] + kernels["FusedMatMul"] + kernels["Exp"]
    feeds = {name: values.astype(np.float16) for name, values in _FEEDS.items()}
    found = run(after, {**feeds, "mask": masked(2, 5)})
    assert found.dtype == np.float16
    spelling = run(before, {**feeds, "mask": masked(2, 5)})
    np.testing.assert_allclose(found, spelling, atol=2e-3)
    assert found[0, [2, 5]].any() == np.isfinite(lowest)


def test_a_mask_of_halves_that_may_be_infinite_stays_nan_without_a_guard(tmp_path: Path) -> None:
    _, after = written(spelled(guarded=False, lowest=-np.inf, dtype="float16"), tmp_path)
    assert saved_kernels(after)["Attention"] == 0


def test_masks_have_no_lowest_number() -> None:
    infinite, lowest = float("inf"), float(np.finfo(np.float32).min)
    values = np.array([-infinite, lowest, -2e37, -1.0, 0.0, 5.0, infinite], np.float32)
    expected = np.array([-infinite, 0.99 * lowest, *values[2:]], np.float32)
    kind = f32(*values.shape)
    alone = build_graph("mask", {"x": kind}, {}, [Node("ort_mask", ("x",), ("y",))], ["y"])
    found = run(to_onnx_model(alone).SerializeToString(), {"x": values})
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    known = get_operator("ort_mask").evaluate_typed([values.astype(np.float64)], (kind,), {})
    np.testing.assert_allclose(known, expected, rtol=1e-3)


@pytest.mark.parametrize("lowest", [-np.inf, None])
def test_what_may_mask_whole_rows_stays_nan_without_a_guard(
    lowest: float | None, tmp_path: Path
) -> None:
    before, after = written(spelled(guarded=False, lowest=lowest), tmp_path)
    assert saved_kernels(after)["Attention"] == 0
    mask: Array = masked(2)
    if lowest is None:
        mask = np.where(mask, 0, -np.inf).astype(np.float32)
    for path in (before, after):
        found = run(path, {**_FEEDS, "mask": mask})
        assert np.isnan(found[0, 2]).all()
        assert np.isfinite(found[0, 3:]).all()


def test_a_bias_may_mask_whole_rows_beside_a_finite_mask(tmp_path: Path) -> None:
    bias = np.zeros((1, 1, _ROWS, _ROWS), np.float32)
    bias[:, :, 2] = -np.inf
    before, after = written(spelled(guarded=False, lowest=-3e38, bias=bias), tmp_path)
    assert saved_kernels(after)["Attention"] == 0
    feeds = {**_FEEDS, "mask": np.ones(bias.shape, np.bool_)}
    for path in (before, after):
        assert np.isnan(run(path, feeds)[0, 2]).all()


def test_the_kernel_leaves_nan_of_queries_and_keys_where_the_spelled_guard_hides_it(
    tmp_path: Path,
) -> None:
    """Both guard rows without any key; what NaN of a row is else is rules-and-numbers.md's."""
    before, after = written(spelled(guarded=True, lowest=-np.inf), tmp_path)
    query = _FEEDS["q"].copy()
    query[0, 3, 0] = np.nan
    feeds = {**_FEEDS, "q": query, "mask": masked(2)}
    spelling, kernel = run(before, feeds), run(after, feeds)
    assert not spelling[0, 2].any() and not kernel[0, 2].any()
    hidden = np.isnan(kernel)
    assert hidden.any() and hidden[0, 3].any() and not hidden[0, [0, 1, 2, 4]].any()
    assert not spelling[hidden].any()
    np.testing.assert_allclose(kernel[~hidden], spelling[~hidden], atol=1e-5)


@pytest.mark.parametrize("scale", [-0.25, 0.0])
def test_a_scale_that_is_not_above_zero_stays_spelled_out(scale: float, tmp_path: Path) -> None:
    """ONNX's Attention takes its root; nothing is built that a comparison had to refuse."""
    graph = spelled(guarded=True, lowest=-np.inf, scale=scale)
    _, after, result = run_for_backend(graph, tmp_path)
    assert saved_kernels(after)["Attention"] == 0
    assert not result.rejections


def test_the_written_operator_is_of_the_default_set(tmp_path: Path) -> None:
    model = onnx.load(written(spelled(guarded=True, lowest=-np.inf), tmp_path)[1])
    assert {node.domain for node in model.graph.node} == {""}
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 23)]


@pytest.mark.parametrize(("guarded", "lowest"), [(True, -np.inf), nightly(False, -3e38)])
def test_a_second_run_finds_the_kernels_that_the_first_wrote(
    guarded: bool, lowest: float, tmp_path: Path
) -> None:
    _, first, result = run_for_backend(spelled(guarded=guarded, lowest=lowest), tmp_path)
    folder = tmp_path / "again"
    folder.mkdir()
    graph = load_model(first)
    assert [node.op for node in graph.nodes if node.op == "opaque"] == []
    _, second, again = run_for_backend(graph, folder)
    assert saved_kernels(second) == saved_kernels(first)
    assert again.cost_before_us == again.cost_after_us
    # the caches have the more of what a kernel needs, the less time the model that is read takes
    assert again.cost_after_us == pytest.approx(result.cost_after_us, rel=0.01)
    feeds = {**_FEEDS, "mask": masked(2)}
    np.testing.assert_array_equal(run(second, feeds), run(first, feeds))


@pytest.mark.parametrize(
    "attributes",
    [{"is_causal": 1}, {"softcap": 5.0}, {"softmax_precision": 1}, {"past": True}, {"scale": -0.5}],
    ids=lambda attributes: next(iter(attributes)),
)
def test_attention_that_is_another_stays_opaque(attributes: dict[str, Any], tmp_path: Path) -> None:
    attributes = dict(attributes)
    names = ["q", "k", "v"] + ["", "k", "v"] * bool(attributes.pop("past", False))
    shape = (1, _HEADS, _ROWS, _SIZE)
    *inputs, result = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "qkvy"
    ]
    node = onnx.helper.make_node("Attention", names, ["y"], **attributes)
    graph = onnx.helper.make_graph([node], "attention", inputs, [result])
    path = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)]), path)
    assert [node.op for node in load_model(path).nodes] == ["opaque"]
