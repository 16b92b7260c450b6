"""Arithmetic modulo the prime, against Python's own whole numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.tensor.field import MOST_PRODUCTS, PRIME, Field, Undefined

FIELD = Field(0)
RNG = np.random.default_rng(0)

residues = st.integers(0, PRIME - 1)


def drawn(*shape: int) -> np.ndarray:
    return RNG.integers(0, PRIME, size=shape)


def test_the_modulus_is_prime_and_no_sum_overflows() -> None:
    assert all(PRIME % divisor for divisor in range(2, math.isqrt(PRIME) + 1))
    assert MOST_PRODUCTS * (PRIME - 1) ** 2 < 2**63


@pytest.mark.parametrize("inner", [1, 5, MOST_PRODUCTS, MOST_PRODUCTS + 1, 500])
def test_matrix_products_of_any_length_are_exact(inner: int) -> None:
    a = np.full((2, 3, inner), PRIME - 1)
    b = np.full((2, inner, 2), PRIME - 1)
    a[0], b[0] = drawn(3, inner), drawn(inner, 2)
    product = FIELD.matmul(a, b)
    for i, j, k in np.ndindex(2, 3, 2):
        terms = (int(x) * int(y) for x, y in zip(a[i, j], b[i, :, k], strict=True))
        assert product[i, j, k] == sum(terms) % PRIME


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_become_quotients_exactly(value: float) -> None:
    numerator, denominator = value.as_integer_ratio()
    assert FIELD.constant(value) * denominator % PRIME == numerator % PRIME


def test_what_is_no_number_is_undefined() -> None:
    for value in (math.inf, -math.inf, math.nan):
        with pytest.raises(Undefined):
            FIELD.constant(value)
    with pytest.raises(Undefined):
        FIELD.inverse(np.array([1, 0, 2]))


@pytest.mark.parametrize("size", [1, 64, 65, 200])
def test_an_element_times_its_inverse_is_one(size: int) -> None:
    x = RNG.integers(1, PRIME, size=(size, 1))
    assert np.all(FIELD.multiply(x, FIELD.inverse(x)) == 1)


@given(residues, st.integers(0, 12))
def test_powers(base: int, exponent: int) -> None:
    assert FIELD.power(np.array([base]), exponent)[0] == pow(base, exponent, PRIME)


def test_powers_with_exponents_that_are_elements() -> None:
    base = RNG.integers(1, PRIME, size=(3,))
    for exponent, expected in ((2, base * base % PRIME), (0, np.ones(3)), (1, base)):
        assert np.array_equal(FIELD.raised(base, np.array(exponent)), expected)
    inverse = FIELD.raised(base, np.array(PRIME - 1))
    assert np.array_equal(inverse, FIELD.inverse(base))
    half = np.array(FIELD.constant(0.5))
    assert np.array_equal(FIELD.raised(base, half), FIELD.function("sqrt", base))
    minus_half = FIELD.raised(base, np.array(FIELD.constant(-0.5)))
    assert np.array_equal(minus_half, FIELD.root_inverse(base))
    assert not np.array_equal(FIELD.raised(base, np.array(9)), FIELD.power(base, 9))
    scalar = FIELD.raised(np.array(7), np.array(2))
    assert scalar == 49


def test_means_sums_and_products_over_axes() -> None:
    x = drawn(2, 3, 4)
    total = FIELD.sum(x, [0, 2], keepdims=False)
    assert np.array_equal(total, [int(x[:, i].sum()) % PRIME for i in range(3)])
    mean = FIELD.mean(x, [0, 2])
    assert mean.shape == (1, 3, 1) and np.array_equal(FIELD.multiply(mean, 8)[0, :, 0], total)
    product = FIELD.product(x, [0, 2], keepdims=True)
    expected = [math.prod(map(int, x[:, i].ravel())) % PRIME for i in range(3)]
    assert product.shape == (1, 3, 1) and np.array_equal(product[0, :, 0], expected)


def test_functions_are_functions_and_differ_by_name_and_seed() -> None:
    x = drawn(50)
    assert np.array_equal(FIELD.function("relu", x), Field(0).function("relu", x))
    assert np.array_equal(FIELD.function("relu", x[::-1]), FIELD.function("relu", x)[::-1])
    for other in (FIELD.function("tanh", x), Field(1).function("relu", x)):
        assert not np.any(FIELD.function("relu", x) == other)
    pairs = FIELD.function("pow", x, x[::-1])
    assert not np.any(pairs == FIELD.function("pow", x[::-1], x))
    values = FIELD.function("relu", np.arange(20_000))
    assert values.min() >= 0 and values.max() < PRIME
    assert abs(values.mean() / PRIME - 0.5) < 0.02 and len(set(values.tolist())) > 19_990
    assert np.array_equal(FIELD.activate("none", x), x)
    assert np.array_equal(FIELD.activate("relu", x), FIELD.function("relu", x))


def test_the_random_order_is_total_and_is_not_that_of_numbers() -> None:
    x = np.arange(1000)
    order = FIELD.rank(x)
    assert len(set(order.tolist())) == 1000
    grid = x.reshape(10, 100)
    largest = FIELD.largest(grid, [1], keepdims=False)
    assert np.array_equal(largest, [row[np.argmax(FIELD.rank(row))] for row in grid])
    assert not np.array_equal(largest, grid.max(axis=1))
    of_all = FIELD.largest(largest, [0], keepdims=True)
    assert np.array_equal(of_all, FIELD.largest(grid, [0, 1], keepdims=False).reshape(1))
    smallest = FIELD.largest(grid, [0], keepdims=True, smallest=True)
    assert smallest.shape == (1, 100)
    assert smallest[0, 3] == grid[np.argmin(FIELD.rank(grid[:, 3])), 3]


def test_only_whole_numbers_are_reduced() -> None:
    assert np.array_equal(FIELD.reduced(np.array([-1, PRIME])), [PRIME - 1, 0])
    assert [part.tolist() for part in FIELD.reduced((np.array(-1), np.array(True)))] == [
        PRIME - 1,
        1,
    ]
    with pytest.raises(TypeError, match="whole numbers"):
        FIELD.reduced(np.array([0.5]))
