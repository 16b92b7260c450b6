"""Where buffers are placed, against the rule itself, slowly."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.memory import (
    ALIGNMENT_BYTES,
    Lifetime,
    broadcast,
    collapse,
    contiguous,
    decode,
    element_bits,
    encode,
    least_bytes,
    padded,
    place,
    rounded,
)
from relational_tensat.tensor import TensorType
from tests.gpu.numpy_memory import strided
from tests.strategies import shapes


@given(shapes(), st.randoms(use_true_random=False))
def test_collapsing_changes_no_offset(shape: tuple[int, ...], random: object) -> None:
    order = list(range(len(shape)))
    random.shuffle(order)  # type: ignore[attr-defined]
    strides = contiguous(shape)
    view = tuple(strides[axis] for axis in order)
    sizes = tuple(shape[axis] for axis in order)
    repeated = tuple(0 if axis % 2 else stride for axis, stride in enumerate(view))
    new_sizes, one, other = collapse(sizes, view, repeated)
    assert len(new_sizes) <= len(sizes) and 1 not in new_sizes
    for new, old in ((one, view), (other, repeated)):
        np.testing.assert_array_equal(
            strided(new_sizes, new).reshape(-1), strided(sizes, old).reshape(-1)
        )


def test_broadcast_is_numpys() -> None:
    x = np.arange(6).reshape(2, 1, 3)
    offsets = strided((4, 2, 5, 3), broadcast(x.shape, (4, 2, 5, 3)))
    np.testing.assert_array_equal(x.reshape(-1)[offsets], np.broadcast_to(x, (4, 2, 5, 3)))


def test_more_axes_than_a_kernel_has_are_refused() -> None:
    assert padded((2, 3), 4, 1) == (1, 1, 2, 3)
    with pytest.raises(InputError, match="2 axes at most, not 3"):
        padded((1, 2, 3), 2, 0)


def test_bfloat16_rounds_to_nearest_even() -> None:
    inputs = np.array([1.0, 1.00390625, 1.01171875, -2.5, np.inf, np.nan, 3.4e38], np.float32)
    expected = np.array([1.0, 1.0, 1.015625, -2.5, np.inf, np.nan, np.inf], np.float32)
    kind = TensorType("bfloat16", (7,))
    np.testing.assert_array_equal(decode(encode(inputs, "bfloat16"), kind), expected)
    assert element_bits(1.0, "bfloat16") == 0x3F80
    assert element_bits(-1.0, "int64") == 2**64 - 1
    assert rounded(np.array([1 / 3]), "float16").dtype == np.float64


@st.composite
def lifetimes(draw: st.DrawFn) -> list[Lifetime]:
    spans = draw(
        st.lists(st.tuples(st.integers(1, 2000), st.integers(0, 9), st.integers(0, 5)), max_size=12)
    )
    return [Lifetime(f"b{i}", size, at, at + span) for i, (size, at, span) in enumerate(spans)]


@given(lifetimes())
def test_buffers_that_live_at_the_same_time_do_not_overlap(buffers: list[Lifetime]) -> None:
    placement = place(buffers)
    for one, other in combinations(buffers, 2):
        if set(range(one.first, one.last + 1)) & set(range(other.first, other.last + 1)):
            a, b = placement.offsets[one.name], placement.offsets[other.name]
            assert a + one.nbytes <= b or b + other.nbytes <= a
    for buffer in buffers:
        offset = placement.offsets[buffer.name]
        assert offset % ALIGNMENT_BYTES == 0
        assert offset + buffer.nbytes <= placement.total_bytes
    assert placement.total_bytes >= least_bytes(buffers)


def test_what_is_no_longer_needed_is_used_again() -> None:
    chain = [Lifetime(f"b{i}", 1024, i, i + 1) for i in range(10)]
    assert place(chain).total_bytes == 2 * 1024 == least_bytes(chain)
    assert place([]).total_bytes == 0
