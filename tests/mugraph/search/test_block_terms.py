"""What a search leaves out because it costs too much, beside the search without bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest

from relational_tensat.base.watch import Watch
from relational_tensat.mugraph import kernel_finder
from relational_tensat.mugraph.candidate_cache import SizedCandidates
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernel_finder import CheapestSoFar, find_kernels, searched
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.kernel_search import search_kernels
from relational_tensat.mugraph.search.routes import NoBound, Route
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizes.cost_model import Traffic, least_kernel_us
from relational_tensat.mugraph.sizes.waves import a100
from relational_tensat.mugraph.verify.verification import MuGraphVerification
from tests.mugraph.search.test_several_outputs import gate_and_up, sum_and_norm
from tests.tiers import nightly

#: Of these one kernel is best, or two, or a library's operator and a kernel.
PROGRAMS = {
    "attention": program("attention", q=1, k=512),
    "lora": program("lora"),
    "mlp": program("mlp"),
    "rmsnorm_linear": program("rmsnorm_linear"),
    "gate_and_up": gate_and_up(64, 512, 512),
    "sum_and_norm": sum_and_norm(4096, 4096),
}
_SLOW = ("lora", "attention", "rmsnorm_linear", "gate_and_up")
CASES = [nightly(name) if name in _SLOW else name for name in PROGRAMS]
THREE = SearchOptions(max_kernels=3)
EVERY = replace(THREE, disable=("bounds",))


@cache
def with_and_without(name: str) -> tuple[SizedCandidates, SizedCandidates]:
    """Return what is found for a program with bounds, and all there is."""
    return searched(PROGRAMS[name], THREE), searched(PROGRAMS[name], EVERY)


def traffic(graph: MuGraph) -> list[list[Traffic]]:
    """Return what each step of a μGraph loads and stores."""
    dims = kernel_tensors(graph)
    return [
        [Traffic(dims[name], name in graph.wide) for name in (*step.operands, *step.outputs)]
        for step in graph.steps
    ]


@pytest.mark.parametrize("name", CASES)
def test_up_to_the_cheapest_all_is_found_that_is_found_without_bounds(name: str) -> None:
    few, every = with_and_without(name)
    assert every.complete_to_us == math.inf and few.complete_to_us < math.inf
    assert few.routes < every.routes and sum(level.too_costly for level in few.levels)
    wanted = [made for made in every.graphs if made.cost_us <= few.complete_to_us]
    assert wanted and list(few.graphs[: len(wanted)]) == wanted


@pytest.mark.parametrize("name", CASES)
def test_no_kernel_takes_less_than_its_launch_and_what_it_moves(name: str) -> None:
    for made in with_and_without(name)[1].graphs:
        least_us = sum(least_kernel_us(tensors, a100()) for tensors in traffic(made.graph))
        assert least_us <= made.cost_us * (1 + 1e-12)


def test_no_graph_is_cheaper_than_what_its_first_kernels_take_at_least() -> None:
    """Whatever the way is and wherever it is cut: the kernels before, and one more."""
    so_far = CheapestSoFar(PROGRAMS["mlp"], a100(), bounds=False)
    routes = search_kernels(PROGRAMS["mlp"], THREE, bound=so_far).routes
    cuts = 0
    for route in routes:
        for made in so_far.graphs([route]):
            for cut in range(1, len(route.alternatives)):
                before_us = so_far.least_before_us((route.alternatives[:cut],))
                after_us = sum(least_kernel_us(t, a100()) for t in traffic(made.graph)[cut:])
                assert before_us + after_us <= made.cost_us * (1 + 1e-12)
                cuts += 1
    assert cuts > 20


@pytest.mark.nightly
def test_where_the_cheapest_is_refused_what_was_left_out_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One kernel is best for LoRA; all graphs of one kernel are refused here."""
    every = with_and_without("lora")[1].graphs
    first = next(made for made in every if len(made.graph.steps) > 1)

    def verify(_: MuGraph, graph: MuGraph, __: int) -> MuGraphVerification:
        return MuGraphVerification(None, small_tests=1 if len(graph.steps) > 1 else 0)

    monkeypatch.setattr(kernel_finder, "verify_mugraph", verify)
    found = find_kernels(PROGRAMS["lora"], THREE)
    assert found.result.complete_to_us == math.inf
    assert found.best is not None and len(found.best.graph.steps) == len(first.graph.steps)
    assert found.result.graphs[found.refused] == first


def test_a_search_that_is_ended_between_kernels_is_not_complete() -> None:
    class Ending(NoBound):
        def note(self, route: Route) -> None:
            found.append(route)

    found: list[Route] = []
    watch = Watch(should_stop=lambda: bool(found))
    result = search_kernels(PROGRAMS["mlp"], THREE, watch=watch, bound=Ending())
    assert len(result.levels) == 1 and result.routes and not result.is_complete


def test_what_could_not_be_made_ready_bounds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    so_far = CheapestSoFar(PROGRAMS["mlp"], a100())
    monkeypatch.setattr(so_far, "_is_ready", lambda made: False)
    result = search_kernels(PROGRAMS["mlp"], THREE, bound=so_far)
    assert so_far.complete_to_us == math.inf
    assert so_far.graphs(result.routes) == list(with_and_without("mlp")[1].graphs)
