"""Pools against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.operators import get_operator
from tests.tensor.operators.onnx_oracle import (
    check_against_onnxruntime,
    node,
    read,
    read_back,
    write,
)
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_matmul import f32


@st.composite
def pools(draw: st.DrawFn) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    op = draw(st.sampled_from(["max_pool", "avg_pool"]))
    rank = draw(st.sampled_from([2, 1, 3]))
    sizes, kernel, stride = (draw(st.tuples(*[st.integers(1, top)] * rank)) for top in (8, 3, 3))
    numbers = draw(st.tuples(*[st.integers(0, 2)] * (2 * rank)))
    attrs: Any = {
        "kernel": kernel,
        "stride": stride,
        "pad": draw(st.sampled_from(["same", "valid", numbers])),
        "dilation": draw(st.sampled_from([(), (2,) * rank])),
        "ceil_mode": draw(st.booleans()),
        "act": draw(st.sampled_from(["none", "relu"])),
    }
    if op == "avg_pool":
        attrs["count_include_pad"] = draw(st.booleans())
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *sizes)
    try:
        get_operator(op).check((f32(*shape),), attrs)
    except ShapeError:
        assume(False)
    return op, shape, attrs


@settings(max_examples=60, deadline=None)
@given(pools(), st.sampled_from([13, 20]))
def test_pools(case: tuple[str, tuple[int, ...], dict[str, Any]], opset: int) -> None:
    op, shape, attrs = case
    check_against_onnxruntime(op, [drawn(shape, 1)], attrs, opset)


@settings(max_examples=30, deadline=None)
@given(pools())
def test_pools_are_read_back(case: tuple[str, tuple[int, ...], dict[str, Any]]) -> None:
    op, shape, attrs = case
    assume(op == "max_pool" or not attrs["dilation"])  # these become a convolution
    attrs = {**attrs, "act": "none", "ceil_mode": False}
    pool, x = get_operator(op), drawn(shape)
    read_attrs = read_back(op, [f32(*shape)], attrs)
    for name in ("kernel", "stride"):
        assert read_attrs[name] == attrs[name]
    np.testing.assert_array_equal(
        pool.evaluate([x], pool.normalize(attrs)), pool.evaluate([x], read_attrs)
    )


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"kernel": (2,), "stride": (1, 1), "pad": "valid"}, "kernel"),
        ({"kernel": (2, 2), "stride": (1, 1), "pad": (2, 2, 0, 0)}, "less padding than kernel"),
        ({"kernel": (5, 5), "stride": (1, 1), "pad": "valid"}, "does not fit"),
        ({"kernel": (2, 2), "stride": (1, 1), "pad": "valid", "count": 1}, "no attribute"),
    ],
)
@pytest.mark.parametrize("op", ["max_pool", "avg_pool"])
def test_misfits_are_refused(op: str, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        get_operator(op).check((f32(1, 2, 4, 4),), attrs)


def test_max_pool_does_not_count_include_pad() -> None:
    attrs: Any = {"kernel": (2, 2), "stride": (1, 1), "pad": "valid", "count_include_pad": True}
    with pytest.raises(ShapeError, match="no attribute"):
        get_operator("max_pool").check((f32(1, 2, 4, 4),), attrs)


def test_flops_count_window_elements() -> None:
    pool = get_operator("max_pool")
    attrs = pool.normalize({"kernel": (3, 3), "stride": (2, 2), "pad": "same", "act": "relu"})
    types = (f32(1, 2, 8, 8),)
    assert pool.flops(types, pool.check(types, attrs), attrs) == 2 * 16 * 9


def test_rounding_up_is_kept_only_where_it_adds_a_window() -> None:
    for size, expected in ((7, False), (8, True)):
        seen = node("MaxPool", (1, 2, size), kernel_shape=(3,), strides=(2,), ceil_mode=1)
        mapped = read(seen)
        assert mapped is not None
        assert mapped.attrs["ceil_mode"] is expected


def test_strides_default_to_1() -> None:
    mapped = read(node("AveragePool", (1, 2, 7, 7), kernel_shape=(3, 3), count_include_pad=1))
    assert mapped is not None
    assert mapped.attrs["stride"] == (1, 1)
    assert mapped.attrs["count_include_pad"] is False  # nothing is padded


@pytest.mark.parametrize(
    "seen",
    [
        node("MaxPool", (1, 2, 7), kernel_shape=(3,), outputs=("y", "indices")),
        node("MaxPool", (1, 2, 7), kernel_shape=(3,), dtype="int16"),
        node("MaxPool", (1, 2, 7, 7, 7, 7), kernel_shape=(3,) * 4),
    ],
    ids=["indices", "integers", "4 dimensions"],
)
def test_unreadable_pools_are_opaque(seen: Any) -> None:
    assert read(seen) is None


def test_an_unused_second_output_does_not_matter() -> None:
    assert read(node("MaxPool", (1, 2, 7), kernel_shape=(3,), outputs=("y", ""))) is not None


def test_windows_of_padding_only_do_not_count() -> None:
    # The second dimension has a window left over that starts in the padding, the first has none.
    attrs: Any = {"kernel": (2, 2), "stride": (2, 2), "pad": (0, 1, 0, 1), "ceil_mode": True}
    for op in ("max_pool", "avg_pool"):
        assert get_operator(op).check((f32(1, 1, 3, 1),), attrs) == f32(1, 1, 2, 1)
        check_against_onnxruntime(op, [drawn((1, 1, 3, 1))], attrs, 13)
    seen = node(
        "MaxPool", (1, 1, 3, 1), kernel_shape=(2, 2), strides=(2, 2), pads=(0, 1, 0, 1), ceil_mode=1
    )
    assert read(seen) is None  # ONNX's shape inference counts it


def test_the_global_mean_is_a_reduction() -> None:
    mapped = read(node("GlobalAveragePool", (2, 3, 4, 5)))
    assert mapped is not None
    assert (mapped.op, mapped.attrs) == ("reduce_mean", {"axes": (2, 3), "keepdims": True})


def test_the_global_maximum_is_a_pool_which_has_its_own_numbers_for_nan_and_infinity() -> None:
    mapped = read(node("GlobalMaxPool", (2, 3, 4, 5)))
    assert mapped is not None
    assert (mapped.op, mapped.attrs["kernel"]) == ("max_pool", (4, 5))
    written = write(mapped.op, [f32(2, 3, 4, 5)], mapped.attrs, 20)
    assert [made.op_type for made in written.emitter.nodes] == ["GlobalMaxPool"]
