"""Verification of a μGraph, in order: small sizes, with a bound where one is, its own sizes, float64.

The bound is that of section 5.1 of the paper. An entry of a LAX graph's result is a quotient N / D of sums
of exponentials with polynomials before and rational functions in them. Two are equal if and only if
N1 D2 - N2 D1 = 0, which has the form of Equation 2; Theorem 3 bounds the odds that it is 0 at random by
1 - 1/k + o(1/k), where k counts the exponentials, d is the largest degree, and d k^4 < q. So Theorem 4:
k ln(1/δ) random tests let a wrong graph pass with odds of δ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.graph.dims import Dims, count, size_of, variables
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.residues import LARGE
from relational_tensat.mugraph.graph.rewrites import core, core_like, has_windows
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.verify.masks import takes_masks
from relational_tensat.mugraph.verify.random_tests import (
    OutputDifference,
    check_signature,
    first_difference,
    free_of_exponentials,
    has_exponentials,
    level_error,
    relative_error,
)
from relational_tensat.mugraph.verify.small_sizes import (
    shrunk,
    summed_variables,
    with_full_sums,
    with_variables_of,
)
from relational_tensat.mugraph.verify.stability import stable_if_possible

#: The odds that a wrong graph passes, where the theorem gives odds.
ERROR = 1e-6
#: Tests at its own sizes, and at small ones where there is no theorem.
TESTS = 2
_TESTS_WITHOUT_BOUND = 20
#: Larger graphs are tested at small sizes only: elements of the largest tensor.
_MOST_ELEMENTS = 1 << 21
#: The same of graphs that have no smaller form, or other index variables than their programs, as Mirage's
#: have: a minute, and 2 GB.
_MOST_ELEMENTS_ALONE = 1 << 24
_FLOAT64_TOLERANCE = 1e-9
#: Of results in float16 whose logits are large: at 600, its steps are 0.5, so weights are right to e^0.25.
_LARGE_TOLERANCE = 0.5
#: Of results in float16 that are sums of large numbers.
_LEVEL_TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class MuGraphVerification:
    """The tests, and their outcome.

    Attributes:
        difference: where the graph differs from its program; None where it passed all tests.
        small_tests: random tests at small sizes; 0 where the graph has no smaller form.
        error: the odds that a wrong graph passes these, by Theorem 4, at these small sizes; None where the
            theorem says nothing.
        full_tests: random tests at the graph's own sizes; 0 where it is too large.
        entry_tests: random tests of a few entries of the result at its place: summed and looped variables
            at their own sizes, few values of other variables; 0 if one such sum is too large, too.
        has_all_sums: whether these have all sums at their own sizes at once, or each in some test.
        float64_error: relative; at its own sizes, or at small ones where it is too large.
        float16_error: the same in float16; infinite where something overflowed.
        large_error: the same with logits as large as 600; None where there are no exponentials.
        level_error: the same with equal logits, and large numbers that their exponentials weigh; None where
            that is not stored between kernels.
        takes_masks: whether it is right in float64 and float16 where masks are -inf, or bools leave as
            little; None without masks or bools.
    """

    difference: OutputDifference | None
    small_tests: int = 0
    error: float | None = None
    full_tests: int = 0
    float64_error: float | None = None
    float16_error: float | None = None
    large_error: float | None = None
    level_error: float | None = None
    entry_tests: int = 0
    has_all_sums: bool = False
    takes_masks: bool | None = None

    @property
    def is_stable(self) -> bool:
        """Whether exponentials of large logits, and sums that they weigh, are finite and right."""
        return self.takes_large_logits and self.takes_large_sums

    @property
    def takes_large_logits(self) -> bool:
        """Whether exponentials of large logits are finite and right."""
        return self.large_error is None or self.large_error <= _LARGE_TOLERANCE

    @property
    def takes_large_sums(self) -> bool:
        """Whether sums that kernels store for the next one are, where they are large."""
        return self.level_error is None or self.level_error <= _LEVEL_TOLERANCE

    @property
    def passed(self) -> bool:
        """Whether nothing spoke against the graph, and something was tested."""
        is_close = self.float64_error is None or self.float64_error <= _FLOAT64_TOLERANCE
        is_right = self.difference is None and is_close and self.takes_masks is not False
        return is_right and self.small_tests + self.full_tests > 0


def verify_mugraph(program: MuGraph, graph: MuGraph, seed: int = 0) -> MuGraphVerification:
    """Test whether a μGraph computes a program.

    Args:
        program: of operators of libraries only.
        seed: of all tests; give one that no search has used.

    Where a program takes windows of inputs, a μGraph that loads the same ones is tested without these, as
    they are inputs then, and, where it is small enough, with them. One that loads others is tested at
    its own sizes only.

    Raises:
        InputError: one of them is malformed.
        VerificationError: they have other inputs or outputs, or other windows and are too large.
    """
    if not has_windows(program) and not has_windows(graph):
        return _verified(program, graph, seed)
    own = core_like(graph, program)
    if own is not None:
        return _with_whole(_verified(core(program), own, seed), program, graph, seed)
    if not (_is_small_enough(program) and _is_small_enough(graph)):
        raise VerificationError(
            f"{graph.name}: it loads other parts of inputs than its program takes"
        )
    difference = first_difference(program, graph, seed, _TESTS_WITHOUT_BOUND)
    passed = MuGraphVerification(difference, full_tests=_TESTS_WITHOUT_BOUND)
    return passed if difference else _with_floats(passed, program, graph, seed)


def _with_whole(
    passed: MuGraphVerification, program: MuGraph, graph: MuGraph, seed: int
) -> MuGraphVerification:
    """Return a verification of a core with tests of the whole, if it is small enough."""
    if passed.difference is not None or not (_is_small_enough(program) and _is_small_enough(graph)):
        return passed
    first = seed + passed.small_tests + passed.full_tests
    difference = first_difference(program, graph, first, TESTS)
    return replace(passed, difference=difference, full_tests=passed.full_tests + TESTS)


def _verified(program: MuGraph, graph: MuGraph, seed: int) -> MuGraphVerification:
    """Return what tests of a program and a μGraph without windows say."""
    check_signature(program, graph)
    own = graph if graph.inputs == program.inputs else with_variables_of(program, graph)
    small = None if own is None else shrunk(program, own)
    passed = MuGraphVerification(None)
    if small is not None:
        theorem = bound(small[0])
        tests = theorem.tests(ERROR) if theorem else _TESTS_WITHOUT_BOUND
        difference = first_difference(*small, seed, tests, LARGE)
        passed = MuGraphVerification(difference, tests, ERROR if theorem else None)
        if difference is not None:
            return passed
    is_own = small is not None and own is graph  # else only this tests it as it was imported
    most = _MOST_ELEMENTS if is_own else _MOST_ELEMENTS_ALONE
    if max(map(_largest, (program, graph))) <= most:
        difference = first_difference(program, graph, seed + passed.small_tests, TESTS)
        passed = replace(passed, difference=difference, full_tests=TESTS)
        return passed if difference else _with_floats(passed, program, graph, seed)
    if small is None:
        return passed
    assert own is not None
    passed = _with_entries(passed, program, own, seed + passed.small_tests)
    return _with_floats(passed, *small, seed) if passed.difference is None else passed


def _with_entries(
    passed: MuGraphVerification, program: MuGraph, graph: MuGraph, seed: int
) -> MuGraphVerification:
    """Return a verification with tests of some entries, whose sums are those of the graph's own sizes.

    Where all sums together are too large (both dims of a weight are summed over), each is in some test at
    its own size, with as many others as fit.
    """
    pairs, has_all = _with_some_sums(program, graph)
    try:
        for place, both in enumerate(pairs):
            difference = first_difference(*both, seed + place * TESTS, TESTS)
            if difference is not None:
                return replace(passed, difference=difference)
    except VerificationError:  # of so many denominators one is always 0
        return passed
    return replace(passed, entry_tests=TESTS * len(pairs), has_all_sums=has_all)


def _with_some_sums(program: MuGraph, graph: MuGraph) -> tuple[list[tuple[MuGraph, MuGraph]], bool]:
    """Return both with some sums of their own sizes, so that each is in one pair; and whether one has all.

    None where a sum alone is too large.
    """
    summed = summed_variables(program, graph)
    pairs, left = [], sorted(summed)
    while left:
        kept: frozenset[str] = frozenset()
        found = None
        for variable in (*left, *sorted(summed - set(left))):
            both = with_full_sums(program, graph, kept | {variable})
            if both is not None and all(map(_is_small_enough, both)):
                found, kept = both, kept | {variable}
            elif variable == left[0]:
                return [], False
        assert found is not None
        pairs.append(found)
        left = [variable for variable in left if variable not in kept]
    return pairs, len(pairs) == 1


def _is_small_enough(graph: MuGraph) -> bool:
    """Whether a graph can be evaluated at its own sizes in seconds."""
    return _largest(graph) <= _MOST_ELEMENTS


def _largest(graph: MuGraph) -> int:
    """Return how many elements the largest tensor in device memory has."""
    return max(map(count, kernel_tensors(graph).values()))


def _with_floats(
    passed: MuGraphVerification, program: MuGraph, graph: MuGraph, seed: int
) -> MuGraphVerification:
    reference, large, level = stable_if_possible(program), None, None
    if has_exponentials(program):
        scale = _scale_of_large_logits(program)
        large = relative_error(reference, graph, seed, "float16", scale)
        if len(graph.kernels) > 1:
            level = level_error(reference, graph, seed, free_of_exponentials(program))
    return replace(
        passed,
        float64_error=relative_error(reference, graph, seed),
        float16_error=relative_error(reference, graph, seed, "float16"),
        large_error=large,
        level_error=level,
        takes_masks=takes_masks(program, graph, seed),
    )


def _scale_of_large_logits(program: MuGraph) -> float:
    """Return the size of normal inputs whose products over the shortest summed dim are about 150.

    The largest of some thousands is then about 600, where exp overflows even float32.
    """
    sums = [
        size_of(program.inputs[step.operands[0]], names(step.attrs, "over")[0])
        for step in program.steps
        if isinstance(step, Operation)
        and step.op == "matmul"
        and step.operands[0] in program.inputs
    ]
    return float((150 / min(sums, default=1) ** 0.5) ** 0.5)


@dataclass(frozen=True, slots=True)
class LaxBound:
    """The bounds of Theorem 4 for a program at its sizes.

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


def bound(program: MuGraph, factor: int = 2) -> LaxBound | None:
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


def _bound(program: MuGraph, factor: int) -> LaxBound | None:
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
    return LaxBound(k, d) if d * k**4 < LARGE.q else None


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
