"""Rotary positions as one kernel: what it computes, and where it replaces its spelling."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from relational_tensat import Graph, Options, load_model, optimize
from relational_tensat.cost import Configuration
from relational_tensat.formats import to_onnx_model
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.tensor import Array, Node, TensorType, build_graph
from relational_tensat.tensor.operators import get_operator
from tests.cost.fakes import configuration
from tests.graphs import f32
from tests.run.backend.runs import run_for_backend
from tests.run.backend.saved_kernels import saved_kernels
from tests.tiers import nightly

load_backend("onnxruntime")
_BATCH, _ROWS, _HEADS, _SIZE = 2, 5, 3, 8
_INPUTS = {"x": f32(_BATCH, _ROWS, _HEADS * _SIZE), "angles": f32(1, _ROWS, _SIZE // 2)}
KERNELS = [
    configuration("ort_rotary", f32(2, 3, 5, 8), *[f32(2, 5, 4)] * 2),
    configuration("ort_heads_rotary", f32(2, 5, 24), *[f32(2, 5, 4)] * 2, heads=3),
    configuration("ort_heads_rotary", f32(1, 5, 4), *[f32(1, 5, 1)] * 2, heads=2),
]


def spelled(*, dtype: str = "float32", second: str = "angles", is_negated: bool = True) -> Graph:
    """Rotary positions of heads as exports have them, with angles that are computed at inference.

    Args:
        second: what the second half of the cosines is of.
        is_negated: whether the second half of x is.
    """
    inputs = {name: replace(kind, dtype=dtype) for name, kind in _INPUTS.items()}
    inputs["others"] = inputs["angles"]
    heads = {"shape": (_BATCH, _ROWS, _HEADS, _SIZE)}
    half: dict[str, Any] = {"axes": (3,), "steps": (1,)}
    nodes = [
        Node("reshape", ("x",), ("apart",), heads),
        Node("transpose", ("apart",), ("first",), {"perm": (0, 2, 1, 3)}),
        Node("concat", ("angles", second), ("both",), {"axis": 2}),
        Node("concat", ("angles", "angles"), ("twice",), {"axis": 2}),
        Node("slice", ("first",), ("a",), {**half, "starts": (0,), "ends": (_SIZE // 2,)}),
        Node("slice", ("first",), ("b",), {**half, "starts": (_SIZE // 2,), "ends": (_SIZE,)}),
        Node("neg" if is_negated else "abs", ("b",), ("n",)),
        Node("concat", ("n", "a"), ("turned",), {"axis": 3}),
    ]
    for name, angles, factor in (("cos", "both", "first"), ("sin", "twice", "turned")):
        spread = {"shape": (1, 1, _ROWS, _SIZE)}
        nodes.append(Node(name, (angles,), (name,)))
        nodes.append(Node("reshape", (name,), (f"{name}/spread",), spread))
        nodes.append(Node("mul", (factor, f"{name}/spread"), (f"{name}/product",)))
    nodes += [
        Node("add", ("cos/product", "sin/product"), ("sum",)),
        Node("transpose", ("sum",), ("last",), {"perm": (0, 2, 1, 3)}),
        Node("reshape", ("last",), ("y",), {"shape": _INPUTS["x"].shape}),
    ]
    inputs = inputs if second == "others" else {n: inputs[n] for n in _INPUTS}
    return build_graph("rotary", inputs, {}, nodes, ["y"])


def feeds(graph: Graph) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    return {n: rng.normal(size=k.shape).astype(k.dtype) for n, k in graph.inputs.items()}


def run(model: Path | bytes, values: dict[str, Array]) -> Any:
    source = model if isinstance(model, bytes) else str(model)
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, values)[0])


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.op)
def test_a_kernel_computes_what_its_parts_do(kernel: Configuration) -> None:
    kinds = [kind for kind in kernel.inputs if isinstance(kind, TensorType)]
    inputs = dict(zip("xcs", kinds, strict=True))
    attrs = dict(kernel.attrs)
    alone = build_graph("alone", inputs, {}, [Node(kernel.op, tuple(inputs), ("y",), attrs)], ["y"])
    values = feeds(alone)
    model = to_onnx_model(alone)
    assert [node.op_type for node in model.graph.node] == ["RotaryEmbedding"]
    found = run(model.SerializeToString(), values)
    exact = [value.astype(np.float64) for value in values.values()]
    np.testing.assert_allclose(found, get_operator(kernel.op).evaluate(exact, attrs), atol=1e-6)
    older = run(to_onnx_model(alone, 17).SerializeToString(), values)
    np.testing.assert_allclose(older, found, atol=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), [nightly("float32", 1e-6), ("float16", 1e-2)])
def test_the_spelling_is_one_kernel_of_rows(dtype: str, tolerance: float, tmp_path: Path) -> None:
    graph = spelled(dtype=dtype)
    before, after, result = run_for_backend(graph, tmp_path, "layout")
    assert result.cost_after_us < result.cost_before_us
    kernels = saved_kernels(after)
    assert kernels["RotaryEmbedding"] == 1
    assert not kernels["Transpose"] + kernels["Concat"] + kernels["Neg"] + kernels["Slice"]
    values = feeds(graph)
    np.testing.assert_allclose(run(after, values), run(before, values), atol=tolerance)
    model = onnx.load(after)
    assert {node.domain for node in model.graph.node} == {""}
    folder = tmp_path / "again"
    folder.mkdir()
    again = load_model(after)
    assert "ort_heads_rotary" in {node.op for node in again.nodes}
    assert saved_kernels(run_for_backend(again, folder, "layout")[1]) == kernels


def test_a_batch_of_any_size_is_given_its_cosines(tmp_path: Path) -> None:
    model = to_onnx_model(spelled())
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    for weight in model.graph.initializer:
        sizes = onnx.numpy_helper.to_array(weight)
        if sizes.ndim == 1 and sizes[0] == _BATCH and len(sizes) > 2:
            free = np.array([-1, *sizes[1:]])
            weight.CopyFrom(onnx.numpy_helper.from_array(free, weight.name))
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(model, source)
    options = Options.of(
        cost="analytic:cpu", backend="onnxruntime", budget_s=0.0, dims={"batch": 1}
    )
    result = optimize(source, options, output=target)
    assert not result.rejections
    written = onnx.load(target).graph
    assert "RotaryEmbedding" in {node.op_type for node in written.node}
    assert written.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    values = feeds(spelled())
    for batch in (1, 2, 7):
        values["x"] = np.resize(values["x"], (batch, *_INPUTS["x"].shape[1:]))
        np.testing.assert_allclose(run(target, values), run(source, values), atol=1e-6)


@pytest.mark.parametrize("other", [{"second": "others"}, {"is_negated": False}], ids=str)
def test_what_is_another_function_stays_spelled_out(other: dict[str, Any], tmp_path: Path) -> None:
    """Cosines that differ from half to half, and another turn."""
    _, after, _ = run_for_backend(spelled(**other), tmp_path)
    assert saved_kernels(after)["RotaryEmbedding"] == 0


@pytest.mark.parametrize(
    "attributes",
    [{"interleaved": 1}, {"rotary_embedding_dim": 4}],
    ids=lambda each: next(iter(each)),
)
def test_rotary_positions_of_another_kind_stay_opaque(
    attributes: dict[str, Any], tmp_path: Path
) -> None:
    shapes = {"x": (2, 3, 5, 8), "c": (2, 5, 4), "s": (2, 5, 4), "y": (2, 3, 5, 8)}
    if "rotary_embedding_dim" in attributes:
        shapes |= {"c": (2, 5, 2), "s": (2, 5, 2)}
    *inputs, result = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
    node = onnx.helper.make_node("RotaryEmbedding", ["x", "c", "s"], ["y"], **attributes)
    graph = onnx.helper.make_graph([node], "rotary", inputs, [result])
    path = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)]), path)
    assert [node.op for node in load_model(path).nodes] == ["opaque"]
