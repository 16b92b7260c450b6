"""Which runs count for other limits and seeds, too: beside runs that were made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.common.rule_sets import RULE_SETS
from bench.models import MODELS
from bench.search.cells import Cell
from bench.search.common_steps import run_for
from bench.search.measure import measure
from bench.search.search_run import GrownSubgraph, Limits, SearchRun, Snapshot
from relational_tensat.cost import load_profile
from relational_tensat.explore import ExplorationOptions
from relational_tensat.extract import ExtractionOptions

SUBGRAPH_NODES = 80


def run_of(search: str, k_multi: int, node_limit: int, seed: int = 0) -> SearchRun:
    """Run VGG-19, whose whole e-graph has 95 e-nodes."""
    limits = ExplorationOptions(
        multi_iterations=k_multi,
        node_limit=node_limit,
        subgraph_nodes=SUBGRAPH_NODES,
        time_limit_s=None,
    )
    rules, profile = RULE_SETS["shipped"](), load_profile("tensat_t4")
    options = ExtractionOptions()
    return measure(MODELS["vgg19"](), search, limits, options, rules, profile, None, seed)


def cell_of(run: SearchRun) -> Cell:
    return Cell(run.model, run.search, Limits(run.k_multi, run.node_limit), run.seed)


def without_times(run: SearchRun) -> SearchRun:
    grown = tuple(subgraph._replace(cpu_s=0.0) for subgraph in run.grown)
    moments = tuple(moment._replace(cpu_s=0.0) for moment in run.moments)
    return replace(
        run, grown=grown, moments=moments, explore_cpu_s=0.0, cpu_s=0.0, wall_s=0.0, join_ms=0.0
    )


def shared(run: SearchRun, other: SearchRun) -> SearchRun | None:
    """Return what one run's cell gets from the other run."""
    found = run_for(cell_of(run), other, SUBGRAPH_NODES)
    return found and without_times(found)


@pytest.mark.nightly
def test_focus_has_the_subgraphs_of_smaller_limits_first() -> None:
    narrow, wide = run_of("focus", 1, SUBGRAPH_NODES), run_of("focus", 1, 2 * SUBGRAPH_NODES)
    assert len(wide.grown) > len(narrow.grown)
    assert shared(narrow, wide) == without_times(narrow)
    assert shared(wide, narrow) is None


@pytest.mark.nightly
def test_saturation_that_no_limit_met_is_that_of_larger_ones() -> None:
    limited, whole, same = (run_of("saturation", 1, limit) for limit in (90, 500, 1_000))
    assert limited.stop_reason == "nodes"
    assert shared(same, whole) == without_times(same)
    assert shared(limited, whole) is None
    assert shared(whole, limited) is None


@pytest.mark.nightly
def test_saturation_that_used_fewer_multi_iterations_is_that_of_more() -> None:
    runs = {k_multi: run_of("saturation", k_multi, 500) for k_multi in (1, 8, 9)}
    assert runs[8].iterations < 8
    assert shared(runs[9], runs[8]) == without_times(runs[9])
    assert shared(runs[8], runs[1]) is None
    assert run_for(Cell("vgg19", "saturation", Limits(8, 1_000)), runs[9], SUBGRAPH_NODES) is None


def subgraph(kind: str, node_limit: int, stop_reason: str, iteration: int) -> GrownSubgraph:
    return GrownSubgraph(
        kind, node_limit, 9.0 - iteration, 50, iteration, stop_reason, iteration, 1.0
    )


FOCUS = SearchRun(
    "m", "focus", 1, 320, 50, 2, 4, "time", 9.0, 5.0, 5.0, 6.0, 6.0, 6.0, 1.0, cpu_limit_s=6.0,
    grown=(subgraph("original", 80, "nodes", 2), subgraph("chosen", 160, "saturated", 4)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("run", "node_limit", "cost_us"),
    [
        (FOCUS, 80, 7.0),  # its first width
        (FOCUS, 640, 5.0),  # it did not come to where they differ
        (FOCUS, 100, None),  # 100 is no width of it
        (replace(FOCUS, iterations=5), 160, None),  # who knows of what width the last subgraph was
        (replace(FOCUS, iterations=5), 640, 5.0),  # both have these widths
        (
            replace(FOCUS, iterations=3, subgraphs=1, grown=FOCUS.grown[:1]),
            640,
            5.0,
        ),  # wherever, both go there
        (
            replace(FOCUS, stop_reason="focus", subgraphs=1, grown=FOCUS.grown[1:]),
            640,
            5.0,
        ),  # no wider one comes
        (replace(FOCUS, stop_reason="focus", node_limit=160), 320, None),  # wider ones come
        (FOCUS, 40, None),
    ],
)
def test_focus_at_other_widths(run: SearchRun, node_limit: int, cost_us: float | None) -> None:
    found = run_for(Cell("m", "focus", Limits(1, node_limit, 6.0)), run, SUBGRAPH_NODES)
    assert (found and found.cost_after_us) == cost_us
    assert found is None or found.node_limit == node_limit


def test_focus_without_a_restart_is_that_of_all_seeds() -> None:
    cell = Cell("m", "focus", Limits(1, 320, 6.0), seed=3)
    drew_nothing = replace(FOCUS, stop_reason="saturated")
    found = run_for(cell, drew_nothing, SUBGRAPH_NODES)
    assert found is not None and found.seed == 3
    restarted = replace(drew_nothing, grown=(*FOCUS.grown, subgraph("original", 160, "closed", 5)))
    assert run_for(cell, restarted, SUBGRAPH_NODES) is None
    assert run_for(cell, FOCUS, SUBGRAPH_NODES) is None
    without_subgraphs = replace(drew_nothing, grown=())  # of a table that does not have them
    assert run_for(cell, without_subgraphs, SUBGRAPH_NODES) is None


def test_costs_at_budgets() -> None:
    taken = Snapshot(5.0, 7.0)
    run = replace(FOCUS, search="saturation", grown=(), snapshots=(taken,), cpu_limit_s=60.0)
    assert [run.cost_at_us(budget_s) for budget_s in (5.0, 20.0, 60.0)] == [7.0, 5.0, 5.0]
    assert replace(run, cpu_limit_s=20.0).cost_at_us(60.0) is None
