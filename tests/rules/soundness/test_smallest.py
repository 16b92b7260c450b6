"""Hypothesis starts from what was met, and what it leaves is cut down further."""

from __future__ import annotations

import pytest

from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.soundness import smallest as search
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.rules.soundness.judgement import Judge, LawOutcome
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.rules.soundness.smallest import _neighbours, trimmed
from relational_tensat.tensor.operators.samples import SeededChoices
from relational_tensat.tensor.types import TensorType

(RULE,) = parse_rules(
    '(rule r (law "l") (from (add (matmul ?a ?b) (matmul ?c ?d))) (to (matmul ?a (add ?b ?d))))',
    "f",
)


def elements(configuration: RuleConfiguration) -> int:
    return sum(kind.size for kind in configuration.var_types)


def met(judge: Judge, least: int) -> tuple[RuleConfiguration, list[int]]:
    """A large configuration where the law fails, and the decisions that led to it."""
    choices = SeededChoices(0)
    while True:
        choices.restart()
        configuration = draw_configuration(judge.plan, choices)
        if (
            configuration is not None
            and elements(configuration) >= least
            and fails(judge, configuration)
        ):
            return configuration, choices.taken


def fails(judge: Judge, configuration: RuleConfiguration) -> bool:
    both = judge.sides(configuration)
    return both is not None and judge.holds(configuration, both) is LawOutcome.FAILS


def test_hypothesis_follows_the_decisions_and_simplifies_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "trimmed", lambda rule, configuration, fails: configuration)
    judge = Judge(DrawPlan(RULE), 0)
    start, taken = met(judge, 60)
    smallest = search.smallest(judge, start, taken)
    assert elements(smallest) < elements(start) / 2
    assert fails(judge, smallest)
    assert search.smallest(judge, start, taken) == smallest


def test_the_smallest_has_no_smaller_neighbour() -> None:
    judge = Judge(DrawPlan(RULE), 0)
    start, taken = met(judge, 60)
    smallest = search.smallest(judge, start, taken)
    assert {kind.shape for kind in smallest.var_types} == {(1, 1)}
    assert (
        trimmed(RULE, start, lambda configuration: fails(judge, configuration)).var_types
        == smallest.var_types
    )


def test_the_number_of_configurations_judged_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_MOST_JUDGED", 1)
    monkeypatch.setattr(search, "_MOST_TRIMMED", 1)
    judge = Judge(DrawPlan(RULE), 0)
    start, taken = met(judge, 60)
    assert search.smallest(judge, start, taken) == start


def test_an_axis_of_thousands_is_not_cut_one_by_one() -> None:
    """All of them, twice, would be millions of neighbours."""
    gathered = (TensorType("float32", (1, 4100)), TensorType("int64", (4100,)))
    assert len(list(_neighbours(gathered))) < 3_000
