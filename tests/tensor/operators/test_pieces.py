"""Concat, split, slice and gather against onnxruntime, and how they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators import Mapped, get_operator
from tests.tensor.operators.onnx_oracle import (
    check_against_onnxruntime,
    node,
    read,
    read_back,
    write,
)
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_layout import X, ints
from tests.tensor.operators.test_matmul import f32

I64 = TensorType("int64", (2,))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_concat(axis: int, count: int) -> None:
    shapes = [[2, 3, 4] for _ in range(count)]
    for size, shape in enumerate(shapes, start=1):
        shape[axis] = size
    arrays = [drawn(tuple(shape), k) for k, shape in enumerate(shapes)]
    check_against_onnxruntime("concat", arrays, {"axis": axis})


def test_concat_takes_the_parts_of_tuples() -> None:
    concat = get_operator("concat")
    kinds = (f32(1, 2), (f32(1, 3), f32(1, 1)))
    assert concat.check(kinds, {"axis": 1}) == f32(1, 6)
    a, b, c = drawn((1, 2)), drawn((1, 3)), drawn((1, 1))
    assert concat.evaluate([a, (b, c)], {"axis": 1}).shape == (1, 6)
    written = write("concat", kinds, {"axis": 1}, 20)
    assert list(written.emitter.nodes[0].input) == ["x0", "x1", "x2"]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(-2, 1))
def test_split(sizes: list[int], axis: int) -> None:
    shape = [2, 2]
    shape[axis] = sum(sizes)
    attrs: Any = {"axis": axis, "sizes": tuple(sizes)}
    check_against_onnxruntime("split", [drawn(tuple(shape))], attrs, 13)
    assert read_back("split", [f32(*shape)], attrs) == {"axis": axis % 2, "sizes": tuple(sizes)}


@pytest.mark.parametrize(
    ("seen", "sizes"),
    [
        (node("Split", (6, 2), outputs=("a", "b", "c"), opset=13), (2, 2, 2)),
        (node("Split", (6, 2), outputs=("a", ""), opset=11, split=(4, 2)), (4, 2)),
        (node("Split", (6, 2), ints(1, 5), outputs=("a", "b"), opset=13), (1, 5)),
        (node("Split", (7, 2), outputs=("a", "b", "c"), num_outputs=3), (3, 3, 1)),
    ],
)
def test_split_of_all_versions(seen: Any, sizes: tuple[int, ...]) -> None:
    assert read(seen) == Mapped("split", ("x0",), {"axis": 0, "sizes": sizes})


def test_other_splits_are_opaque() -> None:
    assert read(node("Split", (6, 2), (2,), outputs=("a", "b"))) is None
    assert read(node("Split", (6, 2), ints(6, 0), outputs=("a", "b"))) is None
    assert read(node("Split", (4, 2), outputs=("a", "b", "c"), num_outputs=3)) is None  # 2, 2, 0


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_slice(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    cuts = []
    for axis in axes:
        first = data.draw(st.integers(0, shape[axis] - 1))
        last = data.draw(st.integers(first, shape[axis] - 1))
        start = data.draw(st.sampled_from([first, first - shape[axis]]))
        end = data.draw(st.sampled_from([last + 1, last + 1 - shape[axis] or 99]))
        cuts.append((axis, start, end, data.draw(st.integers(1, 3))))
    names = ("axes", "starts", "ends", "steps")
    attrs: Any = dict(zip(names, map(tuple, zip(*cuts, strict=True)), strict=True))
    check_against_onnxruntime("slice", [drawn(shape)], attrs)
    expected = drawn(shape)
    for axis, start, end, step in cuts:
        expected = np.moveaxis(np.moveaxis(expected, axis, 0)[start:end:step], 0, axis)
    operator = get_operator("slice")
    canonical = operator.canonical((f32(*shape),), attrs)
    np.testing.assert_array_equal(operator.evaluate([drawn(shape)], canonical), expected)
    assert operator.canonical((f32(*shape),), canonical) == canonical


def test_equal_slices_have_equal_attributes() -> None:
    canonical = get_operator("slice").canonical
    a = canonical((X,), {"axes": (-1, 0), "starts": (-3, 0), "ends": (99, 2), "steps": (2, 1)})
    b = canonical((X,), {"axes": (2,), "starts": (1,), "ends": (4,), "steps": (2,)})
    assert a == b == {"axes": (2,), "starts": (1,), "ends": (4,), "steps": (2,)}


@given(st.integers(1, 6), st.integers(-8, 8), st.integers(-8, 8), st.integers(-1, 7))
def test_bounds_of_slices_are_those_of_python(size: int, start: int, end: int, step: int) -> None:
    given_attrs = {"axes": (0,), "starts": (start,), "ends": (end,), "steps": (step,)}
    taken = range(size)[start:end:step] if step > 0 else ()
    operator = get_operator("slice")
    if not taken:
        with pytest.raises(ShapeError):
            operator.canonical((f32(size),), given_attrs)
        return
    attrs = operator.canonical((f32(size),), given_attrs)
    assert operator.infer((f32(size),), attrs) == f32(len(taken))
    assert operator.evaluate([np.arange(size)], attrs).tolist() == list(taken)
    assert (attrs["axes"] == ()) == (len(taken) == size)


def test_slice_of_all_versions() -> None:
    attrs: Any = {"axes": (1,), "starts": (1,), "ends": (3,), "steps": (1,)}
    expected = Mapped("slice", ("x0",), attrs)
    assert read(node("Slice", (2, 3), opset=1, axes=(1,), starts=(1,), ends=(9,))) == expected
    assert read(node("Slice", (2, 3), ints(0, 1), ints(2, 3))) == expected
    assert read(node("Slice", (2, 3), ints(-2), ints(3), ints(-1), ints(1))) == expected
    assert read_back("slice", [f32(2, 3)], attrs) == attrs


def test_other_slices_are_opaque() -> None:
    assert read(node("Slice", (2, 3), ints(2), ints(0), ints(1), ints(-1))) is None  # backwards
    assert read(node("Slice", (2, 3), ints(2), ints(2), ints(1))) is None  # empty
    assert read(node("Slice", (2, 3), (1,), ints(3))) is None


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(), (4,), (2, 2)])
def test_gather(axis: int, shape: tuple[int, ...]) -> None:
    indices = np.random.default_rng(0).integers(-2, 2, shape)
    check_against_onnxruntime("gather", [drawn((2, 3, 4)), np.asarray(indices)], {"axis": axis})


def test_gather_moves_only_what_it_takes() -> None:
    gather = get_operator("gather")
    types = (f32(1000, 8), I64)
    attrs: Any = {"axis": 0}
    assert gather.bytes_moved(types, gather.check(types, attrs), attrs) == 2 * 8 + 2 * (2 * 8 * 4)


def test_gather_out_of_range() -> None:
    with pytest.raises(ShapeError, match=r"not in -3\.\.2"):
        get_operator("gather").evaluate([np.zeros(3), np.array([0, 3])], {"axis": 0})


def test_reading_gather_and_concat() -> None:
    seen = node("Gather", (2, 3), ints(0), axis=-1)
    assert read(seen) == Mapped("gather", ("x0", "x1"), {"axis": 1})
    assert read(node("Concat", (2, 3), (2, 3), axis=-2)) == Mapped(
        "concat", ("x0", "x1"), {"axis": 0}
    )


@pytest.mark.parametrize(
    ("op", "types", "attrs", "message"),
    [
        ("concat", [X, f32(2, 3)], {"axis": 0}, "differ in element type or rank"),
        ("concat", [X, f32(2, 4, 4)], {"axis": 0}, "differ beside axis 0"),
        ("concat", [X, TensorType("int64", (2, 3, 4))], {"axis": 0}, "element type"),
        ("concat", [X], {"axis": 3}, "not in 0..2"),
        ("concat", [], {"axis": 3}, "takes 1 or more inputs, not 0"),
        ("split", [X], {"axis": 1, "sizes": (1, 1)}, "positive numbers of sum 3"),
        ("split", [X], {"axis": 1, "sizes": (3, 0)}, "positive numbers of sum 3"),
        ("slice", [X], {"axes": (0,), "starts": (1,), "ends": (3,), "steps": (1,)}, "bounds"),
        ("slice", [X], {"axes": (0,), "starts": (), "ends": (), "steps": ()}, "differ in length"),
        ("gather", [X, X], {"axis": 0}, "expected int64 or int32"),
        ("gather", [X, I64], {"axis": -1}, "not in 0..2"),
    ],
)
def test_misfits_are_refused(op: str, types: Any, attrs: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        get_operator(op).check(tuple(types), attrs)
