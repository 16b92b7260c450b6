"""Growing best first: what it finds within limits, and that only the order is another."""

from __future__ import annotations

import pytest

from relational_tensat.base.process import ProcessOptions
from relational_tensat.cost import load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, explore
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.outcome import IterationReport
from relational_tensat.explore.strategies.best_first import explore_best_first
from relational_tensat.explore.worlds import universe
from relational_tensat.extract import Extraction, ExtractionOptions
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.models import MODELS
from relational_tensat.rules.library import load_rules
from relational_tensat.run.progress import Silent
from relational_tensat.tensor import Graph
from tests.egraph.invariants import assert_invariants
from tests.run.resume.models import layers

COST = load_profile("tensat_t4")


def extractor_of(egraph: EGraph) -> AnytimeExtractor:
    """Return what extracts from an e-graph."""
    return AnytimeExtractor(egraph, COST, ExtractionOptions(), ProcessOptions(), Silent())


def grown(
    graph: Graph, options: ExplorationOptions, seed: int = 0
) -> tuple[EGraph, Exploration, Extraction]:
    """Search and extract; all invariants hold on the way."""
    egraph = EGraph.create(graph)
    extractor = extractor_of(egraph)

    def check(report: IterationReport) -> None:
        if report.iteration % 3 != 1:
            return
        egraph.catalogue.flush(egraph.database)
        assert_invariants(egraph, "none")

    observer = Observer(check, after=extractor.after, watch=extractor.watch)
    exploration = explore_best_first(
        egraph, load_rules(), options, extractor, seed=seed, observer=observer
    )
    return egraph, exploration, extractor.finish(exploration.iterations)


def test_at_the_same_limit_it_finds_what_saturation_misses() -> None:
    graph, limits = layers(3, 5), ExplorationOptions(node_limit=300, time_limit_s=None)
    egraph, exploration, extraction = grown(graph, limits)
    plain = EGraph.create(graph)
    explore(plain, load_rules(), limits)
    assert exploration.stop_reason == "nodes" and not exploration.is_exhaustive
    assert egraph.e_nodes <= 300
    assert extraction.optimal
    assert extraction.cost_us < extractor_of(plain).finish(1).cost_us - 1
    assert sum(stats.matches for stats in exploration.rules.values()) == sum(
        report.matches for report in exploration.log
    )


def test_without_a_limit_it_ends_with_what_saturation_ends_with() -> None:
    """The same e-graph: as many e-nodes and classes, and as cheap a graph."""
    graph = MODELS["vgg19"]()
    egraph, exploration, extraction = grown(graph, ExplorationOptions(time_limit_s=None))
    options = ExplorationOptions(
        multi_iterations=99, iterations=99, multi_schedule="saturated", cycle_filter="none"
    )
    plain = EGraph.create(graph)
    saturation = explore(plain, load_rules(), options)
    assert saturation.stop_reason == exploration.stop_reason == "saturated"
    assert saturation.is_exhaustive and exploration.is_exhaustive
    assert egraph.counts() == plain.counts()
    assert extraction.cost_us == pytest.approx(extractor_of(plain).finish(1).cost_us)


def test_the_same_seed_gives_the_same_e_graph() -> None:
    limits = ExplorationOptions(node_limit=150, time_limit_s=None)
    runs = [grown(layers(2, 4), limits, seed)[0] for seed in (1, 1, 2)]
    first, again, other = (
        egraph.connection.execute("FROM enode ORDER BY id").fetchall() for egraph in runs
    )
    assert first == again
    assert first != other


def test_where_there_are_too_many_applications_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(universe, "MOST_PAIRS", 100)
    limits = ExplorationOptions(node_limit=300, time_limit_s=None)
    egraph, exploration, extraction = grown(layers(3, 5), limits)
    assert exploration.stop_reason == "applications"
    assert egraph.e_nodes < 300
    assert extraction.optimal
