"""Comparisons against onnxruntime, how they are read, and that no law of them may forget NaN."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.soundness import verify_rules
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators import Mapped, get_operator
from tests.tensor.operators.onnx_oracle import check_against_onnxruntime, node, read
from tests.tensor.operators.test_matmul import f32

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], "float32")
CONDITIONS = [np.array([[True], [False]]), np.array([True, False, True])]


@pytest.mark.parametrize("op", ["less", "less_or_equal", "equal"])
def test_comparisons(op: str) -> None:
    check_against_onnxruntime(op, [SPECIAL[:, None], SPECIAL], {})
    assert get_operator(op).check((f32(2, 1), f32(3)), {}) == TensorType("bool", (2, 3))
    with pytest.raises(ShapeError, match="takes floats"):
        get_operator(op).check((TensorType("int64", (2,)), TensorType("int64", (2,))), {})


def test_what_combines_them() -> None:
    check_against_onnxruntime("logical_not", CONDITIONS[:1], {})
    check_against_onnxruntime("logical_and", CONDITIONS, {})
    check_against_onnxruntime("logical_or", CONDITIONS, {})
    with pytest.raises(ShapeError, match="takes conditions, not float32"):
        get_operator("logical_and").check((f32(2), f32(2)), {})


def test_they_are_read() -> None:
    assert read(node("Less", (2, 3), (3,))) == Mapped("less", ("x0", "x1"))
    assert read(node("Greater", (2, 3), (3,))) == Mapped("less", ("x1", "x0"))
    assert read(node("GreaterOrEqual", (2,), (2,))) == Mapped("less_or_equal", ("x1", "x0"))
    assert read(node("Less", np.arange(3), np.arange(3))) is None  # integers are left to ONNX
    assert read(node("And", *CONDITIONS)) == Mapped("logical_and", ("x0", "x1"))


RULES = """
(rule moved (law "of the same elements")
  (<=> (less (transpose ?x :perm ?p) (transpose ?y :perm ?p)) (transpose (less ?x ?y) :perm ?p)))
(rule forgets (law "NaN is neither")
  (from (logical_not (less ?x ?y))) (to (less_or_equal ?y ?x)))
(rule twice (law "not not")
  (from (logical_not (logical_not (less ?x ?y)))) (to (less ?x ?y)))
(rule turned (law "wrong")
  (from (where (less ?x ?y) ?x ?y)) (to (where (less ?y ?x) ?x ?y)))
"""


def test_rules_are_verified_and_none_may_forget_nan() -> None:
    verdicts = verify_rules(parse_rules(RULES, "r.rules"), trials=30)
    assert {v.rule for v in verdicts if v.status != "sound"} == {"forgets", "turned"}
