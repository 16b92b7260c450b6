"""The functions of lists and of element types: what they give, and where they do not apply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.rules.functions import Inapplicable, get_function
from relational_tensat.tensor.types import DTYPE_BYTES, FLOAT_DTYPES, TensorType
from tests.rules.function_values import assert_value

ROW = TensorType("float32", (6, 1, 1))


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("place", (-1, 4), 3), ("whole", (-2.0,), -2),
        ("scatter", ((1, 2, 3), (-1, 0), (8, 9)), (9, 2, 8)), ("scatter", ((1,), (), ()), (1,)),
        ("subtract-lists", ((1, 2), (3, 1)), (-2, 1)), ("multiply-lists", ((2, 3), (3, 4)), (6, 12)),
        ("each-at-most", ((1, 2), (1, 3)), True), ("each-at-most", ((1, 4), (1, 3)), False),
        ("without-zeros", ((0, 2, 0, 1),), (2, 1)), ("union", ((3, 0), (1, 3)), (0, 1, 3)),
        ("ranks", ((7, 2, 4),), (2, 0, 1)), ("padded-axes", ((0, 1, 0, 2, 0, 0),), (0, 1)),
        ("counts", ((0, 1), (5, 2), (2, 1)), (3, 1)),
        ("constant-along", (ROW, 4, (0, 2, -1)), True), ("constant-along", (ROW, 4, (1,)), False),
        ("constant-along", (ROW, 2, ()), False),
        ("holds-all", ("float32", "float16"), True), ("holds-all", ("float16", "float32"), False),
        ("holds-all", ("float16", "bfloat16"), False), ("holds-all", ("float32", "int16"), True),
        ("holds-all", ("float32", "int32"), False), ("holds-all", ("float64", "int32"), True),
        ("holds-all", ("int16", "uint8"), True), ("holds-all", ("int8", "uint8"), False),
        ("holds-all", ("bool", "int8"), False), ("holds-all", ("bfloat16", "uint8"), True),
        ("holds-all", ("int8", "bool"), True), ("holds-all", ("int64", "float16"), False),
        ("holds-all", ("string", "string"), False),
    ],
)  # fmt: skip
def test_values(name: str, args: tuple[Any, ...], expected: object) -> None:
    assert_value(name, args, expected)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("place", (4, 4)), ("whole", (0.5,)), ("whole", (float("inf"),)),
        ("scatter", ((1, 2), (2,), (0,))), ("scatter", ((1, 2), (0,), ())),
        ("subtract-lists", ((1,), ())), ("multiply-lists", ((1,), ())),
        ("each-at-most", ((), (1,))), ("ranks", ((1, 1),)), ("counts", ((0,), (1,), (0,))),
        ("counts", ((0,), (1, 2), (1,))), ("constant-along", (ROW, 4, (4,))),
    ],
)  # fmt: skip
def test_where_they_do_not_apply(name: str, args: tuple[Any, ...]) -> None:
    with pytest.raises(Inapplicable):
        get_function(name).call(*args)


@given(st.integers(0, 5), st.integers(0, 9), st.integers(1, 4))
def test_counts_is_what_a_slice_takes(start: int, end: int, step: int) -> None:
    taken = np.arange(9)[start:end:step]
    assert get_function("counts").call((start,), (end,), (step,)) == (len(taken),)


_NUMPY = [dtype for dtype in DTYPE_BYTES if dtype != "bfloat16"]


@settings(max_examples=200)
@given(st.sampled_from(_NUMPY), st.sampled_from(_NUMPY), st.data())
def test_what_holds_all_gives_back_every_value(wide: str, narrow: str, data: st.DataObject) -> None:
    if not get_function("holds-all").call(wide, narrow):
        return
    if narrow in FLOAT_DTYPES:
        value = data.draw(st.floats(-6e4, 6e4))
    elif narrow == "bool":
        value = data.draw(st.booleans())
    else:
        limits = np.iinfo(narrow)
        value = data.draw(st.integers(int(limits.min), int(limits.max)))
    array = np.array(value, narrow)
    assert array.astype(wide).astype(narrow) == array
