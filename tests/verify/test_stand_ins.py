"""Random functions: the same for the same, smooth, and every element of every input matters."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.tensor import TensorType
from relational_tensat.verify.stand_ins import stand_in
from tests.graphs import f32


def test_they_are_functions_of_name_and_operands() -> None:
    x = np.random.default_rng(0).standard_normal((3, 4))
    first, again, other = (stand_in(n, [x], [f32(2, 5)])[0] for n in ("f", "f", "g"))
    assert first.shape == (2, 5)
    np.testing.assert_array_equal(first, again)
    assert not np.isclose(first, other).any()


@pytest.mark.parametrize("shape", [(1,), (2, 2), (5, 7), ()])
def test_every_element_matters_and_rounding_does_not(shape: tuple[int, ...]) -> None:
    x, y = np.linspace(-1, 1, 6), np.linspace(1, 2, 4)
    (before,) = stand_in("f", [x, y], [f32(*shape)])
    assert before.shape == shape
    for operand in (x, y):
        for index in range(operand.size):
            kept = operand[index]
            operand[index] += 0.01
            (moved,) = stand_in("f", [x, y], [f32(*shape)])
            operand[index] = kept
            assert np.abs(moved - before).max() > 1e-3
    (rounded,) = stand_in("f", [x * (1 + 1e-15), y], [f32(*shape)])
    np.testing.assert_allclose(rounded, before, rtol=1e-12, atol=1e-12)


def test_values_of_all_kinds() -> None:
    operands = [np.array(["a", "b"], object), [np.ones(2), np.zeros(3)], np.array([True])]
    kinds = [TensorType("int64", (4,)), TensorType("bool", (2, 2)), TensorType("opaque:", ())]
    whole, flags, features = stand_in("f", operands, kinds)
    assert whole.dtype == np.int64 and set(whole.tolist()) <= {0, 1}
    assert flags.dtype == np.bool_ and flags.shape == (2, 2)
    assert features.ndim == 1  # nothing is known of it
    changed = stand_in("f", [np.array(["a", "c"], object), *operands[1:]], kinds)
    assert not np.array_equal(changed[2], features)
    assert stand_in("f", [np.zeros((0, 3))], [f32(0, 2)])[0].shape == (0, 2)
