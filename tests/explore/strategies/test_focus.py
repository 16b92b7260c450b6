"""Focus: subgraphs grown from what was chosen in the one before, all of one universe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.models import MODELS
from relational_tensat.base.errors import UsageError
from relational_tensat.base.files import resource_dir
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cost import load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, explore
from relational_tensat.explore.exploration_options import TreeOptions
from relational_tensat.explore.outcome import IterationReport, Observer
from relational_tensat.explore.strategies.saturation_then_focus import explore_focus
from relational_tensat.explore.strategies.strategy import SearchSettings
from relational_tensat.extract import Extraction, ExtractionOptions
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.rules.library import load_rules
from relational_tensat.run.progress import Silent
from tests.egraph.invariants import assert_invariants
from tests.explore.subgraph_invariants import assert_subgraph_invariants, ids
from tests.run.resume.models import RULES, layers

COST = load_profile("tensat_t4")


def extractor_of(egraph: EGraph) -> AnytimeExtractor:
    """Return what extracts from an e-graph."""
    return AnytimeExtractor(egraph, COST, ExtractionOptions(), ProcessOptions(), Silent())


def focus(
    egraph: EGraph,
    options: ExplorationOptions,
    progress: Callable[[IterationReport], None] | None = None,
    after: Callable[[int], str | None] | None = None,
    restarts: int = 1,
    tree: TreeOptions | None = None,
    rules: Sequence[Path] = (),
) -> tuple[Exploration, Extraction]:
    """Search and extract."""
    extractor = extractor_of(egraph)
    observer = Observer(progress, after=after, watch=extractor.watch)
    name = "focus" if tree is None else "focus-mcts"
    options = replace(options, restarts=restarts, search=name)
    search = SearchSettings(options, extractor, observer, tree=tree or TreeOptions())
    exploration = explore_focus(egraph, load_rules(rules), search)
    return exploration, extractor.finish(exploration.iterations)


def saturated(model: str, options: ExplorationOptions) -> Extraction:
    """Return what plain exploration finds within the same limits."""
    egraph = EGraph.create(MODELS[model]())
    explore(egraph, load_rules(), options)
    return extractor_of(egraph).finish(1)


@pytest.mark.nightly
def test_it_finds_what_saturation_misses_and_all_holds_after_every_step() -> None:
    egraph = EGraph.create(MODELS["nasrnn"]())
    limits = {"node_limit": 600, "time_limit_s": None}
    options = ExplorationOptions(search="focus", subgraph_nodes=600, **limits)
    subgraphs: list[int] = []

    def check(report: IterationReport) -> None:
        ((subgraph,),) = egraph.connection.execute(
            "SELECT max(subgraph) FROM subgraph_node"
        ).fetchall()
        subgraphs.append(subgraph)
        if report.iteration % 3 == 1:
            egraph.catalogue.flush(egraph.database)
            assert_subgraph_invariants(egraph, subgraph)

    exploration, extraction = focus(egraph, options, check)
    plain = saturated("nasrnn", ExplorationOptions(**limits))
    assert exploration.stop_reason == "focus"
    assert extraction.optimal
    first = exploration.subgraphs[0]
    assert first.best_us == pytest.approx(plain.cost_us)
    assert extraction.cost_us < plain.cost_us - 1
    assert extraction.cost_us <= min(subgraph.best_us for subgraph in exploration.subgraphs) + 1e-6
    grown = [subgraph.subgraph for subgraph in exploration.subgraphs if subgraph.kind != "universe"]
    assert sorted(set(subgraphs)) == grown
    assert {subgraph.kind for subgraph in exploration.subgraphs} == {
        "original",
        "chosen",
        "universe",
    }
    assert all(w.e_nodes <= 600 for w in exploration.subgraphs if w.kind != "universe")
    assert egraph.e_nodes == exploration.subgraphs[-1].universe > 600
    assert_invariants(egraph, "none")
    originals = ids(egraph, "SELECT id FROM enode WHERE iteration = 0 AND NOT filtered")
    assert originals == ids(egraph, "SELECT parent FROM eclass JOIN original_node ON id = enode")


def test_all_holds_after_each_step_of_a_small_run() -> None:
    egraph = EGraph.create(layers(2, 4))
    steps = 0

    def check(report: IterationReport) -> None:
        nonlocal steps
        steps += 1
        ((subgraph,),) = egraph.connection.execute(
            "SELECT max(subgraph) FROM subgraph_node"
        ).fetchall()
        egraph.catalogue.flush(egraph.database)
        assert_subgraph_invariants(egraph, subgraph)

    limits = {"node_limit": 90, "subgraph_nodes": 90, "time_limit_s": None}
    options = ExplorationOptions(search="focus", **limits)
    exploration, extraction = focus(egraph, options, check, restarts=0, rules=RULES)
    assert steps == exploration.iterations
    assert len(exploration.subgraphs) > 1
    assert extraction.cost_us < exploration.subgraphs[0].best_us


def test_all_holds_after_each_step_of_a_small_run_with_a_tree_search() -> None:
    egraph = EGraph.create(layers(2, 5))
    grown: list[int] = []
    tree = TreeOptions(budget=8, steps=3, decisions=2, threshold_us=0.0)

    def check(report: IterationReport) -> None:
        ((subgraph, hidden),) = egraph.connection.execute(
            "SELECT (SELECT max(subgraph) FROM subgraph_node), (SELECT count(*) FROM enode WHERE filtered)"
        ).fetchall()
        egraph.catalogue.flush(egraph.database)
        if hidden:
            assert_subgraph_invariants(egraph, subgraph)
        else:  # all subgraphs are shown while a tree grows
            grown.append(report.iteration)
            assert_invariants(egraph, "none")
            for path in sorted((resource_dir("sql") / "invariants" / "subgraphs").glob("*.sql")):
                query = path.read_text(encoding="utf-8")
                assert egraph.connection.execute(query).fetchall() == [], path.stem

    limits = {"node_limit": 90, "subgraph_nodes": 90, "time_limit_s": None}
    options = ExplorationOptions(search="focus-mcts", **limits)
    exploration, extraction = focus(egraph, options, check, restarts=0, tree=tree, rules=RULES)
    decided = [decision.decision for decision in exploration.decisions]
    assert decided and set(decided) <= set(grown)
    assert exploration.iterations > decided[-1]
    assert extraction.cost_us <= min(subgraph.best_us for subgraph in exploration.subgraphs) + 1e-6
    ids_of_subgraphs = ids(egraph, "SELECT DISTINCT subgraph FROM subgraph_node")
    assert ids_of_subgraphs == {w.subgraph for w in exploration.subgraphs if w.kind != "universe"}


@pytest.mark.nightly
def test_where_the_universe_is_full_it_ends() -> None:
    egraph = EGraph.create(MODELS["nasrnn"]())
    options = ExplorationOptions(
        search="focus", subgraph_nodes=600, node_limit=600, universe_limit=620, time_limit_s=None
    )
    exploration, extraction = focus(egraph, options)
    assert exploration.stop_reason == "universe"
    assert egraph.e_nodes <= 620
    assert extraction.cost_us <= exploration.subgraphs[0].best_us + 1e-6


@pytest.mark.nightly
def test_subgraphs_get_wider_until_the_node_limit() -> None:
    egraph = EGraph.create(layers(3, 5))
    options = ExplorationOptions(
        search="focus", subgraph_nodes=50, node_limit=120, time_limit_s=None
    )
    exploration, _ = focus(egraph, options, rules=RULES)
    widths = [
        subgraph.node_limit for subgraph in exploration.subgraphs if subgraph.kind == "original"
    ]
    assert widths == [50, 50, 100, 100, 120, 120]
    grown = [subgraph for subgraph in exploration.subgraphs if subgraph.kind != "universe"]
    assert all(subgraph.e_nodes <= subgraph.node_limit for subgraph in grown)


def test_first_subgraphs_have_room_for_a_large_model() -> None:
    options = ExplorationOptions(search="focus", iterations=1, time_limit_s=None)
    egraph = EGraph.create(MODELS["vit_huge"]())
    n_original = egraph.e_nodes
    assert 5 * n_original > 2_000
    exploration, _ = focus(egraph, options, restarts=0)
    assert exploration.subgraphs[0].node_limit == 5 * n_original
    assert options.first_subgraph_nodes(100) == options.first_subgraph_nodes() == 2_000
    assert replace(options, node_limit=600).first_subgraph_nodes(n_original) == 600
    assert replace(options, subgraph_nodes=50).first_subgraph_nodes(n_original) == 50


def test_no_subgraph_is_wider_than_one_whose_limit_was_not_met() -> None:
    egraph = EGraph.create(layers(3, 5))
    options = ExplorationOptions(
        search="focus", subgraph_nodes=240, node_limit=1_920, time_limit_s=None, iterations=2
    )
    exploration, _ = focus(egraph, options, rules=RULES)
    met = {
        subgraph.node_limit for subgraph in exploration.subgraphs if subgraph.stop_reason == "nodes"
    }
    assert (met, exploration.stop_reason) == ({240}, "focus")
    assert {subgraph.node_limit for subgraph in exploration.subgraphs} == {240, 480}


def test_where_a_subgraph_is_closed_it_ends_and_says_so() -> None:
    """Multi-pattern rules are given more iterations where there is room, until they add nothing either."""
    egraph = EGraph.create(MODELS["vgg19"]())
    exploration, extraction = focus(egraph, ExplorationOptions(search="focus", time_limit_s=None))
    assert exploration.subgraphs[0].stop_reason == "saturated"
    assert exploration.subgraphs[-2].stop_reason == "closed"
    assert exploration.stop_reason == "saturated"
    assert {subgraph.node_limit for subgraph in exploration.subgraphs} == {2_000}
    assert extraction.cost_us <= saturated("vgg19", ExplorationOptions()).cost_us + 1e-6
    assert not exploration.is_exhaustive  # the cycle filter took something


def test_what_has_every_graph_says_so_and_no_other() -> None:
    many = {"multi_iterations": 9, "multi_schedule": "saturated", "time_limit_s": None}
    for filtered in ("efficient", "none"):
        options = ExplorationOptions(cycle_filter=filtered, **many)
        egraph = EGraph.create(MODELS["vgg19"]())
        exploration = explore(egraph, load_rules(), options)
        kept_out = sum(report.filtered for report in exploration.log)
        assert exploration.stop_reason == "saturated"
        assert exploration.is_exhaustive == (kept_out == 0)
    once = explore(EGraph.create(MODELS["vgg19"]()), load_rules(), ExplorationOptions())
    assert once.stop_reason == "saturated"
    assert not once.is_exhaustive


@pytest.mark.parametrize("reason", ["time", "patience"])
def test_what_ends_it_leaves_the_best_so_far(reason: str) -> None:
    egraph = EGraph.create(MODELS["nasrnn"]())
    limit_s = 0.0 if reason == "time" else None
    options = ExplorationOptions(
        search="focus", subgraph_nodes=600, node_limit=600, time_limit_s=limit_s
    )
    exploration, extraction = focus(
        egraph, options, after=lambda iteration: reason if iteration == 7 else None
    )
    assert exploration.stop_reason == reason
    best_us = min([subgraph.best_us for subgraph in exploration.subgraphs], default=1349.4)
    assert extraction.cost_us <= best_us
    assert_invariants(egraph, "none")


def test_what_a_search_cannot_do_is_rejected() -> None:
    with pytest.raises(UsageError, match="search = focus and cycle_filter = vanilla"):
        ExplorationOptions(search="focus", cycle_filter="vanilla")


def test_without_costs_there_is_no_search() -> None:
    with pytest.raises(UsageError, match="search = focus without costs"):
        explore(EGraph.create(MODELS["vgg19"]()), [], ExplorationOptions(search="focus"))


@pytest.mark.nightly
def test_what_is_drawn_at_random_is_drawn_again_with_the_same_seed() -> None:
    """Another seed gives other subgraphs; neither of these searches costs more in the end."""
    plain, again, other = (varied(seed) for seed in (0, 0, 1))
    assert rows_of(plain) == rows_of(again)
    assert rows_of(plain) != rows_of(other)
    for exploration in (plain, other):
        best_us = min(subgraph.best_us for subgraph in exploration.subgraphs)
        assert best_us <= exploration.subgraphs[0].best_us
        seeds = [
            round(subgraph.seed_us, 3)
            for subgraph in exploration.subgraphs
            if subgraph.kind == "chosen"
        ]
        assert len(seeds) == len(set(seeds))  # a graph of a cost is grown once


def rows_of(exploration: Exploration) -> list[tuple[object, ...]]:
    """Return what its subgraphs were, but for how long they took."""
    return [subgraph.row[:9] for subgraph in exploration.subgraphs]


def varied(seed: int) -> Exploration:
    """Search a small model within a limit that keeps much out."""
    egraph = EGraph.create(layers(2, 4))
    options = ExplorationOptions(
        search="focus", subgraph_nodes=45, node_limit=45, time_limit_s=None, restarts=2
    )
    search = SearchSettings(options, extractor_of(egraph), seed=seed)
    return explore_focus(egraph, load_rules(RULES), search)
