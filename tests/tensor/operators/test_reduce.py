"""Reductions against onnxruntime, and how they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators import Mapped, get_operator
from tests.tensor.operators.onnx_oracle import check_against_onnxruntime, node, read, read_back
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_matmul import f32

OPS = ["reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_l2"]


@settings(max_examples=25, deadline=None)
@given(
    op=st.sampled_from(OPS),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    chosen=st.sets(st.integers(-4, 3), min_size=1),
    keepdims=st.booleans(),
    opset=st.sampled_from([13, 18]),
)
def test_reductions(
    op: str, shape: list[int], chosen: set[int], keepdims: bool, opset: int
) -> None:
    axes = tuple({axis % len(shape): axis % len(shape) - len(shape) for axis in chosen}.values())
    attrs: Any = {"axes": axes, "keepdims": keepdims}
    check_against_onnxruntime(op, [drawn(tuple(shape))], attrs, opset)
    back = read_back(op, [f32(*shape)], attrs, opset)
    assert back == {"axes": tuple(sorted(a + len(shape) for a in axes)), "keepdims": keepdims}


@pytest.mark.parametrize("op", ["reduce_sum", "reduce_max", "reduce_min", "reduce_prod"])
def test_reductions_of_integers(op: str) -> None:
    attrs: Any = {"axes": (0,), "keepdims": False}
    check_against_onnxruntime(op, [drawn((3, 4), dtype="int32")], attrs)


def test_flops_count_what_is_read() -> None:
    op = get_operator("reduce_mean")
    attrs: Any = {"axes": (1,), "keepdims": False}
    types = (f32(3, 4),)
    assert op.flops(types, op.check(types, attrs), attrs) == 12
    assert op.bytes_moved(types, op.check(types, attrs), attrs) == 4 * (12 + 3)


@pytest.mark.parametrize(
    ("kind", "axes", "message"),
    [
        (f32(2, 3), (2,), "axis 2 is not in 0..1"),
        (f32(2, 3), (-1,), "axis -1 is not in 0..1"),
        (f32(2, 3), (1, 0), "ascending"),
        (f32(2, 3), (0, 0), "ascending"),
        (f32(2, 3), (), "one at least"),
        (TensorType("int32", (2, 3)), (0,), "takes floats"),
    ],
)
def test_misfits_are_refused(kind: TensorType, axes: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        get_operator("reduce_mean").check((kind,), {"axes": axes, "keepdims": True})


def test_axes_as_attribute_and_as_input() -> None:
    expected = Mapped("reduce_sum", ("x0",), {"axes": (1,), "keepdims": False})
    assert read(node("ReduceSum", (2, 3), opset=11, axes=(-1,), keepdims=0)) == expected
    assert read(node("ReduceSum", (2, 3), np.array([1]), keepdims=0)) == expected


@pytest.mark.parametrize(("op_type", "op"), [("ReduceSum", "identity"), ("ReduceL2", "abs")])
def test_without_axes_each_element_is_reduced_alone(op_type: str, op: str) -> None:
    none = np.array([], np.int64)
    assert read(node(op_type, (2, 3), none, noop_with_empty_axes=1)) == Mapped(op, ("x0",), {})
    assert read(node(op_type, ())) == Mapped(op, ("x0",), {})


def test_all_axes_by_default() -> None:
    expected = Mapped("reduce_max", ("x0",), {"axes": (0, 1), "keepdims": True})
    assert read(node("ReduceMax", (2, 3))) == expected


def test_reducing_nothing_is_the_identity() -> None:
    empty = np.array([], np.int64)
    expected = Mapped("identity", ("x0",), {})
    assert read(node("ReduceSum", (2, 3), empty, noop_with_empty_axes=1)) == expected
    assert read(node("ReduceSum", ())) == expected


def test_axes_known_at_run_time_only_are_opaque() -> None:
    assert read(node("ReduceSum", (2, 3), (1,))) is None


def test_integer_means_are_opaque() -> None:
    assert read(node("ReduceMean", (2, 3), dtype="int32")) is None
