"""A new reduction changes one file: where it is declared. Here that is this test."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.base.errors import UsageError
from relational_tensat.extract import TECHNIQUES, extract
from relational_tensat.extract.exact.reduce.declaration import (
    REDUCTIONS,
    ReductionStage,
    in_stage,
    reduction,
)
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced, keep
from relational_tensat.extract.index import children_by_node, nodes_by_class
from relational_tensat.extract.techniques import _declared
from tests.extract.instances import brute_force_us, random_problem

NAME = "dear-leaves"


@pytest.fixture
def _declare() -> Iterator[None]:
    """Declare a reduction for the time of one test."""

    @reduction(
        NAME,
        "drop leaves beside a cheaper one",
        stage=ReductionStage.LINEAR,
        order=5,
        earns_on=None,
    )
    def drop_dear_leaves(reduced: Reduced, check: Check = unlimited) -> Reduced:
        """Drop a leaf beside which another of its class costs no more: that can stand for it."""
        children, cost = children_by_node(reduced.problem), reduced.problem.cost_us
        nodes = np.ones(reduced.problem.n_nodes, dtype=np.bool_)
        for members in nodes_by_class(reduced.problem):
            leaves = sorted((cost[node], node) for node in members if not children[node])
            for _, node in leaves[1:]:
                nodes[node] = False
        return keep(reduced, nodes)

    yield
    del REDUCTIONS[NAME], _declared._by_name[NAME]


@pytest.mark.usefixtures("_declare")
def test_a_reduction_that_is_declared_anywhere_is_used_counted_and_can_be_disabled() -> None:
    assert in_stage(ReductionStage.LINEAR)[0].name == NAME
    assert TECHNIQUES[NAME].effect == "drop leaves beside a cheaper one"
    dropped = 0
    for seed in range(30):
        problem = random_problem(seed)
        result = extract(problem)
        assert result.cost_us == pytest.approx(brute_force_us(problem))
        dropped += result.reductions.get(NAME, 0)
        assert NAME not in extract(problem, disable=(NAME,)).reductions
    assert dropped > 0


def test_what_is_not_declared_cannot_be_disabled() -> None:
    with pytest.raises(UsageError, match=f"unknown technique '{NAME}'"):
        extract(random_problem(1), disable=(NAME,))


@pytest.mark.usefixtures("_declare")
def test_a_name_is_declared_once() -> None:
    with pytest.raises(ValueError, match=NAME):
        reduction(NAME, "", stage=ReductionStage.LINEAR, order=0, earns_on=None)(
            REDUCTIONS[NAME].run
        )
