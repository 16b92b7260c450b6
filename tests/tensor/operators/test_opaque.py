"""Opaque ONNX nodes, run by onnxruntime."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import onnx
import pytest

from relational_tensat.base.errors import InputError, MissingDependencyError, ShapeError, UsageError
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators import get_operator
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_matmul import f32


def attrs_of(
    proto: Any, out_types: tuple[TensorType, ...], opset: int = 20, domain: str = ""
) -> dict[str, Any]:
    return get_operator("opaque").normalize(
        {
            "op_type": proto.op_type,
            "domain": domain,
            "opset": opset,
            "payload": base64.b64encode(proto.SerializeToString()).decode("ascii"),
            "out_types": tuple((kind.dtype, kind.shape) for kind in out_types),
        }
    )


def run(proto: Any, values: list[Any], types: list[Any], out_types: Any, **options: Any) -> Any:
    attrs = attrs_of(proto, out_types, **options)
    return get_operator("opaque").evaluate_typed(values, tuple(types), attrs)


def leaky(**attributes: Any) -> Any:
    return onnx.helper.make_node("LeakyRelu", ["i0"], ["o0"], **attributes)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_floats_of_any_width(dtype: str) -> None:
    kind = TensorType(dtype, (2, 3))
    x = np.array([[-1.0, 2.0, -4.0], [0.5, 0.0, -0.25]])
    (result,) = run(leaky(alpha=0.5), [x], [kind], (kind,))
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, np.where(x < 0, x / 2, x))


def test_several_outputs_and_a_missing_input() -> None:
    top = onnx.helper.make_node("TopK", ["i0", "i1"], ["o0", "o1"])
    types = [f32(5), TensorType("int64", (1,))]
    out = (f32(2), TensorType("int64", (2,)))
    values, indices = run(top, [np.array([3.0, 1, 4, 1, 5]), np.array([2])], types, out)
    assert (values.tolist(), indices.tolist()) == ([5.0, 4.0], [4, 2])
    assert indices.dtype == np.int64
    resize = onnx.helper.make_node("Resize", ["i0", "", "i1"], ["o0"], mode="nearest")
    types = [f32(1, 1, 2), f32(3)]
    (result,) = run(resize, [np.ones((1, 1, 2)), np.array([1.0, 1, 2])], types, (f32(1, 1, 4),))
    assert result.shape == (1, 1, 4)


def test_subgraphs_use_further_operands() -> None:
    def branch(op_type: str) -> Any:
        name = f"{op_type}_out"
        inner = onnx.helper.make_node(op_type, ["i1"], [name])
        info = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT16, [2])
        return onnx.helper.make_graph([inner], op_type, [], [info])

    choose = onnx.helper.make_node(
        "If", ["i0"], ["o0"], then_branch=branch("Neg"), else_branch=branch("Abs")
    )
    types = [TensorType("bool", ()), TensorType("float16", (2,))]
    for condition, expected in ((True, [1.0, -2.0]), (False, [1.0, 2.0])):
        operands = [np.array(condition), np.array([-1.0, 2.0])]
        (result,) = run(choose, operands, types, (types[1],), opset=16)
        assert result.tolist() == expected


def test_operators_of_other_domains() -> None:
    proto = onnx.helper.make_node(
        "FusedMatMul", ["i0", "i1"], ["o0"], transB=1, domain="com.microsoft"
    )
    a, b = drawn((2, 3), 1), drawn((4, 3), 2)
    (result,) = run(
        proto, [a, b], [f32(2, 3), f32(4, 3)], (f32(2, 4),), opset=1, domain="com.microsoft"
    )
    np.testing.assert_allclose(result, a @ b.T, rtol=1e-5)


def test_unknown_operators_cannot_be_run() -> None:
    proto = onnx.helper.make_node("Nonesuch", ["i0"], ["o0"], domain="my.domain")
    attrs = attrs_of(proto, (f32(2),), opset=1, domain="my.domain")
    assert not get_operator("opaque").can_evaluate((f32(2),), attrs)
    with pytest.raises(InputError, match="onnxruntime cannot run Nonesuch"):
        get_operator("opaque").evaluate_typed([np.zeros(2)], (f32(2),), attrs)


def test_values_that_an_operator_does_not_take() -> None:
    top = onnx.helper.make_node("TopK", ["i0", "i1"], ["o0", "o1"])
    types = [f32(2), TensorType("int64", (1,))]
    with pytest.raises(InputError, match="onnxruntime cannot run TopK"):
        run(top, [np.zeros(2), np.array([7])], types, (f32(7), TensorType("int64", (7,))))


@pytest.mark.parametrize("payload", ["bm90IGEgbm9kZQ==", "%%%"])
def test_malformed_payloads(payload: str) -> None:
    attrs = {**attrs_of(leaky(), (f32(2),)), "payload": payload}
    with pytest.raises(InputError, match="malformed payload"):
        get_operator("opaque").evaluate_typed([np.zeros(2)], (f32(2),), attrs)


def test_without_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    attrs = attrs_of(leaky(alpha=0.125), (f32(2),))
    with pytest.raises(MissingDependencyError, match=r"relational-tensat\[onnx\]"):
        get_operator("opaque").evaluate_typed([np.zeros(2)], (f32(2),), attrs)
    assert not get_operator("opaque").can_evaluate((f32(2),), attrs)


def test_types_are_needed() -> None:
    with pytest.raises(UsageError, match="evaluate_typed"):
        get_operator("opaque").evaluate([np.zeros(2)], attrs_of(leaky(), (f32(2),)))


@pytest.mark.parametrize("out_types", [(), 3, "ab", (("float32",),), (("float32", "x"),)])
def test_malformed_output_types(out_types: Any) -> None:
    attrs = {**attrs_of(leaky(), (f32(2),)), "out_types": out_types}
    with pytest.raises(ShapeError, match="element type, shape"):
        get_operator("opaque").check((f32(2),), attrs)


@pytest.mark.parametrize(
    ("op_type", "shapes", "result", "flops"),
    [
        ("LSTM", [(7, 2, 8), (1, 16, 8), (1, 16, 4)], (7, 1, 2, 4), 2 * 14 * (16 * 8 + 16 * 4)),
        ("GRU", [(7, 2, 8), (2, 12, 8), (2, 12, 4)], (7, 2, 2, 4), 2 * 14 * 2 * (12 * 8 + 12 * 4)),
        ("STFT", [(1, 800)], (1, 9, 129, 2), 5 * 9 * 129 * 2 * 8),
        ("Resize", [(1, 3, 8, 8)], (1, 3, 16, 16), 16 * 3 * 256),
        ("NonMaxSuppression", [(1, 100, 4), (1, 2, 100)], (5, 3), 8 * 100 * 100),
        ("MatMulNBits", [(2, 3, 64), (32, 2, 16)], (2, 3, 32), 2 * 6 * 32 * 64),
        ("QMoE", [(5, 8), (5, 4), (4, 16, 4), (4, 8, 8)], (5, 8), 2 * 5 * 2 * (16 * 4 + 8 * 8)),
        ("Attention", [(2, 3, 8), (8, 24)], (2, 3, 8), 4 * 48 * 3 + 2 * 6 * 8 * 24),
        ("GroupQueryAttention", [(2, 1, 8), (2, 1, 4)], (2, 1, 8), 4 * 16),
        ("Mod", [(8, 8), (8, 8)], (8, 8), 128),
    ],
)
def test_operators_that_are_not_understood_cost_what_they_do(
    op_type: str, shapes: list[tuple[int, ...]], result: tuple[int, ...], flops: int
) -> None:
    inputs = tuple(TensorType("float32", shape) for shape in shapes)
    output = (TensorType("float32", result),)
    assert get_operator("opaque").flops(inputs, output, {"op_type": op_type}) == flops
