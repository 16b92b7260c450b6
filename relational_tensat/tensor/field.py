"""Exact arithmetic modulo a prime: operators compute in it when a law is checked, without rounding.

Elements are residues, ``int64`` in 0..PRIME-1. The prime is just below 2^28, so that a product of
two residues is below 2^56 and a sum of 127 of them below 2^63: no step overflows ``int64``.

Two polynomials (or quotients of polynomials) of degree d that differ agree in a random point with a
probability of at most d / PRIME. So two sides that agree on random residues are equal as formulas. A
function that is no polynomial (``exp``, ``relu``, …) becomes a random function of the residues: equations
that hold for it hold for every function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Residues: TypeAlias = NDArray[np.int64]

#: The largest prime below 2^28.
PRIME = 2**28 - 57
#: Products of residues that may be summed without overflow: 127 * (PRIME - 1)^2 < 2^63.
MOST_PRODUCTS = 127
#: Exponents that are powers, not a random function; larger ones do not occur in models.
_LARGEST_POWER = 8
#: Up to so many elements are inverted faster by Python than by 50 products of arrays.
_FEW = 64


class Undefined(Exception):  # noqa: N818 - it is no error: the law says nothing here
    """The arithmetic has no value for a quotient by 0, or a constant that is no number."""


class Field:
    """The residues modulo ``PRIME``, with random functions that a seed determines."""

    def __init__(self, seed: int) -> None:
        self._key = _key("field", seed)

    # --- ring and field operations ---

    def constant(self, value: float) -> int:
        """Return a number exactly: a float is a quotient of whole numbers.

        Raises:
            Undefined: it is infinite or no number.
        """
        if not math.isfinite(value):
            raise Undefined
        numerator, denominator = value.as_integer_ratio()
        return numerator * pow(denominator, -1, PRIME) % PRIME

    def reduced(self, values: Any) -> Any:
        """Return whole numbers (an array, or a tuple of arrays) modulo the prime.

        Raises:
            TypeError: they are floats; the operator needs an ``evaluate_exact`` of its own.
        """
        if isinstance(values, tuple):
            return tuple(map(self.reduced, values))
        array = np.asarray(values)
        if array.dtype.kind not in "iub":
            raise TypeError(f"expected whole numbers, not {array.dtype}: nothing exact to reduce")
        return array.astype(np.int64, copy=False) % PRIME

    def multiply(self, a: Any, b: Any) -> Residues:
        """Return the products, element by element with broadcasting."""
        return np.asarray(a * b % PRIME)

    def matmul(self, a: Residues, b: Residues) -> Residues:
        """Return the matrix products; long sums are reduced in between."""
        inner = a.shape[-1]
        if inner <= MOST_PRODUCTS:
            return np.asarray(np.matmul(a, b) % PRIME)
        starts = range(0, inner, MOST_PRODUCTS)
        pieces = [slice(start, start + MOST_PRODUCTS) for start in starts]
        terms = (np.matmul(a[..., piece], b[..., piece, :]) % PRIME for piece in pieces)
        return np.asarray(sum(terms) % PRIME)

    def sum(self, x: Residues, axes: Sequence[int], keepdims: bool = True) -> Residues:
        """Return the sums over some axes: fewer than 2^35 residues each, so they do not overflow."""
        return np.asarray(np.sum(x, axis=tuple(axes), keepdims=keepdims) % PRIME)

    def mean(self, x: Residues, axes: Sequence[int], keepdims: bool = True) -> Residues:
        """Return the means over some axes."""
        count = math.prod(x.shape[axis] for axis in axes)
        return self.multiply(self.sum(x, axes, keepdims), pow(count, -1, PRIME))

    def product(self, x: Residues, axes: Sequence[int], keepdims: bool) -> Residues:
        """Return the products over some axes."""
        kept_axes = [axis for axis in range(x.ndim) if axis not in axes]
        shape = [1 if axis in axes else x.shape[axis] for axis in range(x.ndim)]
        flat = np.transpose(x, (*kept_axes, *axes)).reshape(
            *(x.shape[axis] for axis in kept_axes), -1
        )
        while flat.shape[-1] > 1:  # multiplied in pairs: the order does not matter here
            half = flat.shape[-1] // 2
            pairs = self.multiply(flat[..., :half], flat[..., half : 2 * half])
            flat = np.concatenate((pairs, flat[..., 2 * half :]), axis=-1)
        result = flat[..., 0] if flat.shape[-1] else np.ones(flat.shape[:-1], np.int64)
        return result.reshape(shape) if keepdims else result

    def inverse(self, x: Residues) -> Residues:
        """Return 1 / x: x to the power PRIME - 2 (Fermat), or one by one where there are few.

        Raises:
            Undefined: an element is 0.
        """
        if not np.all(x):
            raise Undefined
        if np.size(x) > _FEW:
            return self.power(x, PRIME - 2)
        inverses = [pow(element, -1, PRIME) for element in np.ravel(x).tolist()]
        return np.array(inverses, np.int64).reshape(np.shape(x))

    def power(self, x: Residues, exponent: int) -> Residues:
        """Return x to a whole power, 0 or more, by repeated squaring."""
        result, square = np.ones_like(x), x
        while exponent:
            if exponent & 1:
                result = self.multiply(result, square)
            square = self.multiply(square, square)
            exponent >>= 1
        return result

    # --- functions that are no polynomials ---

    def function(self, name: str, *operands: Any) -> Residues:
        """Return a random function of the operands' elements, the same for the same name."""
        return np.asarray((self._mixed(name, operands) % np.uint64(PRIME)).astype(np.int64))

    def activate(self, name: str, x: Residues) -> Residues:
        """Apply a fused activation: the function of that name."""
        return x if name == "none" else self.function(name, x)

    def root_inverse(self, x: Residues) -> Residues:
        """Return 1 / sqrt(x), where sqrt is a random function."""
        return self.inverse(self.function("sqrt", x))

    def raised(self, base: Residues, exponent: Residues) -> Residues:
        """Return base to the power of exponent, element by element.

        Small whole exponents are powers, one half is the function ``sqrt``; others a random
        function.

        Raises:
            Undefined: 0 to a negative power.
        """
        base, exponent = np.broadcast_arrays(base, exponent)
        result = np.array(self.function("pow", base, exponent))
        for value in np.unique(exponent).tolist():
            mask = exponent == value
            apply = self._power_function(value)
            if apply is not None:
                result[mask] = apply(base[mask])
        return result

    def _power_function(self, exponent: int) -> Callable[[Residues], Residues] | None:
        signed = exponent if exponent <= PRIME // 2 else exponent - PRIME
        if 0 <= signed <= _LARGEST_POWER:
            return lambda x: self.power(x, signed)
        if -_LARGEST_POWER <= signed < 0:
            return lambda x: self.inverse(self.power(x, -signed))
        if exponent == self.constant(0.5):
            return lambda x: self.function("sqrt", x)
        if exponent == self.constant(-0.5):
            return self.root_inverse
        return None

    def rank(self, x: Residues) -> NDArray[np.uint64]:
        """Return a number per element that puts them into a random total order."""
        return self._mixed("order", (x,))

    def largest(
        self, x: Residues, axes: Sequence[int], keepdims: bool, smallest: bool = False
    ) -> Residues:
        """Return the elements that are last (or first) in the random total order."""
        kept_axes = [axis for axis in range(x.ndim) if axis not in axes]
        shape = [1 if axis in axes else x.shape[axis] for axis in range(x.ndim)]
        flat = np.transpose(x, (*kept_axes, *axes)).reshape(
            *(x.shape[axis] for axis in kept_axes), -1
        )
        order = self.rank(flat)
        at = np.argmin(order, axis=-1) if smallest else np.argmax(order, axis=-1)
        result = np.take_along_axis(flat, at[..., None], axis=-1)[..., 0]
        return result.reshape(shape) if keepdims else result

    def _mixed(self, name: str, operands: Sequence[Any]) -> NDArray[np.uint64]:
        mixed: NDArray[np.uint64] = np.asarray(self._key ^ _key(name, 0))
        for operand in operands:
            mixed = _mix(mixed ^ np.asarray(operand).astype(np.uint64))
        return mixed


@lru_cache(maxsize=4096)
def _key(name: str, seed: int) -> np.uint64:
    import hashlib  # loads OpenSSL, which few runs need

    digest = hashlib.blake2b(f"{name}/{seed}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers one to one (the finalizer of SplitMix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
