"""An extractor of one's own needs one function and a name."""

from __future__ import annotations

import pytest

from relational_tensat import Options, optimize
from relational_tensat.base.errors import UsageError
from relational_tensat.extract import ExtractionOptions, ExtractionProblem, dag_cost_us, extract
from relational_tensat.extract.extraction import (
    ExtractionTask,
    ExtractorAnswer,
    greedy,
    greedy_dag,
)
from relational_tensat.extract.extraction_options import EXTRACTORS
from tests.explore.graphs import mixed
from tests.extract.instances import brute_force_us, random_problem


def better_of_two(problem: ExtractionProblem, task: ExtractionTask) -> ExtractorAnswer:
    """Choose by both greedy ways, and take what is cheaper."""
    choices = [extractor(problem, task).choice for extractor in (greedy, greedy_dag)]
    return ExtractorAnswer(min(choices, key=lambda choice: dag_cost_us(problem, choice)))


def test_extraction_and_a_run_use_it_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRACTORS, "better-of-two", better_of_two)
    for seed in range(10):
        problem = random_problem(seed)
        result = extract(problem, ExtractionOptions("better-of-two"))
        others = [extract(problem, ExtractionOptions(name)) for name in ("greedy", "greedy-dag")]
        assert result.method == "better-of-two"
        assert result.cost_us == min(other.cost_us for other in others)
        assert result.bound_us <= brute_force_us(problem) <= result.cost_us + 1e-9
    result = optimize(mixed(), Options.of(cost="t4", extractor="better-of-two"))
    assert result.extractor == "better-of-two"
    with pytest.raises(UsageError, match=r"'better'.*did you mean 'better-of-two'"):
        ExtractionOptions("better")
