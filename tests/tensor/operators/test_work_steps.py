"""Stretches of elements that lie side by side, beside an oracle that looks at each element."""

from __future__ import annotations

from itertools import accumulate
from math import prod
from operator import mul

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.work_steps import (
    REREAD,
    REREAD_STRETCH,
    STRETCH,
    scattered_by,
    steps_of_broadcast,
    stretches_of_expansion,
    stretches_of_transposition,
)
from tests.graphs import f32

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=5)


def longest(places: list[NDArray[np.int64]], shape: list[int]) -> int:
    """Return the longest stretch of whole trailing axes in which each operand's places go on or stay.

    Args:
        places: of each operand, where in memory each element of the result comes from.
    """

    def is_one(length: int) -> bool:
        for place in places:
            steps = np.diff(place.reshape(-1, length), axis=1)
            if not ((steps == 1).all() or (steps == 0).all()):
                return False
        return True

    lengths = [1, *accumulate(reversed(shape), mul)]
    return max(length for length in lengths if is_one(length))


@given(SHAPES, st.data())
def test_stretches_of_operands_that_are_broadcast(shape: list[int], data: st.DataObject) -> None:
    operands = []
    for _ in range(2):
        kept = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
        own = [size if keep else 1 for size, keep in zip(shape, kept, strict=True)]
        operands.append(own[data.draw(st.integers(0, len(shape))) :])
    result = list(np.broadcast_shapes(*map(tuple, operands)))
    places = [
        np.broadcast_to(np.arange(prod(own)).reshape(own), result).reshape(-1) for own in operands
    ]
    length = longest(places, result)
    stretches = prod(result) // length
    again = [
        prod(result) - len(np.unique(place))
        for place in places
        if length > 1 and place[1] != place[0]
    ]
    expected = {STRETCH: stretches} if stretches > 1 else {}
    if stretches > 1 and sum(again):
        expected |= {REREAD: sum(again), REREAD_STRETCH: stretches}
    assert dict(steps_of_broadcast(result, *operands)) == expected


@given(SHAPES, st.data())
def test_stretches_of_a_transposition(shape: list[int], data: st.DataObject) -> None:
    perm = data.draw(st.permutations(range(len(shape))))
    places = np.arange(prod(shape)).reshape(shape).transpose(perm)
    length = longest([places.reshape(-1)], [shape[axis] for axis in perm])
    moved = stretches_of_transposition(shape, perm)
    if moved:
        assert moved == prod(shape) // length
    else:
        assert length == 1
    is_one_move = any(
        list(perm) == [*range(a), *range(a + 1, b + 1), a, *range(b + 1, len(perm))]
        or list(perm) == [*range(a), b, *range(a, b), *range(b + 1, len(perm))]
        for a in range(len(perm))
        for b in range(a, len(perm))
    )
    is_copy = moved or places.reshape(-1).tolist() == sorted(places.reshape(-1).tolist())
    assert scattered_by(shape, perm) == (0 if is_copy or is_one_move else prod(shape))


@pytest.mark.parametrize(
    ("op", "kinds", "attrs", "steps"),
    [
        ("mul", (f32(1, 6, 4, 4), f32(1, 6, 1, 1)), {}, {"stretch": 6}),
        ("mul", (f32(1, 6, 4, 4), f32(1)), {}, {}),
        ("add", (f32(5, 8), f32(8)), {}, {"stretch": 5, "reread": 32, "reread_stretch": 5}),
        ("add", (f32(8), f32(2, 5, 8)), {}, {"stretch": 10, "reread": 72, "reread_stretch": 10}),
        ("add", (f32(5, 8), f32(5, 8)), {}, {}),
        ("add", (f32(5, 1), f32(8)), {}, {"stretch": 5, "reread": 32, "reread_stretch": 5}),
        ("add", (f32(1, 8), f32(8)), {}, {}),
        ("add", (f32(0, 8), f32(8)), {}, {}),
        ("add", (f32(3, 0, 4), f32(4)), {}, {}),
        ("transpose", (f32(1, 5, 4, 8),), {"perm": (0, 2, 1, 3)}, {"stretch": 20}),
        ("softmax", (f32(2, 3, 16),), {"axis": 2}, {"row": 6, "ragged_row": 0}),
        ("softmax", (f32(2, 3, 9),), {"axis": 2}, {"row": 6, "ragged_row": 6}),
        ("layer_norm", (f32(2, 3, 9), f32(9), f32(9)), {"axis": 2, "epsilon": 1.0}, {"row": 6}),
        ("matmul", (f32(2, 3, 4, 5), f32(2, 3, 5, 4)), {}, {"matrix": 6}),
        ("matmul", (f32(2, 3, 4, 5), f32(5, 4)), {}, {"packed": 0}),
        ("matmul", (f32(2, 3, 200), f32(200, 4)), {}, {"packed": 288}),
        ("matmul", (f32(1, 1, 200), f32(200, 4)), {}, {"packed": 0}),
        (
            "conv",
            (f32(1, 8, 4, 4), f32(8, 1, 3, 3)),
            {"stride": (1, 1), "pad": "same"},
            {"channelwise": 256},
        ),
    ],
)
def test_steps_of_operators(
    op: str, kinds: tuple[object, ...], attrs: dict[str, object], steps: dict[str, int]
) -> None:
    operator = get_operator(op)
    complete = operator.canonical(kinds, attrs)  # type: ignore[arg-type]
    output = operator.infer(kinds, complete)  # type: ignore[arg-type]
    works = dict(operator.works(kinds, output, complete))  # type: ignore[arg-type]
    assert {name: count for name, count in works.items() if name not in (op, "none")} == steps


def expanded(x: NDArray[np.float64], shape: list[int]) -> tuple[NDArray[np.float64], int]:
    """Broadcast as onnxruntime does; return the result and how many pieces were copied."""
    front = x.reshape((1,) * (len(shape) - x.ndim) + x.shape)
    wide = [axis for axis, size in enumerate(shape) if front.shape[axis] < size]
    result, copies = np.full(shape, np.nan), 0
    if wide:
        for at in np.ndindex(front.shape[: wide[-1] + 1]):
            result[at] = front[at]
            copies += 1
    for axis in reversed(wide):
        for at in np.ndindex(front.shape[:axis]):
            done = 1
            while done < shape[axis]:
                more = min(done, shape[axis] - done)
                result[at][done : done + more] = result[at][:more]
                done, copies = done + more, copies + 1
    return result, copies


@given(SHAPES, st.data())
def test_stretches_of_an_expansion(shape: list[int], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    own = [size if keep else 1 for size, keep in zip(shape, kept, strict=True)]
    own = own[data.draw(st.integers(0, len(own))) :]
    x = np.arange(prod(own), dtype=np.float64).reshape(own)
    result, copies = expanded(x, shape)
    if copies:
        np.testing.assert_array_equal(result, np.broadcast_to(x, shape))
    assert stretches_of_expansion(own, shape) == copies
