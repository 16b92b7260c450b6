"""Sizes as exact expressions: sums of products of symbols and of quotients that are rounded down.

One normal form for all integers that follow from sizes. A remainder is a sum with a quotient in it. A
quotient that is rounded up is one that is rounded down. Nested quotients are one. ``TracedSize`` is an
integer that knows its expression: shape rules, which are Python, compute with it as with any integer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, combinations_with_replacement
from math import gcd, prod
from typing import TypeAlias

import numpy as np

#: The size of each symbol.
Sizes: TypeAlias = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Quotient:
    """``numerator // divisor``; the numerator is never negative where the model is valid."""

    numerator: Expression
    divisor: int

    def value(self, sizes: Sizes) -> int:
        """Return the integer that it is at some sizes."""
        return self.numerator.value(sizes) // self.divisor


#: The factors.
Factor: TypeAlias = str | Quotient
Product: TypeAlias = tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """A sum of products and a number.

    Attributes:
        terms: (how often, the factors).

    Example:
        >>> h = Expression.of("h")
        >>> halved = (h + 1) // 2
        >>> (halved + 1) // 2 == (h + 3) // 4, halved.value({"h": 5})
        (True, 3)
    """

    number: int
    terms: tuple[tuple[int, Product], ...] = ()

    @classmethod
    def of(cls, factor: Factor) -> Expression:
        """Return a symbol, or a quotient, as an expression."""
        return cls(0, ((1, (factor,)),))

    def value(self, sizes: Sizes) -> int:
        """Return the integer that it is at some sizes."""
        return self.number + sum(f * _product_at(product, sizes) for f, product in self.terms)

    def __add__(self, other: Expression | int) -> Expression:
        other = other if isinstance(other, Expression) else Expression(other)
        sums: dict[Product, int] = {}
        for factor, product in (*self.terms, *other.terms):
            sums[product] = sums.get(product, 0) + factor
        return _of_sums(self.number + other.number, sums)

    def __neg__(self) -> Expression:
        return self * -1

    def __sub__(self, other: Expression | int) -> Expression:
        return self + -other

    def __mul__(self, other: Expression | int) -> Expression:
        other = other if isinstance(other, Expression) else Expression(other)
        sums: dict[Product, int] = {}
        for f, a in (*self.terms, (self.number, ())):
            for g, b in (*other.terms, (other.number, ())):
                product = tuple(sorted((*a, *b), key=repr))
                sums[product] = sums.get(product, 0) + f * g
        return _of_sums(sums.pop((), 0), sums)

    def __floordiv__(self, divisor: int) -> Expression:
        """Return the quotient, rounded down: whole multiples of a positive divisor stand before it."""
        whole = _of_sums(self.number // divisor, {p: f // divisor for f, p in self.terms})
        rest = _of_sums(self.number % divisor, {p: f % divisor for f, p in self.terms})
        if not rest.terms:
            return whole
        if all(factor < 0 for factor, _ in self.terms):  # rounded up
            return -((-self + (divisor - 1)) // divisor)
        common = gcd(divisor, *(factor for factor, _ in rest.terms))
        if common > 1:
            terms = tuple((factor // common, product) for factor, product in rest.terms)
            rest, divisor = Expression(rest.number // common, terms), divisor // common
        match rest.terms:
            case ((1, (Quotient() as inner,)),):
                rest = inner.numerator + rest.number * inner.divisor
                return whole + rest // (inner.divisor * divisor)
        return whole + Expression.of(Quotient(rest, divisor))

    def __str__(self) -> str:
        """Return it as people write it."""
        terms = [_term_text(factor, product) for factor, product in self.terms]
        terms += [str(self.number)] if self.number or not terms else []
        return " + ".join(terms).replace("+ -", "- ")

    def solved_for(self, symbol: str) -> Expression | None:
        """Return what a symbol is where this is 0; None where it does not stand in it alone, once."""
        for factor, product in self.terms:
            if product == (symbol,) and abs(factor) == 1:
                rest = self - Expression.of(symbol) * factor
                return None if symbol in rest.symbols else rest * -factor
        return None

    def replaced(self, values: Mapping[str, Expression]) -> Expression:
        """Return the expression with others in place of some of its symbols."""
        total = Expression(self.number)
        for factor, product in self.terms:
            result = Expression(factor)
            for item in product:
                if isinstance(item, str):
                    result *= values.get(item, Expression.of(item))
                else:
                    result *= item.numerator.replaced(values) // item.divisor
            total += result
        return total

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols in it."""
        return frozenset(_symbols(self))

    @property
    def quotients(self) -> tuple[Quotient, ...]:
        """The quotients that are multiplied in it."""
        factors = (factor for _, product in self.terms for factor in product)
        return tuple(dict.fromkeys(f for f in factors if isinstance(f, Quotient)))


def _of_sums(number: int, sums: Mapping[Product, int]) -> Expression:
    terms = ((factor, product) for product, factor in sums.items() if factor)
    return Expression(number, tuple(sorted(terms, key=lambda term: repr(term[1]))))


def _term_text(factor: int, product: Product) -> str:
    texts = [
        item if isinstance(item, str) else f"(({item.numerator}) // {item.divisor})"
        for item in product
    ]
    text = " * ".join(texts)
    return text if factor == 1 else f"-{text}" if factor == -1 else f"{factor} * {text}"


def _symbols(expression: Expression) -> Iterator[str]:
    for _, product in expression.terms:
        for factor in product:
            if isinstance(factor, str):
                yield factor
            else:
                yield from _symbols(factor.numerator)


def _at(factor: Factor, sizes: Sizes) -> int:
    return sizes[factor] if isinstance(factor, str) else factor.value(sizes)


def _product_at(product: Product, sizes: Sizes) -> int:
    return prod(_at(factor, sizes) for factor in product)


class TracedSize(int):
    """An integer that knows the expression that it is at these sizes.

    Comparisons and other functions take it for the integer that it is, so an expression is a claim, to be
    compared with other sizes.
    """

    expression: Expression

    @classmethod
    def of(cls, value: int, expression: Expression) -> TracedSize:
        """Return an integer with its expression."""
        size = cls(value)
        size.expression = expression
        return size

    def __add__(self, other: int) -> int:
        return _traced(int(self) + int(other), self.expression + _expression(other))

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return _traced(int(self) - int(other), self.expression - _expression(other))

    def __rsub__(self, other: int) -> int:
        return _traced(int(other) - int(self), _expression(other) - self.expression)

    def __neg__(self) -> int:
        return _traced(-int(self), -self.expression)

    def __mul__(self, other: int) -> int:
        return _traced(int(self) * int(other), self.expression * _expression(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> int:
        value = int(self) // int(other)
        if isinstance(other, TracedSize) or other <= 0:
            return value
        return _traced(value, self.expression // other)

    def __mod__(self, other: int) -> int:
        value = int(self) % int(other)
        if isinstance(other, TracedSize) or other <= 0:
            return value
        return _traced(value, self.expression - (self.expression // other) * other)


def _expression(value: int) -> Expression:
    return value.expression if isinstance(value, TracedSize) else Expression(int(value))


def _traced(value: int, expression: Expression) -> int:
    return TracedSize.of(value, expression) if expression.terms else value


#: The longest product that is looked for.
_MOST_FACTORS = 3
#: Sums of two products with quotients are looked for among so many products.
_MOST_PRODUCTS = 40
#: The first form to try has no quotients in it.
_WITHOUT_QUOTIENTS = 3
#: Expressions are one if they are at so many sizes in a row.
_PROBES = 128


def find_expression(
    values: Sequence[int], sizes: Sequence[Sizes], quotients: Sequence[Quotient] = ()
) -> Expression | None:
    """Return the simplest expression that has the given values at the given sizes; None without one.

    A constant, a product of symbols with a factor and a summand, a sum of symbols with factors, or a sum of
    two products; then the same with quotients among the factors. Where two of these fit that differ
    elsewhere, neither is returned.

    Args:
        quotients: those that occur in the model.
    """
    if len(set(values)) == 1:
        return Expression(values[0])
    places = tuple([tuple(at.items()) for at in sizes])
    return _found(tuple(values), places, tuple(quotients))


@lru_cache(maxsize=1 << 12)
def _found(
    values: tuple[int, ...],
    places: tuple[tuple[tuple[str, int], ...], ...],
    quotients: tuple[Quotient, ...],
) -> Expression | None:
    """Search, once for the same values: equal layers have them."""
    sizes = [dict(place) for place in places]
    symbols = list(sizes[0])
    simple = list(_products(symbols, _MOST_FACTORS))
    long = list(_products([*symbols, *quotients], _MOST_FACTORS)) if quotients else []
    short = list(_products([*quotients, *symbols], 2))[:_MOST_PRODUCTS] if quotients else []
    linear = [tuple((symbol,) for symbol in symbols)]
    choices = (
        combinations(simple, 1), linear, combinations(simple, 2), combinations(long, 1),
        combinations(short, 2),
    )  # fmt: skip
    for place, chosen in enumerate(choices):
        found = _solved(values, sizes, list(chosen))
        if found:
            is_one = place < _WITHOUT_QUOTIENTS or all(
                _is_same(found[0], other, sizes[0]) for other in found[1:]
            )
            return found[0] if is_one else None
    return None


def separating_sizes(quotients: Sequence[Quotient], sizes: Sequence[Sizes]) -> Iterator[Sizes]:
    """Yield further sizes that tell quotients apart which could be one by the sizes so far."""
    factors: list[Factor] = [*sizes[0], *quotients]
    for one, other in combinations(factors, 2):
        for known in _solved([_at(other, at) for at in sizes], sizes, [((one,),)]):
            differing = (at for at in _probes(sizes[0]) if known.value(at) != _at(other, at))
            if (at := next(differing, None)) is not None:
                yield at


def _is_same(one: Expression, other: Expression, base: Sizes) -> bool:
    return all(one.value(sizes) == other.value(sizes) for sizes in _probes(base))


def _probes(base: Sizes) -> Iterator[dict[str, int]]:
    for more in range(_PROBES):
        yield {symbol: size + more for symbol, size in base.items()}


def _products(factors: Sequence[Factor], longest: int) -> Iterator[Product]:
    for length in range(1, longest + 1):
        yield from combinations_with_replacement(factors, length)


def _solved(
    values: Sequence[int], sizes: Sequence[Sizes], choices: Sequence[Sequence[Product]]
) -> list[Expression]:
    """Return the sums of products that have the values, if whole numbers make one.

    Args:
        choices: products of each sum, as many in all of them.
    """
    if not choices or len(sizes) <= len(choices[0]) + 1:
        return []  # others would fit as well
    columns = {
        product: np.array([_product_at(product, at) for at in sizes], np.float64)
        for product in {product for chosen in choices for product in chosen}
    }
    ones = np.ones(len(sizes))
    tables = np.stack(
        [np.stack([ones, *(columns[p] for p in chosen)], axis=-1) for chosen in choices]
    )
    scales = np.abs(tables).max(axis=1)
    scaled = tables / np.maximum(scales, 1.0)[:, None, :]
    target = np.array(values, np.float64)
    factors = np.linalg.pinv(scaled) @ target / np.maximum(scales, 1.0)
    whole = np.round(factors)
    residuals = np.abs((tables @ whole[:, :, None])[:, :, 0] - target).max(axis=1)
    found = []
    for place in map(int, np.flatnonzero(residuals < 0.5)):
        chosen = choices[place]
        number, *rest = map(int, whole[place].tolist())
        products = (tuple(sorted(product, key=repr)) for product in chosen)
        expression = _of_sums(number, dict(zip(products, rest, strict=True)))
        is_only = np.linalg.matrix_rank(scaled[place]) > len(chosen)
        if is_only and all(expression.value(at) == v for at, v in zip(sizes, values, strict=True)):
            found.append(expression)
    return found
