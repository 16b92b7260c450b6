"""Every technique earns its place: on an instance that is kept, a count is lower with it than without."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from bench.extract.kept import kept_sources
from relational_tensat.base.deadline import unlimited
from relational_tensat.extract import TECHNIQUES, ExtractionOptions, ExtractionProblem, extract
from relational_tensat.extract.exact.reduce.rounds import reduce_and_pin
from relational_tensat.extract.exact.reduce.smaller_problem import unreduced
from relational_tensat.extract.techniques import TechniqueGain, Techniques

pytestmark = pytest.mark.nightly

Count = Callable[[TechniqueGain, tuple[str, ...]], int]


@pytest.fixture(scope="module")
def count(tmp_path_factory: pytest.TempPathFactory) -> Count:
    """Return a function that counts what solving an instance without some techniques takes."""
    folder = tmp_path_factory.mktemp("egraphs")

    @cache
    def problem_of(instance: str) -> ExtractionProblem:
        (source,) = (source for source in kept_sources(folder) if source.name == instance)
        return source.make().problem

    @cache
    def counted(gain: TechniqueGain, disabled: tuple[str, ...]) -> int:
        problem = problem_of(gain.instance)
        if gain.count == "e_nodes":
            return e_nodes_left(problem, disabled)
        result = extract(problem, ExtractionOptions(time_limit_s=600.0), disable=disabled)
        assert result.optimal
        return int(getattr(result, gain.count))

    return counted


def e_nodes_left(problem: ExtractionProblem, disabled: tuple[str, ...]) -> int:
    """Return how many e-nodes the reductions leave."""
    *_, last = reduce_and_pin(unreduced(problem), unlimited, Techniques(frozenset(disabled)))
    return last.problem.n_nodes


def test_every_technique_names_an_instance_that_is_kept() -> None:
    kept = {source.name for source in kept_sources(Path())}
    for technique in TECHNIQUES.values():
        assert technique.earns_on is not None, technique.name
        assert technique.earns_on.instance in kept, technique.name
        assert technique.earns_on.count in ("simplex_iterations", "branch_nodes", "e_nodes")


@pytest.mark.parametrize("name", sorted(TECHNIQUES))
def test_a_technique_earns_its_place(name: str, count: Count) -> None:
    gain = TECHNIQUES[name].earns_on
    assert gain is not None
    assert count(gain, ()) < count(gain, (name,))
