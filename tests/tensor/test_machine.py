"""Machine arithmetic is what onnxruntime computes, operator by operator and type by type."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime

from relational_tensat.rules.backends.backend import know_kernels
from relational_tensat.tensor import Array, TensorType
from relational_tensat.tensor.floats import FLOAT_FORMATS, is_extreme, representable, rounded
from relational_tensat.tensor.machine import computed
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import DTYPE_BYTES, FLOAT_DTYPES, Attrs
from tests.tensor.operators.onnx_oracle import run_onnx, write

_NoSuchType = onnx.shape_inference.InferenceError
_INTEGERS = tuple(d for d in DTYPE_BYTES if d not in FLOAT_DTYPES and d != "bool")
_FLOATS = ("float64", "float32", "float16")  # onnxruntime takes no bfloat16 from NumPy

#: Operators by attributes and number of operands; the shape of all operands.
_OPERATORS: Mapping[str, tuple[Attrs, int]] = {
    "add": ({}, 2), "sub": ({}, 2), "mul": ({}, 2), "div": ({}, 2), "pow": ({}, 2),
    "relu": ({}, 1), "neg": ({}, 1), "abs": ({}, 1), "sqrt": ({}, 1), "exp": ({}, 1),
    "log": ({}, 1), "cos": ({}, 1), "sin": ({}, 1), "erf": ({}, 1), "tanh": ({}, 1),
    "sigmoid": ({}, 1), "reciprocal": ({}, 1), "gelu": ({}, 1),
    "smul": ({"value": 0.1}, 1), "clip": ({"min": -0.3, "max": 1.7}, 1),
    "matmul": ({}, 2), "softmax": ({"axis": 1}, 1),
    "reduce_sum": ({"axes": (1,), "keepdims": True}, 1),
    "reduce_mean": ({"axes": (1,), "keepdims": False}, 1),
    "reduce_max": ({"axes": (0,), "keepdims": True}, 1),
    "reduce_min": ({"axes": (0,), "keepdims": True}, 1),
    "reduce_prod": ({"axes": (1,), "keepdims": True}, 1),
    "reduce_l2": ({"axes": (1,), "keepdims": True}, 1),
    "transpose": ({"perm": (1, 0)}, 1), "reshape": ({"shape": (4, 9)}, 1),
    **{f"cast {dtype}": ({"dtype": dtype}, 1) for dtype in DTYPE_BYTES if dtype != "bfloat16"},
}  # fmt: skip
#: What onnxruntime computes by polynomials of its own, or sums in another order: a few units apart.
_UNITS = 8


def _operands(dtype: str, count: int, positive: bool) -> list[Array]:
    rng = np.random.default_rng(7)
    if dtype in FLOAT_DTYPES:
        drawn = [rng.normal(size=(6, 6)) for _ in range(count)]
        return [(np.abs(d) + 0.1 if positive else d).astype(dtype) for d in drawn]
    limits = np.iinfo(dtype)
    numbers = [
        rng.integers(limits.min, limits.max, size=(6, 6), dtype=dtype, endpoint=True)
        for _ in range(count)
    ]
    for number in numbers[1:]:
        number[number == 0] = 3
        number[number == number.dtype.type(-1 if limits.min else 0)] = 3
    return numbers


def _compared(name: str, dtype: str) -> bool:
    """Compare one operator in one type; False where there is no such operator, or no kernel."""
    op, (attrs, count) = name.split()[0], _OPERATORS[name]
    operator, kinds = get_operator(op), (TensorType(dtype, (6, 6)),) * count
    try:
        written = write(op, kinds, attrs, 20)
    except Exception as error:
        assert type(error).__name__ == "ShapeError", error
        return False
    operands = _operands(dtype, count, positive=op in ("log", "sqrt", "pow", "cast"))
    if op in ("reduce_sum", "reduce_prod") and dtype in _INTEGERS:  # onnxruntime reduces in float64
        operands = [operand // (np.iinfo(dtype).max // 15) for operand in operands]
    (result,) = written.results
    nodes = [*written.emitter.nodes, onnx.helper.make_node("Identity", [result], ["y"])]
    kind = written.result_type
    assert isinstance(kind, TensorType)
    value_of = dict(zip(written.names, operands, strict=True))
    state = onnxruntime.capi.onnxruntime_pybind11_state
    try:
        (theirs,) = run_onnx(nodes, value_of, {"y": kind}, written.emitter.constants, 20)
    except (state.NotImplemented, state.InvalidGraph, state.Fail, _NoSuchType):
        return False
    held = [o.astype(np.float64) if dtype in FLOAT_DTYPES else o for o in operands]
    with np.errstate(all="ignore"):
        ours = computed(op, held, kinds, operator.canonical(kinds, attrs), kind)
    if kind.dtype not in FLOAT_DTYPES:
        assert np.array_equal(ours, theirs), (name, dtype)
        return True
    wide = theirs.astype(np.float64)
    # float16 and narrower have no kernels of their own: computed in float32, rounded once.
    unit = FLOAT_FORMATS[kind.dtype].epsilon
    largest = max(1.0, *(float(np.abs(o.astype(np.float64)).max()) for o in operands))
    finite = np.isfinite(wide)
    assert np.array_equal(ours[~finite], wide[~finite], equal_nan=True), (name, dtype)
    apart = np.abs(ours[finite] - wide[finite])
    exact = operator.is_exact or op in ("add", "sub", "mul", "div", "sqrt", "smul")
    allowed = 0.0 if exact else _UNITS * unit * np.maximum(np.abs(wide[finite]), largest)
    assert (apart <= allowed).all(), (name, dtype, apart.max())
    return True


def test_single_operators_in_every_type_are_onnxruntimes() -> None:
    compared = [(n, d) for n in _OPERATORS for d in (*_FLOATS, *_INTEGERS) if _compared(n, d)]
    assert len(compared) > 150
    assert {dtype for _, dtype in compared} == {*_FLOATS, *_INTEGERS}


def test_integers_are_divided_towards_zero_at_the_ends_too() -> None:
    every = np.arange(-128, 128)
    a, b = (grid.reshape(-1) for grid in np.meshgrid(every, every[every != 0], indexing="ij"))
    kind = TensorType("int8", a.shape)
    with np.errstate(over="ignore"):
        ours = computed("div", [a.astype(np.int8), b.astype(np.int8)], (kind, kind), {}, kind)
    expected = np.trunc(a / b).astype(np.int64)
    assert np.array_equal(ours, expected.astype(np.int8))  # -128 / -1 wraps


def test_bfloat16_is_rounded_to_the_nearest() -> None:
    import ml_dtypes

    rng = np.random.default_rng(1)
    numbers = np.concatenate([
        rng.normal(size=500), 2.0 ** rng.uniform(-140, 129, size=500), [0.0, -0.0, np.inf, np.nan],
    ])  # fmt: skip
    with np.errstate(over="ignore"):
        numbers = numbers.astype(np.float32).astype(np.float64)
        expected = numbers.astype(ml_dtypes.bfloat16).astype(np.float64)
    assert np.array_equal(rounded(numbers, "bfloat16"), expected, equal_nan=True)


def test_float_formats_are_numpys() -> None:
    for dtype in _FLOATS:
        info, format_ = np.finfo(dtype), FLOAT_FORMATS[dtype]
        assert (format_.epsilon, format_.largest) == (float(info.eps), float(info.max))
        assert format_.smallest_normal == float(info.smallest_normal)
        assert format_.smallest == float(info.smallest_subnormal)


def test_what_types_hold() -> None:
    assert representable(65504, "float16") and not representable(65536, "float16")
    assert representable(0.0, "float16") and not representable(1e-8, "float16")
    assert representable(-128, "int8") and not representable(128, "int8")
    assert not representable(0.5, "int32")
    assert is_extreme(np.array([1.0, 1e6]), "float32") and not is_extreme(0.0, "float32")
    assert is_extreme(float("nan"), "float32") and not is_extreme(300.0, "float32")
    assert is_extreme(300.0, "float16") and not is_extreme(2**31, "int32")


def test_a_kernel_of_several_operators_rounds_where_they_do() -> None:
    """What is rounded once lands on the other side of a half: the integers are one apart."""
    know_kernels()
    byte, number, word = (TensorType(dtype, ()) for dtype in ("uint8", "float32", "int16"))
    x, s, z, y, t, v, o, q = (
        rounded(np.asarray(value), kind.dtype) if kind.is_float else np.asarray(value)
        for value, kind in zip(
            (5, -6.3, 3, 3, 77.0, 1, 0.4, -2),
            (byte, number, byte, byte, number, byte, number, word),
            strict=True,
        )
    )
    first = computed("dequantize", [x, s, z], [byte, number, byte], {"axis": 0}, number)
    second = computed("dequantize", [y, t, v], [byte, number, byte], {"axis": 0}, number)
    total = computed("add", [first, second], [number, number], {}, number)
    attrs: Attrs = {"axis": 0, "dtype": "int16"}
    apart = computed("quantize", [total, o, q], [number, number, word], attrs, word)
    types = [byte, (number, byte), byte, (number, byte), (number, word)]
    operands = [x, (s, z), y, (t, v), (o, q)]
    assert computed("ort_quantized_add", operands, types, {}, word) == apart
    assert get_operator("ort_quantized_add").evaluate_typed(operands, tuple(types), {}) != apart
