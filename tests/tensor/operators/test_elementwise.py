"""Element-wise operators against onnxruntime, and what they read from ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.floats import erf
from relational_tensat.tensor.operators import Mapped, get_operator
from tests.tensor.operators.onnx_oracle import (
    check_against_onnxruntime,
    compute,
    node,
    read,
    read_back,
    run_onnx,
    write,
)

F32 = TensorType("float32", (2, 3))


def drawn(shape: tuple[int, ...], seed: int = 0, dtype: str = "float32") -> Any:
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize(
    "op",
    [
        "relu", "sigmoid", "tanh", "exp", "erf", "cos", "sin", "neg", "abs", "reciprocal", "gelu",
        "identity",
    ],
)  # fmt: skip
@pytest.mark.parametrize("opset", [13, 20])
def test_unary_operators(op: str, opset: int) -> None:
    check_against_onnxruntime(op, [drawn((2, 1, 5))], {}, opset)


@pytest.mark.parametrize("op", ["sqrt", "log"])
def test_unary_operators_of_positive_numbers(op: str) -> None:
    check_against_onnxruntime(op, [np.abs(drawn((7,))) + np.float32(0.1)], {})


@pytest.mark.parametrize("opset", [13, 20])
def test_gelu_by_tanh(opset: int) -> None:
    check_against_onnxruntime("gelu", [drawn((40,))], {"approximate": "tanh"}, opset)


@pytest.mark.parametrize("opset", [13, 14])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float16"])
def test_relu_of_other_types(dtype: str, opset: int) -> None:
    check_against_onnxruntime("relu", [drawn((9,), dtype=dtype)], {}, opset, tolerance=1e-2)


@pytest.mark.parametrize(
    "attrs", [{}, {"min": -0.5}, {"max": 0.25}, {"min": 0.0, "max": 6.0}], ids=str
)
def test_clip(attrs: dict[str, Any]) -> None:
    check_against_onnxruntime("clip", [drawn((30,))], attrs)


def test_smul_and_dropout() -> None:
    check_against_onnxruntime("smul", [drawn((3, 4))], {"value": -2.5})
    check_against_onnxruntime("dropout", [drawn((3, 4))], {})


@pytest.mark.parametrize("to", ["int32", "float64", "bool", "float16", "uint8"])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_cast(dtype: str, to: str) -> None:
    x = np.abs(drawn((20,), dtype=dtype)) * 3
    check_against_onnxruntime("cast", [x.astype(dtype)], {"dtype": to}, tolerance=1e-3)


def test_cast_to_integer_drops_the_fraction() -> None:
    cast = get_operator("cast")
    result = cast.evaluate([np.array([-1.7, 1.7])], {"dtype": "int64"})
    assert result.tolist() == [-1, 1]


def test_erf_is_accurate() -> None:
    x = np.concatenate([np.linspace(-7, 7, 4001), [0.0, 1e-300, np.inf, -np.inf]])
    expected = np.array([math.erf(number) for number in x])
    np.testing.assert_allclose(erf(x), expected, rtol=4e-16 * 4, atol=0)


def test_sigmoid_of_large_numbers_is_exact() -> None:
    result = get_operator("sigmoid").evaluate([np.array([-800.0, -40.0, 800.0])], {})
    np.testing.assert_allclose(result, [0.0, math.exp(-40), 1.0], rtol=1e-14)


@st.composite
def broadcastable(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    full = draw(st.lists(st.integers(1, 4), min_size=0, max_size=4))
    shapes = []
    for _ in range(2):
        keep = draw(st.integers(0, len(full)))
        sizes = [1 if draw(st.booleans()) else size for size in full[len(full) - keep :]]
        shapes.append(tuple(sizes))
    return shapes[0], shapes[1]


@settings(max_examples=15, deadline=None)
@given(op=st.sampled_from(["add", "sub", "mul", "div", "pow"]), shapes=broadcastable())
def test_binary_operators_broadcast(
    op: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    a, b = drawn(shapes[0], 1), drawn(shapes[1], 2)
    check_against_onnxruntime(op, [np.abs(a) + np.float32(0.1), b], {}, tolerance=1e-4)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_binary_operators_of_integers(op: str) -> None:
    a, b = drawn((50,), 1, "int32"), drawn((50,), 2, "int32")
    b[b == 0] = 3
    check_against_onnxruntime(op, [a, b], {})


@pytest.mark.parametrize(
    ("op", "types", "message"),
    [
        ("add", [F32, TensorType("float32", (2, 2))], "do not broadcast"),
        ("add", [F32, TensorType("int32", (2, 3))], "one element type"),
        ("mul", [TensorType("bool", (2,))] * 2, "takes numbers, not bool"),
        ("exp", [TensorType("int32", (2,))], "takes floats, not int32"),
        ("pow", [TensorType("int32", (2,))] * 2, "takes floats"),
        ("neg", [TensorType("uint8", (2,))], "not uint8"),
        ("relu", [F32, F32], "takes 1 inputs, not 2"),
        ("relu", [(F32, F32)], "is a tuple of 2"),
        ("cast", [TensorType("string", (2,))], "not string"),
    ],
)
def test_misfits_are_refused(op: str, types: list[Any], message: str) -> None:
    attrs: Any = {"dtype": "int32"} if op == "cast" else {}
    with pytest.raises(ShapeError, match=message):
        get_operator(op).check(tuple(types), attrs)


@pytest.mark.parametrize(
    ("op", "attrs", "message"),
    [
        ("gelu", {"approximate": "tan"}, "expected one of none, tanh; did you mean 'tanh'"),
        (
            "gelu",
            {"approximat": "tanh"},
            "has no attribute 'approximat'; did you mean 'approximate'",
        ),
        ("smul", {}, "needs the attribute 'value'"),
        ("smul", {"value": "two"}, "expected float"),
        ("cast", {"dtype": "float23"}, "did you mean 'float32'"),
    ],
)
def test_attributes_are_checked(op: str, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        get_operator(op).check((F32,), attrs)


def test_sums_of_several_operands_are_nested() -> None:
    seen = node("Sum", (2, 3), (3,), (2, 1))
    mapped = read(seen)
    assert mapped is not None
    values = [drawn((2, 3)), drawn((3,), 1), drawn((2, 1), 2)]
    np.testing.assert_allclose(compute(mapped, seen, values), sum(values), rtol=1e-6)
    assert mapped == Mapped("add", (Mapped("add", ("x0", "x1"), {}), "x2"), {})


def test_the_mean_of_three() -> None:
    seen = node("Mean", (2,), (2,), (2,))
    mapped = read(seen)
    assert mapped is not None
    values = [np.array([3.0, 6.0]), np.array([0.0, 1.0]), np.array([0.0, 2.0])]
    np.testing.assert_allclose(compute(mapped, seen, values), [1.0, 3.0], rtol=1e-15)


@pytest.mark.parametrize("op_type", ["Sum", "Max", "Min"])
def test_variadic_operators_of_one_operand_are_identities(op_type: str) -> None:
    assert read(node(op_type, (2,))) == Mapped("identity", ("x0",), {})


def test_a_maximum_with_a_number_is_a_clip() -> None:
    six = np.float32(6).reshape(1)
    assert read(node("Min", (2, 3), six)) == Mapped("clip", ("x0",), {"min": -math.inf, "max": 6.0})
    mapped = read(node("Max", np.zeros((), np.float32), (2, 3)))
    assert mapped == Mapped("clip", ("x1",), {"min": 0.0, "max": math.inf})
    assert read(node("Max", (2, 3), (2, 3))) is None
    assert read(node("Max", (3,), np.zeros((1, 1), np.float32))) is None  # adds a dimension


@pytest.mark.parametrize("opset", [6, 11])
def test_clip_of_old_and_new_versions(opset: int) -> None:
    number = np.array(6, np.float32)
    seen = node("Clip", (2,), opset=6, max=6.0) if opset == 6 else node("Clip", (2,), None, number)
    largest = float(np.finfo(np.float32).max)
    assert read(seen) == Mapped("clip", ("x0",), {"min": -largest, "max": 6.0})


@pytest.mark.parametrize("open_end", [math.inf, float(np.finfo(np.float16).max)])
@pytest.mark.parametrize("bounds", [{}, {"min": 0.5}, {"max": 0.5}], ids=str)
def test_clip_of_what_is_infinite(bounds: dict[str, float], open_end: float) -> None:
    """Fuzzing: fp16 Max(x, c) was written as a Clip, which makes infinity the largest finite number."""
    attrs = {"min": -open_end, "max": open_end, **bounds}
    values = np.array([np.inf, -np.inf, 65504, -65504, 0], np.float16)
    written = write("clip", (TensorType("float16", (5,)),), attrs, 20)
    nodes = [*written.emitter.nodes, onnx.helper.make_node("Identity", written.results, ["y"])]
    constants = written.emitter.constants
    kinds = {"y": TensorType("float16", (5,))}
    (result,) = run_onnx(nodes, {written.names[0]: values}, kinds, constants, 20)
    np.testing.assert_array_equal(result, get_operator("clip").evaluate([values], attrs))


def test_clip_with_bounds_known_at_run_time_only_is_opaque() -> None:
    assert read(node("Clip", (2,), ())) is None
    assert read(node("Clip", (2,), dtype="int64")) is None


def test_broadcasting_of_old_versions() -> None:
    mapped = read(node("Add", (2, 3, 4), (3,), opset=6, broadcast=1, axis=1))
    assert mapped == Mapped("add", ("x0", Mapped("reshape", ("x1",), {"shape": (3, 1)})), {})
    assert read(node("Add", (2, 3), (3,), opset=6)) is None  # not broadcast: invalid
    assert read(node("Add", (2, 3), (2, 3), opset=6)) == Mapped("add", ("x0", "x1"), {})


def test_powers_with_integer_exponents() -> None:
    mapped = read(node("Pow", (2, 3), np.array(2, np.int64)))
    assert mapped == Mapped("pow", ("x0", Mapped("cast", ("x1",), {"dtype": "float32"})), {})


@pytest.mark.parametrize(("to", "dtype"), [(1, "float32"), ("FLOAT", "float32"), (7, "int64")])
def test_cast_names_element_types(to: Any, dtype: str) -> None:
    assert read(node("Cast", (2,), to=to)) == Mapped("cast", ("x0",), {"dtype": dtype})


def test_cast_to_strings_is_opaque() -> None:
    assert read(node("Cast", (2,), to=8)) is None


def test_dropout_of_all_versions() -> None:
    assert read(node("Dropout", (2,), opset=9, ratio=0.5)) == Mapped("dropout", ("x0",), {})
    assert read(node("Dropout", (2,), opset=9, outputs=("y", "mask"))) is None
    ratio = np.array(0.5, np.float32)
    assert read(node("Dropout", (2,), ratio, np.array(True))) is None
    assert read(node("Dropout", (2,), ratio, np.array(False))) is not None


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_read_back(approximate: str) -> None:
    attrs: Any = {"approximate": approximate}
    assert read_back("gelu", [F32], attrs) == attrs


def test_clip_and_cast_are_read_back() -> None:
    assert read_back("clip", [F32], {"min": 0.0, "max": 6.0}) == {"min": 0.0, "max": 6.0}
    assert read_back("cast", [F32], {"dtype": "bfloat16"}) == {"dtype": "bfloat16"}
