"""The two fields: laws that numbers have, against Python's whole numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from relational_tensat.mugraph.graph.residues import FAST, LARGE, Primes, Residues
from relational_tensat.tensor.field import Undefined

PRIMES = pytest.mark.parametrize("primes", [FAST, LARGE], ids=["fast", "large"])


@PRIMES
def test_p_and_q_are_primes_and_q_divides_p_minus_1(primes: Primes) -> None:
    for prime in primes.moduli:
        divisors = np.arange(2, int(prime**0.5) + 1)
        assert np.all(prime % divisors)
    assert (primes.p - 1) % primes.q == 0


@PRIMES
def test_exponentials_turn_sums_into_products(primes: Primes) -> None:
    field = Residues(3, primes)
    x, y = field.draw([100], 1), field.draw([100], 2)
    product = field.multiply(field.function("exp", x), field.function("exp", y))
    np.testing.assert_array_equal(product[0], field.function("exp", field.add(x, y))[0])
    assert np.all(product[0] != 1)
    other = Residues(4, primes)
    assert not np.array_equal(other.function("exp", x), field.function("exp", x))


@PRIMES
def test_products_of_matrices_are_those_of_whole_numbers(primes: Primes) -> None:
    field = Residues(0, primes)
    a, b = field.draw([3, 50], 1), field.draw([50, 2], 2)
    computed = field.matmul(a, b)
    for place, modulus in enumerate(primes.moduli):
        exact = a[place].astype(object) @ b[place].astype(object) % modulus
        np.testing.assert_array_equal(computed[place], exact.astype(np.int64))
    largest = np.full((2, 1, 20_000), primes.q - 1)
    (result,) = np.unique(field.matmul(largest, np.swapaxes(largest, 1, 2))[1])
    assert result == (primes.q - 1) ** 2 * 20_000 % primes.q


@PRIMES
def test_a_quotient_times_its_divisor_is_the_dividend(primes: Primes) -> None:
    field = Residues(0, primes)
    a, b = field.draw([50], 1), field.draw([50], 2)
    np.testing.assert_array_equal(field.multiply(field.divide(a, b), b), a)
    eighths, ninths = field.scale(a, Fraction(3, 8)), field.scale(a, Fraction(3, 9))
    np.testing.assert_array_equal(field.scale(eighths, Fraction(8, 9)), ninths)
    with pytest.raises(Undefined):
        field.divide(a, np.zeros_like(b))


@PRIMES
def test_the_largest_is_one_in_a_random_order_that_knows_no_zero(primes: Primes) -> None:
    field, other = Residues(1, primes), Residues(2, primes)
    x = field.draw([3, 40], 1)
    largest = field.largest(x, [-1])
    for row, element in zip(x.reshape(-1, 40), largest.ravel(), strict=True):
        assert element in row
    halves = [field.largest(x[..., part], [-1]) for part in (slice(15), slice(15, 40))]
    np.testing.assert_array_equal(field.larger(*halves), largest)  # as of any order
    np.testing.assert_array_equal(field.larger(*halves[::-1]), largest)
    assert not np.array_equal(other.largest(x, [-1]), largest)
    beside = np.concatenate([x[..., :1], np.zeros_like(x[..., :1])], axis=-1)
    kept = [
        np.array_equal(Residues(seed, primes).largest(beside, [-1]), x[..., 0]) for seed in range(8)
    ]
    assert not all(kept)  # 0 is the lowest residue, and no lowest number
    np.testing.assert_array_equal(field.largest(x, []), x)


@PRIMES
def test_an_exponential_in_the_exponent_of_another_is_a_function_of_its_own(primes: Primes) -> None:
    field = Residues(3, primes)
    x, y = field.draw([100], 1), field.draw([100], 2)
    inner = [field.function("exp", value) for value in (x, y, x)]
    twice = [field.function("exp", value)[0] for value in inner]
    np.testing.assert_array_equal(twice[0], twice[2])
    assert np.count_nonzero(twice[0] == twice[1]) < 2
    added = field.function("exp", field.add(inner[0], inner[1]))[0]
    np.testing.assert_array_equal(added, twice[0] * twice[1] % primes.p)  # of any two
