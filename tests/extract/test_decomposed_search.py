"""Large e-graphs are decomposed first: reductions see one of the isomorphic components."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.extract import ExtractionProblem, dag_cost_us, extract
from relational_tensat.extract.exact import ilp, isomorphic
from relational_tensat.extract.exact.isomorphic import isomorphic_groups
from relational_tensat.extract.exact.reduce import smaller_problem
from relational_tensat.extract.exact.reduce.declaration import REDUCTIONS
from relational_tensat.extract.exact.reduce.reductions.needless import drop_underivable
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced, unreduced
from relational_tensat.extract.problem import Ints
from relational_tensat.extract.techniques import TECHNIQUES
from tests.extract.instances import NodeSpec, brute_force_us, build, layered_problem, random_problem
from tests.extract.small_egraphs import small_problem

SEEDS = st.integers(0, 10**9)


@pytest.fixture(autouse=True, scope="module")
def _small_ones_too() -> Iterator[None]:
    """Decompose what is small, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ilp, "LEAST_NODES", 0)
        yield


def in_series(problems: list[ExtractionProblem]) -> ExtractionProblem:
    """Return an e-graph in which every leaf of an e-graph needs the root of the one before."""
    nodes: list[NodeSpec] = []
    below: list[int] = []
    first = 0
    for problem in problems:
        for node in range(problem.n_nodes):
            children = (first + problem.children(node)).tolist() or below
            nodes.append((first + int(problem.node_class[node]), problem.cost_us[node], children))
        below = [first + problem.root]
        first += problem.n_classes
    return build(nodes, first, below[0])


@settings(max_examples=60, deadline=None)
@given(seeds=st.lists(st.integers(0, 50), min_size=2, max_size=6))
def test_the_optimum_of_a_chain_is_that_of_its_links(seeds: list[int]) -> None:
    links = [random_problem(seed) for seed in seeds]
    chain = in_series(links)
    extraction = extract(chain)
    assert extraction.optimal
    assert extraction.cost_us == pytest.approx(sum(brute_force_us(link) for link in links))
    assert dag_cost_us(chain, extraction.choice) == pytest.approx(extraction.cost_us)


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS, without=st.sets(st.sampled_from(sorted(TECHNIQUES))))
def test_the_optimum_of_anything_decomposed_stays(seed: int, without: set[str]) -> None:
    problem = small_problem(seed)
    extraction = extract(problem, disable=without)
    assert extraction.optimal
    assert extraction.cost_us == pytest.approx(brute_force_us(problem))


def test_what_the_components_begin_with_is_taken_though_none_of_them_finds_better() -> None:
    chain = in_series([small_problem(seed) for seed in (707104, 637273, 523957, 218763)])
    extraction = extract(chain)
    assert extraction.optimal
    assert extraction.cost_us == 13.0


def counting(function: Callable[..., Any], sizes: list[int]) -> Callable[..., Any]:
    """Return a function that also notes the e-nodes of every e-graph that it is given."""

    def counted(egraph: Any, *others: Any, **options: Any) -> Any:
        problem = egraph.problem if isinstance(egraph, Reduced) else egraph
        sizes.append(problem.n_nodes)
        return function(egraph, *others, **options)

    return counted


def test_what_reductions_see_does_not_grow_with_the_count_of_isomorphic_layers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    required = REDUCTIONS["required"]
    counted = replace(required, run=counting(required.run, seen))
    monkeypatch.setitem(REDUCTIONS, "required", counted)
    totals = []
    for layers in (5, 50):
        seen.clear()
        extraction = extract(in_series([layered_problem(1, 4, seed=3)] * layers))
        assert extraction.optimal
        assert extraction.components - extraction.distinct_components == layers - 1
        totals.append((sum(seen), extraction.cost_us / layers))
    assert totals[0] == pytest.approx(totals[1])
    assert totals[0][0] > 0


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, count=st.integers(1, 3), smallest=st.sampled_from([0, 20_000]))
def test_large_e_graphs_are_decomposed_before_all_greedy_methods_are_through(
    seed: int, count: int, smallest: int
) -> None:
    chain = in_series([random_problem(seed)] * count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ilp, "LARGEST_UNLIMITED", smallest)
        extraction = extract(chain)
    assert extraction.optimal
    assert extraction.cost_us == pytest.approx(count * brute_force_us(random_problem(seed)))


def test_what_is_solved_in_components_needs_no_other_greedy_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain = in_series([layered_problem(1, 4, seed=3)] * 5)
    sizes: list[int] = []
    improved = counting(ilp.greedy_choices, sizes)

    def no_further(problem: ExtractionProblem, *others: Any) -> Iterator[Ints]:
        for number, choice in enumerate(improved(problem, *others)):
            assert number < 1 or problem.n_nodes < chain.n_nodes, "beyond tree-greedy"
            yield choice

    monkeypatch.setattr(ilp, "greedy_choices", no_further)
    monkeypatch.setattr(ilp, "LARGEST_UNLIMITED", 0)
    extraction = extract(chain)
    assert extraction.optimal
    assert sizes[0] == chain.n_nodes and sizes.count(chain.n_nodes) == 1
    assert extraction.components == 5 * extraction.distinct_components > 0


def test_a_component_of_the_same_names_is_coloured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    refined: list[int] = []
    monkeypatch.setattr(isomorphic, "_refined", counting(isomorphic._refined, refined))
    component = random_problem(4)
    (group,) = isomorphic_groups([component, in_series([component]), in_series([component])])
    assert len(group) == 3
    assert len(refined) == 1


def test_what_is_known_to_be_reached_is_not_gone_through_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone_through: list[int] = []
    monkeypatch.setattr(
        smaller_problem, "_reached", counting(smaller_problem._reached, gone_through)
    )
    once = drop_underivable(unreduced(layered_problem(2, 3, seed=1)))
    for _ in range(3):
        assert drop_underivable(once) is once
    assert len(gone_through) == 1
