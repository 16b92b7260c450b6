"""The budget of an iteration on BERT is its count of statements: each costs about a millisecond.

A budget is what is needed today, to be lowered when less is: a statement more has to be worth it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from bench.models import MODELS
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Rule


@dataclass(frozen=True, slots=True)
class Budget:
    """The most statements.

    Attributes:
        loading: to put the model into the tables.
        around: of an exploration, before its first iteration and after its last.
        per_iteration: one number per iteration.
    """

    loading: int
    around: int
    per_iteration: tuple[int, ...]


@pytest.mark.parametrize(
    ("rules", "k_multi", "budget"),
    [
        (taso_rules, 2, Budget(42, 19, (30, 53, 35, 33, 12))),
        (load_rules, 1, Budget(42, 19, (30, 15, 27, 25, 9))),
    ],
)
def test_berts_iterations_keep_to_their_budget(
    rules: Callable[[], Sequence[Rule]], k_multi: int, budget: Budget
) -> None:
    egraph = EGraph.create(MODELS["bert"]())
    loading = egraph.database.statements
    exploration = explore(egraph, rules(), ExplorationOptions(15, k_multi, multi_schedule="first"))
    around = egraph.database.statements - loading - exploration.statements
    egraph.close()
    assert exploration.stop_reason == "saturated"
    statements = tuple(entry.statements for entry in exploration.log)
    assert len(statements) == len(budget.per_iteration)
    over = [
        f"iteration {number}: {count} statements, budget {most}"
        for number, (count, most) in enumerate(
            zip(statements, budget.per_iteration, strict=True), start=1
        )
        if count > most
    ]
    assert not over
    assert loading <= budget.loading
    assert around <= budget.around
