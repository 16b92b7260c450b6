"""Which graphs the paper's theorems are about, and what they say: section 5.1.

An entry of a LAX graph's result is a quotient N / D of sums of exponentials with polynomials before and
rational functions in them. Two are equal if and only if N1 D2 - N2 D1 = 0, which has the form of Equation
2; Theorem 3 bounds the odds that it is 0 at random by 1 - 1/k + o(1/k), where k counts the exponentials,
d is the largest degree, and d k^4 < q. So Theorem 4: k ln(1/δ) random tests let a wrong graph pass with
odds of δ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from relational_tensat.mugraph.field.residues import LARGE
from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import Dims, count, size_of, variables
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.well_formed import kernel_tensors


@dataclass(frozen=True, slots=True)
class Bound:
    """What Theorem 4 says of a program at its sizes.

    Attributes:
        exponentials: k, an upper bound.
        degree: d, an upper bound.
    """

    exponentials: int
    degree: int

    def tests(self, error: float) -> int:
        """Return how many random tests let a wrong graph pass with odds of at most ``error``."""
        return math.ceil(self.exponentials * math.log(1 / error))


@dataclass(frozen=True, slots=True)
class _Quotient:
    """Bounds of the terms and degrees of a quotient's two sides.

    Attributes:
        terms, degree: of the numerator.
        divisors: the denominators as (number of what divides, its variables, terms, degree).
        inner: the degree of exponents; 0 without.
    """

    terms: int
    degree: int
    divisors: frozenset[tuple[str, tuple[str, ...], int, int]]
    inner: int = 0


def bound(program: MuGraph, factor: int = 2) -> Bound | None:
    """Return what the theorem says of a program; None where it says nothing.

    It says nothing of functions that are not LAX, of two exponentials on a path, and where d k^4 ≥ q.

    Args:
        program: of operators of libraries only, at the sizes of the tests.
        factor: how much larger than the program's own terms and degrees those of a graph may be that is
            compared with it; a graph of the same operators on split variables has the same.
    """
    try:
        return _bound(program, factor)
    except _NotLaxError:
        return None


class _NotLaxError(Exception):
    """An operator that the theorem is not about."""


def _bound(program: MuGraph, factor: int) -> Bound | None:
    dims = kernel_tensors(program)
    forms = {name: _Quotient(1, 1, frozenset()) for name in program.inputs}
    for step in program.steps:
        if not isinstance(step, Operation):
            return None
        forms[step.output] = _form(step, forms, dims)
    k = d = 1
    for name in program.outputs:
        form = forms[name]
        bottom_terms = math.prod(terms for _, _, terms, _ in form.divisors)
        bottom_degree = sum(degree for _, _, _, degree in form.divisors)
        k = max(k, factor * form.terms * bottom_terms)
        d = max(d, form.degree + bottom_degree, form.inner)
    return Bound(k, d) if d * k**4 < LARGE.q else None


def _form(step: Operation, forms: Mapping[str, _Quotient], dims: Mapping[str, Dims]) -> _Quotient:
    operands = [forms[name] for name in step.operands]
    x = operands[0]
    match step.op:
        case "exp":
            return _exponential(x)
        case "matmul":
            product = _product(x, operands[1])
            return _summed(product, step, dims)
        case "sum":
            return _summed(x, step, dims)
        case "mul":
            return _product(x, operands[1])
        case "add" | "sub":
            return _added(x, operands[1])
        case "div":
            return _divided(x, operands[1], step, dims)
        case "scale" | "neg" | "rename" | "repeat" | "split" | "merge":
            return x
        case "square":
            return _product(x, x)
    raise _NotLaxError


def _exponential(x: _Quotient) -> _Quotient:
    if x.inner or x.terms > 1:
        raise _NotLaxError
    degree = x.degree + sum(degree for _, _, _, degree in x.divisors)
    return _Quotient(1, 0, frozenset(), degree)


def _product(x: _Quotient, y: _Quotient) -> _Quotient:
    if x.divisors & y.divisors:
        raise _NotLaxError  # a denominator twice is no set
    return _Quotient(
        x.terms * y.terms, x.degree + y.degree, x.divisors | y.divisors, x.inner + y.inner
    )


def _summed(x: _Quotient, step: Operation, dims: Mapping[str, Dims]) -> _Quotient:
    """Return the sum over variables that no denominator has; exponentials of different entries differ."""
    over = names(step.attrs, "over")
    if any(set(over) & set(labels) for _, labels, _, _ in x.divisors):
        raise _NotLaxError  # a sum of quotients with different denominators has too many terms
    size = math.prod(size_of(dims[step.operands[0]], name) for name in over)
    return _Quotient(x.terms * (size if x.inner else 1), x.degree, x.divisors, x.inner)


def _added(x: _Quotient, y: _Quotient) -> _Quotient:
    if x.divisors != y.divisors:
        raise _NotLaxError
    inner = max(x.inner, y.inner)
    terms = x.terms + y.terms if inner else 1
    return _Quotient(terms, max(x.degree, y.degree), x.divisors, inner)


def _divided(x: _Quotient, y: _Quotient, step: Operation, dims: Mapping[str, Dims]) -> _Quotient:
    if y.divisors:
        raise _NotLaxError
    labels = variables(dims[step.operands[1]])
    divisor = (step.operands[1], labels, y.terms, y.degree)
    if divisor in x.divisors or count(dims[step.operands[1]]) == 0:
        raise _NotLaxError
    return _Quotient(x.terms, x.degree, x.divisors | {divisor}, max(x.inner, y.inner))
