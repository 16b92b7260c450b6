"""Questions to z3, and the same answer to the same question, in any order.

z3 numbers terms as they are made, and so do solvers with what they add. These numbers decide which model z3
finds, and whether a proof fits its bounds. So each question is written out, and read in a context of its
own. It is bounded by work, never by time: a verdict does not depend on how busy a machine is.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any


def has_z3() -> bool:
    """Whether z3 is installed."""
    return importlib.util.find_spec("z3") is not None


def is_refuted(terms: Sequence[Any], effort: int) -> bool:
    """Whether z3 proves that terms do not hold together.

    Args:
        effort: the most that it may spend, in z3's own unit.
    """
    import z3

    solver, _ = _solver(terms, effort)
    return bool(solver.check() == z3.unsat)


def model_of(terms: Sequence[Any], variables: Sequence[Any], effort: int) -> list[Any] | None:
    """Return values of variables for which terms hold; None where z3 finds none.

    Args:
        effort: as for ``is_refuted``.
    """
    import z3

    solver, context = _solver(terms, effort)
    if solver.check() != z3.sat:
        return None
    model = solver.model()
    return [model.eval(v.translate(context), model_completion=True) for v in variables]


def _solver(terms: Sequence[Any], effort: int) -> tuple[Any, Any]:
    """Return a solver with terms, in the order given, and its context."""
    import z3

    written = z3.Solver()
    written.add(*terms)
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", effort)
    solver.from_string(written.sexpr())
    return solver, context
