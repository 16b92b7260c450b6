"""Convolutions and the re-arrangement of their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
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
    run_onnx,
)
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_matmul import f32

X, W = f32(1, 4, 8, 8), f32(6, 4, 3, 3)
SAME: Any = {"stride": (1, 1), "pad": "same"}


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], dict[str, Any]]:
    rank = draw(st.sampled_from([2, 2, 1, 3]))
    groups, inner, filters = draw(st.tuples(*[st.integers(1, 3)] * 3))
    kernel = draw(st.tuples(*[st.integers(1, 3)] * rank))
    dilation = draw(st.sampled_from([(), (2,) * rank, tuple(range(1, rank + 1))]))
    taps = zip(kernel, dilation or (1,) * rank, strict=True)
    sizes = tuple((k - 1) * d + 1 + draw(st.integers(0, 4)) for k, d in taps)
    numbers = draw(st.tuples(*[st.integers(0, 2)] * (2 * rank)))
    attrs: Any = {
        "stride": draw(st.tuples(*[st.integers(1, 3)] * rank)),
        "pad": draw(st.sampled_from(["same", "valid", numbers])),
        "dilation": dilation,
        "act": draw(st.sampled_from(["none", "relu", "sigmoid", "tanh"])),
    }
    x = (draw(st.integers(1, 2)), groups * inner, *sizes)
    shapes = [x, (groups * filters, inner, *kernel)]
    return [*shapes, (groups * filters,)][: draw(st.integers(2, 3))], attrs


@settings(max_examples=40, deadline=None)
@given(convolutions())
def test_conv(case: tuple[list[tuple[int, ...]], dict[str, Any]]) -> None:
    shapes, attrs = case
    arrays = [drawn(shape, seed) for seed, shape in enumerate(shapes)]
    check_against_onnxruntime("conv", arrays, attrs, tolerance=1e-4)


@settings(max_examples=15, deadline=None)
@given(
    size=st.integers(3, 9),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
)
def test_same_is_what_onnx_calls_same_upper(size: int, kernel: int, stride: int) -> None:
    x, w = drawn((1, 1, size), 1), drawn((1, 1, kernel), 2)
    attrs: Any = {"stride": (stride,), "pad": "same"}
    conv = get_operator("conv")
    kinds = (f32(*x.shape), f32(*w.shape))
    own = conv.evaluate([x, w], conv.normalize(attrs))
    assert own.shape == (1, 1, -(-size // stride))
    written = onnx.helper.make_node(
        "Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER", strides=[stride]
    )
    kind = conv.check(kinds, attrs)
    assert isinstance(kind, TensorType)
    theirs: Any = run_onnx([written], {"x": x, "w": w}, {"y": kind}, {}, 20)[0]
    np.testing.assert_allclose(own, theirs, rtol=1e-4, atol=1e-5)


def test_half_precision_and_groups_are_written() -> None:
    arrays = [drawn((1, 4, 5, 5), 1, "float16"), drawn((8, 1, 3, 3), 2, "float16")]
    check_against_onnxruntime("conv", arrays, SAME, 13, tolerance=2e-2)


def test_equal_meanings_have_equal_attributes() -> None:
    conv = get_operator("conv")
    given_in_full: Any = {"stride": (1, 1), "pad": (0, 0, 0, 0), "dilation": (1, 1)}
    assert conv.normalize(given_in_full) == conv.normalize({"stride": (1, 1), "pad": "valid"})


@pytest.mark.parametrize(
    ("types", "attrs", "message"),
    [
        ([X, f32(6, 3, 3, 3)], SAME, "does not fit 4 channels"),
        ([X, f32(5, 2, 3, 3)], SAME, "does not fit 4 channels"),
        ([X, f32(6, 4, 3)], SAME, "equal ranks"),
        ([f32(4, 8), f32(6, 4)], SAME, "1 to 3 spatial dimensions"),
        ([X, W, f32(5)], SAME, r"expected \[6\]"),
        ([X, W], {"stride": (1,), "pad": "same"}, "expected 2 positive numbers"),
        ([X, W], {"stride": (0, 1), "pad": "same"}, "expected 2 positive numbers"),
        ([X, W], {"stride": (1, 1), "pad": (1, 1)}, "4 non-negative numbers"),
        ([X, W], {"stride": (1, 1), "pad": (1, 1, -1, 1)}, "4 non-negative numbers"),
        ([X, W], {"stride": (1, 1), "pad": "sane"}, "expected padding"),
        ([X, f32(6, 4, 9, 9)], {"stride": (1, 1), "pad": "valid"}, "does not fit into"),
        ([X, W], {"stride": (1, 1), "pad": "valid", "dilation": (4, 4)}, "does not fit into"),
    ],
)
def test_misfits_are_refused(types: list[TensorType], attrs: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        get_operator("conv").check(tuple(types), attrs)


def test_no_images() -> None:
    attrs = get_operator("conv").normalize({"stride": (1, 1), "pad": "same"})
    images = get_operator("conv").evaluate([np.ones((0, 3, 4, 4)), np.ones((5, 3, 3, 3))], attrs)
    assert images.shape == (0, 5, 4, 4)


def test_flops() -> None:
    conv = get_operator("conv")
    types = (f32(2, 4, 8, 8), f32(6, 2, 3, 3), f32(6))
    attrs = conv.normalize({**SAME, "act": "relu"})
    size = 2 * 6 * 64
    assert conv.flops(types, conv.check(types, attrs), attrs) == size * (2 * 2 * 9 + 1)


@pytest.mark.parametrize(
    ("attributes", "pad"),
    [
        ({}, "valid"),
        ({"auto_pad": "VALID"}, "valid"),
        ({"pads": (1, 1, 1, 1)}, "same"),
        ({"pads": (2, 1, 0, 1)}, (2, 1, 0, 1)),
        ({"auto_pad": "SAME_UPPER"}, "same"),
        ({"auto_pad": "SAME_UPPER", "strides": (2, 2)}, "same"),
        ({"auto_pad": "SAME_LOWER", "strides": (2, 2)}, (1, 1, 0, 0)),
        ({"pads": (1, 1, 1, 1), "strides": (2, 2)}, (1, 1, 1, 1)),
        ({"pads": (0, 0, 1, 1), "strides": (2, 2)}, "same"),
        ({"pads": (2, 2, 2, 2), "dilations": (2, 2)}, "same"),
    ],
)
def test_padding_is_named(attributes: dict[str, Any], pad: Any) -> None:
    mapped = read(node("Conv", X.shape, W.shape, **attributes))
    assert mapped is not None
    assert mapped.attrs["pad"] == pad


def test_a_pointwise_convolution_is_same() -> None:
    mapped = read(node("Conv", X.shape, (6, 4, 1, 1), strides=(2, 2)))
    assert mapped is not None
    assert mapped.attrs["pad"] == "same"


def test_unreadable_convolutions_are_opaque() -> None:
    assert read(node("Conv", X.shape, W.shape, group=2)) is None
    assert read(node("Conv", X.shape, W.shape, kernel_shape=(2, 2))) is None
    assert read(node("Conv", X.shape, W.shape, pads=(-1, 0, 0, 0))) is None
    assert read(node("Conv", X.shape, W.shape, dtype="int8")) is None


def test_read_in_full() -> None:
    mapped = read(node("Conv", X.shape, (6, 2, 3, 3), (6,), group=2, dilations=(1, 1)))
    attrs: Any = {"stride": (1, 1), "pad": "valid", "dilation": (), "act": "none"}
    assert mapped == Mapped("conv", ("x0", "x1", "x2"), attrs)


@settings(max_examples=25, deadline=None)
@given(convolutions())
def test_conv_is_read_back(case: tuple[list[tuple[int, ...]], dict[str, Any]]) -> None:
    shapes, attrs = case
    types = [f32(*shape) for shape in shapes]
    conv = get_operator("conv")
    read_attrs = read_back("conv", types, attrs)
    for name in ("stride", "dilation"):
        assert read_attrs[name] == conv.normalize(attrs)[name]
    arrays = [drawn(shape, seed) for seed, shape in enumerate(shapes)]
    attrs = {**attrs, "act": "none"}
    np.testing.assert_array_equal(
        conv.evaluate(arrays, conv.normalize(attrs)), conv.evaluate(arrays, read_attrs)
    )


@pytest.mark.parametrize(("small", "large"), [((1, 1), (3, 3)), ((2, 1), (3, 4)), ((1,), (2,))])
def test_enlarge(small: tuple[int, ...], large: tuple[int, ...]) -> None:
    w, ref = drawn((3, 2, *small), 1), drawn((4, 5, *large), 2)
    check_against_onnxruntime("enlarge", [w, ref], {})
    result = get_operator("enlarge").evaluate([w, ref], {})
    begins = tuple((b - a) // 2 for a, b in zip(small, large, strict=True))
    middle = tuple(slice(b, b + s) for b, s in zip(begins, small, strict=True))
    np.testing.assert_array_equal(result[(..., *middle)], w)
    assert np.count_nonzero(result) == w.size


def test_an_enlarged_odd_kernel_convolves_the_same() -> None:
    conv, enlarge = get_operator("conv"), get_operator("enlarge")
    x, w = drawn((1, 2, 7, 7), 1), drawn((3, 2, 1, 3), 2)
    wide = enlarge.evaluate([w, np.zeros((1, 1, 3, 5))], {})
    for stride in ((1, 1), (2, 2)):
        attrs = conv.normalize({"stride": stride, "pad": "same"})
        np.testing.assert_allclose(conv.evaluate([x, w], attrs), conv.evaluate([x, wide], attrs))


@pytest.mark.parametrize("ref", [(4, 5, 2, 3), (4, 5, 3)])
def test_enlarge_does_not_shrink(ref: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="does not fit into the kernel"):
        get_operator("enlarge").check((f32(6, 4, 3, 3), f32(*ref)), {})


@settings(max_examples=15, deadline=None)
@given(
    count=st.integers(1, 3), fewer=st.integers(1, 3), inner=st.integers(1, 2),
    filters=st.integers(1, 2),
)  # fmt: skip
def test_merged_groups_convolve_the_same(count: int, fewer: int, inner: int, filters: int) -> None:
    groups = count * fewer
    x = drawn((2, groups * inner, 4, 4), 1, "float64")
    w = drawn((groups * filters, inner, 3, 3), 2, "float64")
    attrs: Any = {"count": count, "groups": groups}
    check_against_onnxruntime("merge", [w], attrs)
    merged = get_operator("merge").evaluate([w], attrs)
    assert merged.shape == (groups * filters, inner * count, 3, 3)
    conv = get_operator("conv")
    same = conv.normalize(SAME)
    np.testing.assert_allclose(
        conv.evaluate([x, w], same), conv.evaluate([x, merged], same), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(("count", "groups"), [(2, 3), (0, 2), (2, 4)])
def test_merge_needs_divisors(count: int, groups: int) -> None:
    with pytest.raises(ShapeError, match="must divide"):
        get_operator("merge").check((f32(6, 4, 3, 3),), {"count": count, "groups": groups})
