"""Laws of each element, on all cases at once: as one element after the other says."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.soundness.draws import draw_configuration
from relational_tensat.rules.soundness.each_element import cases, first_wrong, is_flat
from relational_tensat.rules.soundness.judgement import Judge, LawOutcome
from relational_tensat.rules.soundness.machine import Operands, compared
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.rules.soundness.sides import Sides
from relational_tensat.tensor.operators.samples import SeededChoices
from relational_tensat.tensor.types import TensorType


def sides_of(text: str, dtype: str) -> Sides:
    """Return both sides on single numbers of a type."""
    (rule,) = parse_rules(f'(rule r (law "l") {text} (where (= (dtype ?x) {dtype})))', "f")
    judge, choices = Judge(DrawPlan(rule), 0), SeededChoices(0)
    for _ in range(2_000):
        configuration = draw_configuration(judge.plan, choices)
        sides = None if configuration is None else judge.sides(configuration)
        if sides is not None and all(kind.shape == () for kind in sides.var_types):
            return sides
    raise AssertionError("none drawn")


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("(from (clip ?x :min -40 :max 40)) (to ?x)", "float16"),
        ("(from (cast (cast ?x :dtype float16) :dtype int16)) (to ?x)", "int16"),
        ("(from (cast (cast ?x :dtype int32) :dtype bfloat16)) (to ?x)", "bfloat16"),
        ("(from (div (neg ?x) ?y)) (to (neg (div ?x ?y)))", "int8"),
        ("(from (relu (relu ?x))) (to (relu ?x))", "bfloat16"),
    ],
)
def test_all_cases_at_once_are_as_one_after_the_other(text: str, dtype: str) -> None:
    sides = sides_of(text, dtype)
    assert is_flat(sides)
    operands, is_all = cases(sides.var_types)
    assert is_all
    wrong = first_wrong(sides, operands)
    last = len(operands[0]) if wrong is None else wrong + 1
    for place in sorted({*range(0, last, 97), *range(max(0, last - 40), last)}):
        single = [np.asarray(column[place]) for column in operands]
        outcome, _ = compared(sides, single, Operands.EXTREME)
        assert (outcome is LawOutcome.FAILS) == (place == wrong), place


def test_numbers_of_every_length_in_bits_are_cases() -> None:
    for dtype in ("int32", "uint32", "int64", "uint64"):
        ((column,), is_all) = cases([TensorType(dtype, ())])
        assert not is_all
        limits = np.iinfo(dtype)
        assert {limits.min, limits.max, 0, 1} <= set(column.tolist())
        lengths = {abs(value).bit_length() for value in column.tolist()}
        assert lengths >= set(range(limits.bits - (limits.min < 0) + 1))
