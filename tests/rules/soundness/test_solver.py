"""The same question to z3 has the same answer, whatever was made and asked before it."""

from __future__ import annotations

import pytest

from relational_tensat.rules.soundness.solver import is_refuted, model_of

z3 = pytest.importorskip("z3")

_EFFORT = 150_000


def _question(names: str = "a b c d") -> tuple[list[object], list[object]]:
    a, b, c, d = z3.Ints(names)
    asked = [a * b == c + d, a > 1, b > 1, c > 2, d > 1, a + b + c + d < 40, z3.Or(a > b, c > d)]
    return [*asked, a != b], [a, b, c, d]


def _answer() -> list[int]:
    values = model_of(*_question(), _EFFORT)
    assert values is not None
    return [value.as_long() for value in values]


def test_an_answer_does_not_depend_on_what_was_asked_before() -> None:
    first = _answer()
    a, b, c, d = first
    assert a * b == c + d and a + b + c + d < 40
    solvers = []
    for names in ("d c b a", "p q r s", "a b c d"):
        solver = z3.Solver()
        solver.add(*_question(names)[0])
        assert solver.check() == z3.sat
        solvers.append((solver, solver.model()))
        assert _answer() == first


def test_effort_bounds_a_question_and_what_is_false_is_refuted() -> None:
    x, y = z3.BitVecs("x y", 16)
    differ = [z3.UDiv(x * y, y) * y == x * y + 1, x > 5, y > 5]
    assert not is_refuted(differ, 20_000)
    assert is_refuted([x + y != y + x], 20_000)
    assert not is_refuted([x + y != y - x], 20_000)
    assert model_of([x != x], [x], 20_000) is None
