"""Where and IsNaN against onnxruntime, and what they are over a field."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.soundness import verify_rules
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators import Mapped, get_operator
from tests.tensor.operators.onnx_oracle import check_against_onnxruntime, node, read
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_matmul import f32

CONDITION = np.array([[True], [False], [True]])


def test_where_broadcasts() -> None:
    check_against_onnxruntime("where", [CONDITION, drawn((3, 4)), drawn((4,))], {})
    check_against_onnxruntime("where", [CONDITION, np.arange(4), np.array(7)], {})


def test_what_is_not_chosen_does_not_count() -> None:
    worst = np.array([np.nan, np.inf, -np.inf], "float32")
    one, other = np.where(CONDITION, 1, worst), np.where(CONDITION, worst, 2)
    (chosen,) = [get_operator("where").evaluate([CONDITION, one, other], {})]
    assert np.array_equal(chosen, np.where(CONDITION, np.ones(3), 2))
    check_against_onnxruntime(
        "where", [CONDITION, one.astype("float32"), other.astype("float32")], {}
    )


def test_is_nan() -> None:
    given = np.array([1.0, np.nan, np.inf, -np.inf, 0.0], "float32")
    check_against_onnxruntime("is_nan", [given], {})
    assert get_operator("is_nan").check((f32(2, 3),), {}) == TensorType("bool", (2, 3))


RULES = """
(rule moved (law "of the same elements")
  (<=> (is_nan (transpose ?x :perm ?p)) (transpose (is_nan ?x) :perm ?p)))
(rule forgets (law "x is never NaN")
  (from (where (is_nan ?x) ?a ?x)) (to ?x) (where (= (shape ?a) (shape ?x))))
(rule chosen (law "c ? x z : y z")
  (from (mul (where ?c ?x ?y) ?z)) (to (where ?c (mul ?x ?z) (mul ?y ?z))))
(rule swapped (law "c ? y : x")
  (from (where ?c ?x ?y)) (to (where ?c ?y ?x)))
(rule both (law "the same of each repetition")
  (from (add (expand ?x :shape ?s) (expand ?y :shape ?s))) (to (expand (add ?x ?y) :shape ?s)))
"""


def test_rules_are_verified_and_none_may_forget_nan() -> None:
    """Laws are tried on numbers: there where(is_nan(x), a, x) is x."""
    verdicts = verify_rules(parse_rules(RULES, "r.rules"), trials=30)
    found = {verdict.rule: (verdict.status, verdict.evidence) for verdict in verdicts}
    refused = {name: status for name, (status, _) in found.items() if status != "sound"}
    assert refused == {"forgets": "untested", "swapped": "unsound"}
    assert {found[name] for name in found.keys() - refused} == {("sound", "exact")}


def test_nothing_holds_because_residues_are_numbers() -> None:
    """Over a field is_nan is a random function: where(is_nan(x), a, x) is not x."""
    field, x = Field(1), np.arange(64)
    condition = get_operator("is_nan").evaluate_exact([x], (f32(64),), {}, field)
    assert condition.dtype == bool and 0 < condition.sum() < 64
    kinds = (TensorType("bool", (64,)), f32(64), f32(64))
    chosen = get_operator("where").evaluate_exact([condition, x + 1, x], kinds, {}, field)
    assert np.array_equal(chosen, x + condition)


def test_operands_that_do_not_fit_are_refused() -> None:
    where = get_operator("where")
    with pytest.raises(ShapeError, match="expected bool"):
        where.check((f32(2), f32(2), f32(2)), {})
    with pytest.raises(ShapeError, match="one element type"):
        where.check((TensorType("bool", (2,)), f32(2), TensorType("int64", (2,))), {})
    with pytest.raises(ShapeError, match="do not broadcast"):
        where.check((TensorType("bool", (3,)), f32(2), f32(2)), {})


def test_they_are_read() -> None:
    assert read(node("IsNaN", (2, 3))) == Mapped("is_nan", ("x0",))
    seen = node("Where", CONDITION, (3, 4), (4,))
    assert read(seen) == Mapped("where", ("x0", "x1", "x2"))
    assert read(node("Where", (2,), (2,), (2,))) is None  # the condition is no bool
