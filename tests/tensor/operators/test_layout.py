"""Transpose, reshape and pad against onnxruntime, and how they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.operators import Mapped, get_operator
from tests.tensor.operators.onnx_oracle import check_against_onnxruntime, node, read, read_back
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_matmul import f32

X = f32(2, 3, 4)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


@settings(max_examples=8, deadline=None)
@given(st.permutations(range(4)))
def test_transpose(perm: list[int]) -> None:
    attrs: Any = {"perm": tuple(perm)}
    check_against_onnxruntime("transpose", [drawn((1, 2, 3, 4))], attrs)
    assert read_back("transpose", [f32(1, 2, 3, 4)], attrs) == attrs


def test_transpose_reverses_by_default() -> None:
    assert read(node("Transpose", (2, 3, 4))) == Mapped("transpose", ("x0",), {"perm": (2, 1, 0)})


@pytest.mark.parametrize("shape", [(24,), (4, 6), (1, 24, 1), (2, 3, 2, 2)])
def test_reshape(shape: tuple[int, ...]) -> None:
    check_against_onnxruntime("reshape", [drawn((2, 3, 4))], {"shape": shape})
    assert read_back("reshape", [X], {"shape": shape}) == {"shape": shape}


def test_reshape_to_a_scalar() -> None:
    check_against_onnxruntime("reshape", [drawn((1, 1))], {"shape": ()})


def test_expand() -> None:
    check_against_onnxruntime("expand", [drawn((3, 1))], {"shape": (2, 3, 4)})
    assert read_back("expand", [f32(3, 1)], {"shape": (2, 3, 4)}) == {"shape": (2, 3, 4)}
    assert read(node("Expand", (3, 1), ints(3, 4))) == Mapped("expand", ("x0",), {"shape": (3, 4)})
    assert read(node("Expand", (3, 1), ints(2, 1))) is None
    assert read(node("Expand", (2, 3), ints(1, 3))) == Mapped("expand", ("x0",), {"shape": (2, 3)})
    assert read(node("Expand", (2, 3), (1,))) is None  # known at run time only


def test_a_single_number_has_no_border() -> None:
    kind, attrs = f32(), {"pads": (), "mode": "constant", "value": 2.0}
    assert get_operator("pad").check((kind,), attrs) == kind
    assert get_operator("pad").evaluate([np.array(3.0)], attrs) == 3.0


@pytest.mark.parametrize("shape", [(3,), (2, 2), (2, 0), (-1, 2, 3)])
def test_what_does_not_broadcast_is_not_expanded(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError):
        get_operator("expand").check((f32(2, 3),), {"shape": shape})


@pytest.mark.parametrize(
    ("seen", "shape"),
    [
        (node("Reshape", (2, 3, 4), ints(0, -1)), (2, 12)),
        (node("Reshape", (2, 3, 4), ints(6, 4), allowzero=1), (6, 4)),
        (node("Reshape", (2, 3, 4), opset=1, shape=(4, -1)), (4, 6)),
        (node("Flatten", (2, 3, 4)), (2, 12)),
        (node("Flatten", (2, 3, 4), axis=0), (1, 24)),
        (node("Flatten", (2, 3, 4), axis=3), (24, 1)),
        (node("Flatten", (2, 3, 4), axis=-1), (6, 4)),
        (node("Squeeze", (1, 3, 1)), (3,)),
        (node("Squeeze", (1, 3, 1), ints(-1)), (1, 3)),
        (node("Squeeze", (1, 3, 1), opset=11, axes=(0,)), (3, 1)),
        (node("Unsqueeze", (3, 4), ints(0, -1)), (1, 3, 4, 1)),
        (node("Unsqueeze", (3, 4), opset=11, axes=(1,)), (3, 1, 4)),
    ],
)
def test_changes_of_shape_are_reshapes(seen: Any, shape: tuple[int, ...]) -> None:
    assert read(seen) == Mapped("reshape", ("x0",), {"shape": shape})


@pytest.mark.parametrize(
    "seen",
    [
        node("Reshape", (2, 3), (2,)),
        node("Reshape", (2, 3), ints(4, -1)),
        node("Reshape", (2, 3), ints(0, 0), allowzero=1),
        node("Reshape", (2, 3), ints(0, 0, 0)),
        node("Reshape", (2, 3), ints(-1, -1)),
        node("Squeeze", (2, 3), ints(0)),
    ],
)
def test_shapes_that_do_not_fit_or_are_not_known_are_opaque(seen: Any) -> None:
    assert read(seen) is None


@settings(max_examples=20, deadline=None)
@given(
    pads=st.tuples(*[st.integers(0, 1)] * 6),
    mode=st.sampled_from(["constant", "reflect", "edge"]),
    value=st.sampled_from([0.0, -1.5]),
    opset=st.sampled_from([13, 19]),
)
def test_pad(pads: tuple[int, ...], mode: str, value: float, opset: int) -> None:
    attrs: Any = {"pads": pads, "mode": mode, "value": value}
    check_against_onnxruntime("pad", [drawn((2, 3, 2))], attrs, opset)
    back = read_back("pad", [f32(2, 3, 2)], attrs, opset)
    assert back == get_operator("pad").normalize(attrs)


def test_pad_of_all_versions() -> None:
    expected = Mapped("pad", ("x0",), {"pads": (0, 1, 0, 2), "mode": "constant", "value": 0.5})
    assert read(node("Pad", (2, 3), opset=2, pads=(0, 1, 0, 2), value=0.5)) == expected
    assert read(node("Pad", (2, 3), opset=1, paddings=(0, 1, 0, 2), value=0.5)) == expected
    half = np.array(0.5, np.float32)
    assert read(node("Pad", (2, 3), ints(0, 1, 0, 2), half)) == expected
    assert read(node("Pad", (2, 3), ints(1, 2), half, ints(-1))) == expected


@pytest.mark.parametrize(
    "seen",
    [
        node("Pad", (2, 3), ints(0, -1, 0, 0)),
        node("Pad", (2, 3), ints(0, 1, 0, 0), mode="wrap"),
        node("Pad", (2, 3), ints(0, 3, 0, 0), mode="reflect"),
        node("Pad", (2, 3), ints(0, 1, 0, 0), ()),
        node("Pad", (2, 3), (4,)),
    ],
    ids=["negative", "wrap", "too far", "value at run time", "pads at run time"],
)
def test_other_pads_are_opaque(seen: Any) -> None:
    assert read(seen) is None


@pytest.mark.parametrize(
    ("op", "attrs", "message"),
    [
        ("transpose", {"perm": (0, 1)}, "no permutation of 0..2"),
        ("transpose", {"perm": (0, 1, 1)}, "no permutation"),
        ("reshape", {"shape": (5, 5)}, "has 24 elements"),
        ("reshape", {"shape": (24, 0)}, "has 24 elements"),
        ("reshape", {"shape": (-24, -1)}, "has 24 elements"),
        ("pad", {"pads": (1, 1)}, "expected 6 non-negative"),
        ("pad", {"pads": (2,) * 6, "mode": "reflect"}, "reflect more than"),
    ],
)
def test_misfits_are_refused(op: str, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        get_operator(op).check((X,), attrs)


@pytest.mark.parametrize(
    ("op", "attrs"), [("reshape", {"shape": (24,)}), ("transpose", {"perm": (2, 1, 0)})]
)
def test_moving_elements_computes_nothing(op: str, attrs: dict[str, Any]) -> None:
    operator = get_operator(op)
    output = operator.check((X,), attrs)
    assert operator.flops((X,), output, attrs) == 0
    assert operator.bytes_moved((X,), output, attrs) == 2 * 24 * 4
