"""Pairs of residues modulo p and q with q | p - 1: Table 3 of Mirage's paper (section 5.2).

Values outside of an exponential are computed modulo p, values inside modulo q. exp(x) is ω to the x for a
random q-th root of unity ω: then ω^x ω^y = ω^(x+y), for all x and y. The primes are small enough for
products of matrices to be exact in float64, where a processor is fastest. They are large enough for two
different functions to agree at random in a few of a million points only.

A function that is neither a polynomial nor an exponential is a random function of the residues
(``tensor.field``): laws that hold for it hold for every function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache

import numpy as np

from relational_tensat.mugraph.graph.arithmetic import Elements
from relational_tensat.tensor.field import Field, Undefined


@dataclass(frozen=True, slots=True)
class Primes:
    """Two primes, p = 2q + 1; ``most_products``: so many products of residues are summed exactly."""

    p: int
    q: int
    most_products: int

    @property
    def moduli(self) -> tuple[int, int]:
        """Both, p first."""
        return self.p, self.q


#: For tensors of any size: products of matrices are exact in float64, as 8,990 (p - 1)² < 2^53.
FAST = Primes(1_000_919, 500_459, 8_990)
#: For the bound of Theorem 3, which wants a large q, on small tensors: a product of residues is below 2^63.
LARGE = Primes(2_147_483_579, 1_073_741_789, 1)


#: An exponent is read by so many bits at a time.
_DIGIT_BITS = 6


class Residues:
    """The two fields, with ω and the random functions that a seed determines.

    Arrays have an axis of their own: residues modulo p, then modulo q. An exponential is no residue modulo
    q: it is a random function there, so that what holds in the exponent of another holds of any function.
    """

    own_axes = 1

    def __init__(self, seed: int, primes: Primes = FAST) -> None:
        self._primes = primes
        self._moduli = np.array(primes.moduli)
        self._random = Field(seed)
        generator = np.random.default_rng([seed, primes.p])
        self._root = 1
        while self._root == 1:  # squares are the q-th roots of unity
            self._root = int(generator.integers(2, primes.p)) ** 2 % primes.p
        self._factor = int(generator.integers(2, primes.q))

    def draw(self, sizes: Sequence[int], seed: int) -> Elements:
        """Return random elements, none of them 0."""
        generator = np.random.default_rng(seed)
        return np.stack(
            [generator.integers(1, modulus, tuple(sizes)) for modulus in self._primes.moduli]
        )

    @property
    def in_block(self) -> Residues:
        """The same: residues are exact."""
        return self

    def loaded(self, x: Elements) -> Elements:
        return x

    def stored(self, x: Elements, *, is_wide: bool) -> Elements:
        return x

    def add(self, a: Elements, b: Elements) -> Elements:
        return self._reduced(a + b)

    def subtract(self, a: Elements, b: Elements) -> Elements:
        return self._reduced(a - b)

    def multiply(self, a: Elements, b: Elements) -> Elements:
        return self._reduced(a * b)

    def divide(self, a: Elements, b: Elements) -> Elements:
        """Return a / b.

        Raises:
            Undefined: an element of b is 0 modulo p: other inputs have to be drawn. (Modulo q it may be,
                where it is of no further use, and the quotient is 0 then.)
        """
        if not np.all(b[0]):
            raise Undefined
        parts = zip(self._primes.moduli, b, strict=True)
        inverse = np.stack([self._inverse(part, modulus) for modulus, part in parts])
        return self._reduced(a * inverse)

    def divide_or_zero(self, a: Elements, b: Elements) -> Elements:
        """Return a / b times a random number: linear in a as a quotient is, and never taken for one.

        Raises:
            Undefined: as for ``divide``.
        """
        return self._reduced(self.divide(a, b) * self._factor)

    def power(self, a: Elements, b: Elements | float) -> Elements:
        """Return a random function of both, or of a: exponents are no residues."""
        if isinstance(b, float):
            return self.function(f"power {b}", a)
        return self._function_of_two("pow", a, b)

    def compared(self, name: str, a: Elements, b: Elements | float) -> Elements:
        """Return a random function: residues have no order, and nothing may hold because of one."""
        if isinstance(b, float):
            return self.function(f"{name} {b}", a)
        return self._function_of_two(name, a, b)

    def kept(self, condition: Elements, x: Elements, value: float) -> Elements:
        """Return a random function of both: laws that hold for it hold for any choice."""
        return self._function_of_two(f"keep {value}", condition, x)

    def _function_of_two(self, name: str, a: Elements, b: Elements) -> Elements:
        parts = zip(a, b, strict=True)
        return self._reduced(np.stack([self._random.function(name, x, y) for x, y in parts]))

    def matmul(self, a: Elements, b: Elements) -> Elements:
        inner, most = a.shape[-1], self._primes.most_products
        total: Elements = np.zeros((), np.int64)
        for start in range(0, inner, most):
            left, right = a[..., start : start + most], b[..., start : start + most, :]
            total = self._reduced(total + self._piece(left, right))
        return total

    def _piece(self, a: Elements, b: Elements) -> Elements:
        """Return the matrix products of so few products each that they are exact."""
        if self._primes.most_products == 1:
            return self._reduced(a * b)
        product: Elements = np.matmul(a.astype(np.float64), b.astype(np.float64))
        return product.astype(np.int64)

    def sum(self, x: Elements, axes: Sequence[int]) -> Elements:
        return self._reduced(np.asarray(np.sum(x, axis=tuple(axes))))

    def largest(self, x: Elements, axes: Sequence[int]) -> Elements:
        """Return the elements that are last in a random total order.

        Laws that hold of them hold in every order; so nothing holds because 0 is the lowest residue.
        """
        shifted = [axis % x.ndim for axis in axes]
        return self._random.largest(x, shifted, keepdims=False) if shifted else x

    def reduce_max(self, x: Elements, axes: Sequence[int]) -> Elements:
        """Return a random function of the elements, in whatever order they are."""
        return self.function("reduce_max", self.largest(x, axes))

    def larger(self, a: Elements, b: Elements) -> Elements:
        """Return the elements that are later in the random total order."""
        return np.where(self._random.rank(a) > self._random.rank(b), a, b)

    def function(self, name: str, x: Elements) -> Elements:
        match name:
            case "exp":
                inner = self._random.function(name, x[1]) % self._primes.q
                return np.stack([self._power_of_root(x[1]), inner])
            case "square":
                return self.multiply(x, x)
            case "neg":
                return self._reduced(-x)
            case "reciprocal":
                return self.divide(np.ones_like(x), x)
        return self._reduced(np.stack([self._random.function(name, part) for part in x]))

    def scale(self, x: Elements, factor: float | Fraction) -> Elements:
        """Return x times a number, exactly: a float is a quotient of whole numbers."""
        return self._reduced(x * self._constant(factor, x.ndim))

    def shift(self, x: Elements, addend: float) -> Elements:
        """Return x plus a number, exactly."""
        return self._reduced(x + self._constant(addend, x.ndim))

    def _reduced(self, x: Elements) -> Elements:
        return np.asarray(x % self._moduli.reshape(2, *[1] * (x.ndim - 1)) if x.ndim else x)

    def _constant(self, value: float | Fraction, ndim: int) -> Elements:
        numerator, denominator = value.as_integer_ratio()
        residues = [numerator * pow(denominator, -1, m) % m for m in self._primes.moduli]
        return np.array(residues).reshape(2, *[1] * (ndim - 1))

    def _power_of_root(self, exponent: Elements) -> Elements:
        if self._primes is FAST:
            return _powers(self._root, FAST.p, FAST.q)[exponent]
        result = np.ones_like(exponent)
        for place, table in enumerate(self._digit_powers):
            digit = exponent >> place * _DIGIT_BITS & (1 << _DIGIT_BITS) - 1
            result = result * table[digit] % self._primes.p
        return result

    @cached_property
    def _digit_powers(self) -> list[Elements]:
        """The powers of the root by each digit of an exponent."""
        places = range(-(-self._primes.q.bit_length() // _DIGIT_BITS))
        bases = (pow(self._root, 1 << place * _DIGIT_BITS, self._primes.p) for place in places)
        return [_table(base, self._primes.p, 1 << _DIGIT_BITS) for base in bases]

    def _inverse(self, x: Elements, modulus: int) -> Elements:
        if self._primes is FAST:
            return _inverses(modulus)[x]
        inverses = [pow(element, -1, modulus) if element else 0 for element in x.ravel().tolist()]
        return np.array(inverses, np.int64).reshape(x.shape)


@lru_cache(maxsize=4)
def _powers(base: int, modulus: int, count: int) -> Elements:
    """Return ``_table``; it is large, and asked for again."""
    return _table(base, modulus, count)


def _table(base: int, modulus: int, count: int) -> Elements:
    """Return base^0, base^1, …: each doubling of the table is one product."""
    table = np.ones(1, np.int64)
    while len(table) < count:
        factor = pow(base, len(table), modulus)
        table = np.concatenate([table, table * factor % modulus])
    return table[:count]


@cache
def _inverses(modulus: int) -> Elements:
    """Return the inverse of each residue, and 0 for 0: i^-1 = g^(m-1-e) where i = g^e."""
    powers = _powers(_generator(modulus), modulus, modulus - 1)
    table = np.zeros(modulus, np.int64)
    table[powers] = powers[-np.arange(modulus - 1) % (modulus - 1)]
    return table


def _generator(modulus: int) -> int:
    """Return a generator of the units, by their order's prime factors."""
    exponents = [(modulus - 1) // factor for factor in _prime_factors(modulus - 1)]
    return next(g for g in range(2, modulus) if all(pow(g, e, modulus) != 1 for e in exponents))


def _prime_factors(number: int) -> set[int]:
    factors, divisor = set(), 2
    while divisor * divisor <= number:
        if number % divisor:
            divisor += 1
        else:
            factors.add(divisor)
            number //= divisor
    return factors | {number}
