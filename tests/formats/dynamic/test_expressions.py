"""Integers as expressions of sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.formats.dynamic.expressions import Expression, find_expression

SIZES = [{"a": a, "b": b} for a, b in ((3, 61), (7, 5), (11, 13), (19, 17), (1, 7), (1, 1))]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("4", ()),
        ("a", ((1, ("a",)),)),
        ("3*a*b", ((3, ("a", "b")),)),
        ("2*b - 1", ((2, ("b",)),)),
        ("a + b", ((1, ("a",)), (1, ("b",)))),
        ("a*b*b", ((1, ("a", "b", "b")),)),
    ],
)
def test_expressions_are_found(text: str, terms: object) -> None:
    expression = find_expression([eval(text, {}, dict(sizes)) for sizes in SIZES], SIZES)
    assert expression is not None and expression.terms == terms


@pytest.mark.parametrize("text", ["a // 2", "min(a, 4)", "max(a, b)", "a**b % 7"])
def test_what_is_no_sum_of_products_is_none(text: str) -> None:
    assert find_expression([eval(text, {}, dict(sizes)) for sizes in SIZES], SIZES) is None


def test_too_few_sizes_prove_nothing() -> None:
    assert find_expression([3, 5], SIZES[:2]) is None


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9))
def test_what_is_found_has_the_values(number: int, factor: int, other: int) -> None:
    expression = Expression(number, ((factor, ("a",)), (other, ("a", "b"))))
    recovered = find_expression([expression.value(sizes) for sizes in SIZES], SIZES)
    assert recovered is not None
    assert recovered.value({"a": 29, "b": 31}) == expression.value({"a": 29, "b": 31})
