"""Integers that depend on sizes, as expressions of these: found from their values at several sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from math import prod
from typing import TypeAlias

import numpy as np

from relational_tensat.formats.dynamic.dimensions import Sizes

#: A product of symbols.
Product: TypeAlias = tuple[str, ...]

#: The longest product of symbols that is looked for.
_MOST_FACTORS = 3


@dataclass(frozen=True, slots=True)
class Expression:
    """A sum of products of symbols and a number.

    Attributes:
        terms: (factor, symbols that are multiplied).
    """

    number: int
    terms: tuple[tuple[int, Product], ...] = ()

    def value(self, sizes: Sizes) -> int:
        """Return the integer that it is at some sizes."""
        return self.number + sum(f * prod(sizes[s] for s in symbols) for f, symbols in self.terms)


def find_expression(values: Sequence[int], sizes: Sequence[Sizes]) -> Expression | None:
    """Return the simplest expression that has the given values at the given sizes; None without one.

    A constant, a product of symbols with a factor and a summand, or a sum of two such products.
    """
    if len(set(values)) == 1:
        return Expression(values[0])
    products = list(_products(sizes))
    for count in (1, 2):
        for chosen in combinations(products, count):
            expression = _solve(values, sizes, chosen)
            if expression is not None:
                return expression
    return None


def _products(sizes: Sequence[Sizes]) -> Iterator[Product]:
    symbols = list(sizes[0])
    for length in range(1, _MOST_FACTORS + 1):
        yield from combinations_with_replacement(symbols, length)


def _solve(
    values: Sequence[int], sizes: Sequence[Sizes], products: Sequence[Product]
) -> Expression | None:
    """Return the sum of given products that has the values, if whole numbers make one."""
    rows = [[1, *(prod(at[s] for s in product) for product in products)] for at in sizes]
    if len(rows) <= len(products) + 1 or np.linalg.matrix_rank(rows) <= len(products):
        return None  # others would fit as well
    solution = np.linalg.lstsq(np.array(rows, np.float64), np.array(values, np.float64), rcond=None)
    number, *factors = (round(factor) for factor in solution[0].tolist())
    terms = tuple((f, p) for f, p in zip(factors, products, strict=True) if f)
    expression = Expression(number, terms)
    is_exact = all(expression.value(at) == v for at, v in zip(sizes, values, strict=True))
    return expression if is_exact else None
