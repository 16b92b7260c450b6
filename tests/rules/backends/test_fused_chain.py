"""Bodies of kernels that are one for several sizes."""

from __future__ import annotations

import pytest

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.backends.fused_chain import body_of
from relational_tensat.rules.backends.fused_kernel import FusedPart
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators import get_operator


def _reshaped(said: tuple[int, ...], *shape: int) -> tuple[int, ...]:
    body = body_of([FusedPart("reshape", (0,), {"shape": said})], [1])
    attrs = {"mugraph": "k0", "body": body}
    (kind,) = get_operator("fused").infer((TensorType("float32", shape),), attrs)
    return kind.shape


def test_a_reshape_says_what_it_copies_and_what_is_left() -> None:
    assert _reshaped((0, -1, 8), 5, 3, 16) == (5, 6, 8)
    assert _reshaped((-1, 4), 5, 3, 16) == (60, 4)
    assert _reshaped((0, 0, 4, 4), 2, 3, 16) == (2, 3, 4, 4)
    assert _reshaped((30,), 5, 6) == (30,)


@pytest.mark.parametrize("said", [(-1, -1), (0, 0, 0, -1), (-2, 40), (-1, 7), (0, 5)])
def test_a_reshape_that_says_no_shape_is_refused(said: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError):
        _reshaped(said, 5, 16)
