"""Leaves, constants and tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import ShapeError, UsageError
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators import Mapped, get_operator
from tests.tensor.operators.onnx_oracle import check_against_onnxruntime, node, read, write
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_matmul import f32


@pytest.mark.parametrize("shape", [(), (3,), (40, 50)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "float16", "bool"])
def test_fill(shape: tuple[int, ...], dtype: str) -> None:
    check_against_onnxruntime("fill", [], {"value": 1.0, "dtype": dtype, "shape": shape})


@pytest.mark.parametrize(("dtype", "value"), [("int32", -3.0), ("float32", -3.5), ("bool", -3.5)])
def test_rules_compute_with_the_number_that_a_constant_has(dtype: str, value: float) -> None:
    attrs: Any = {"value": -3.5, "dtype": dtype, "shape": ()}
    assert get_operator("fill").canonical((), attrs)["value"] == value


def test_a_large_constant_takes_no_memory() -> None:
    attrs: Any = {"value": 0.5, "dtype": "float32", "shape": (10**5, 10**5)}
    assert get_operator("fill").evaluate([], attrs).strides == (0, 0)
    emitter = write("fill", [], attrs, 20).emitter
    assert sum(value.nbytes for value in emitter.constants.values()) < 100


def test_bfloat16_constants_are_written_as_cast_float32() -> None:
    emitter = write("fill", [], {"value": 1.0, "dtype": "bfloat16", "shape": (2,)}, 20).emitter
    assert [node.op_type for node in emitter.nodes] == ["Cast"]
    assert [str(value.dtype) for value in emitter.constants.values()] == ["float32"]


def test_constant_of_shape() -> None:
    seen = node("ConstantOfShape", np.array([2, 3]), value=np.array([7], np.int64))
    attrs: dict[str, Any] = {"value": 7.0, "dtype": "int64", "shape": (2, 3)}
    assert read(seen) == Mapped("fill", (), attrs)
    zero = read(node("ConstantOfShape", np.array([2])))
    assert zero == Mapped("fill", (), {"value": 0.0, "dtype": "float32", "shape": (2,)})


def test_constants_that_cannot_be_told_are_opaque() -> None:
    assert read(node("ConstantOfShape", (1,))) is None
    exact = np.array([2**53 + 1], np.int64)
    assert read(node("ConstantOfShape", np.array([2]), value=exact)) is None
    assert read(node("ConstantOfShape", np.array([0]))) is None  # no elements


@pytest.mark.parametrize("op", ["input", "weight"])
def test_named_leaves_have_a_type_and_no_value(op: str) -> None:
    leaf = get_operator(op)
    attrs: Any = {"name": "x", "dtype": "float32", "shape": (2, 3)}
    assert leaf.check((), attrs) == f32(2, 3)
    assert leaf.free
    with pytest.raises(UsageError, match="'x' has no value of its own"):
        leaf.evaluate([], attrs)


def test_noop_flattens_tuples_and_part_takes_one() -> None:
    noop, part = get_operator("noop"), get_operator("part")
    kind = noop.check((f32(1), (f32(2), f32(3))), {})
    assert kind == (f32(1), f32(2), f32(3))
    a, b, c = drawn((1,)), drawn((2,)), drawn((3,))
    value = noop.evaluate([a, (b, c)], {})
    assert part.check((kind,), {"index": 2}) == f32(3)
    assert part.evaluate([value], {"index": 2}) is c
    assert write("noop", [f32(1), (f32(2), f32(3))], {}, 20).results == ["x0", "x1", "x2"]
    assert write("part", [kind], {"index": 1}, 20).results == ["x1"]


@pytest.mark.parametrize(
    ("op", "types", "attrs", "message"),
    [
        ("part", [(f32(1), f32(2))], {"index": 2}, r"index 2 is not in 0\.\.1"),
        ("part", [f32(1)], {"index": -1}, r"not in 0\.\.0"),
        ("noop", [], {}, "takes 1 or more inputs"),
        ("fill", [], {"value": 0.0, "dtype": "float23", "shape": ()}, "did you mean 'float32'"),
        ("input", [], {"name": "x", "dtype": "float32", "shape": (2, -1)}, "sizes of at least 0"),
        ("input", [TensorType("int8", ())], {}, "takes 0 inputs, not 1"),
    ],
)
def test_misfits_are_refused(op: str, types: Any, attrs: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        get_operator(op).check(tuple(types), attrs)


def test_what_is_free_computes_and_moves_nothing() -> None:
    for op in ("identity", "dropout", "noop"):
        operator = get_operator(op)
        kind = operator.check((f32(4),), {})
        assert operator.free
        assert operator.kernel == "nothing"
        assert operator.flops((f32(4),), kind, {}) == operator.bytes_moved((f32(4),), kind, {}) == 0
