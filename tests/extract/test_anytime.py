"""Extraction between iterations: what it finds, when it stops, and that nothing is lost."""

from __future__ import annotations

import math
import os
import signal
import threading
from pathlib import Path

import duckdb
import pytest

from relational_tensat import Options, optimize
from relational_tensat.base.deadline import GapPatience
from relational_tensat.cost import graph_cost_us
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.database import Interrupted
from relational_tensat.explore import Exploration, ExplorationOptions, Observer, explore
from relational_tensat.extract import Extraction, ExtractionProblem, dag_cost_us
from relational_tensat.extract import anytime as extractor_module
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.extract.kept_choice import ExtractionEntry
from relational_tensat.extract.tables import chosen_graph
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule
from relational_tensat.run.progress import Progress, Silent
from tests.egraph.extraction import FlatCost
from tests.explore.example_rules import example_rules
from tests.graphs import fan_of_matmuls, shared_matmuls

COST = FlatCost(by_operator={"concat": 0.0, "split": 0.5})

#: Ever more e-nodes, none of them cheaper.
GROWS = parse_rules(
    '(rule grows (law "x·y = 0.5·(2·x)·y") (from (matmul ?x ?y))'
    " (to (smul (matmul (smul ?x :value 2.0) ?y) :value 0.5)))",
    "test",
)

in_main_thread = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals need it"
)


class Run:
    """An e-graph with an extractor, explored step by step."""

    def __init__(
        self, rules: list[Rule], options: Options, progress: Progress | None = None, fan: int = 3
    ) -> None:
        self.egraph = EGraph.create(fan_of_matmuls(fan))
        self.rules = rules
        self.extractor = AnytimeExtractor(
            self.egraph, COST, options.extraction, options.process, progress or Silent()
        )

    def explore(self, iterations: int = 4) -> Exploration:
        """Explore, and extract after the iterations that say so."""
        limits = ExplorationOptions(iterations, multi_iterations=2, node_limit=400)
        return explore(
            self.egraph, self.rules, limits, observer=Observer(after=self.extractor.after)
        )

    def finish(self) -> tuple[Extraction, float]:
        """Return the final extraction, and what the graph in the table ``chosen`` costs."""
        extraction = self.extractor.finish(9)
        return extraction, graph_cost_us(chosen_graph(self.egraph), COST)


def test_a_proof_that_is_not_worth_the_wait_ends_with_the_best_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(example_rules("join-products", "same", "regroup"), Options())
    run.explore()
    proven, _ = run.finish()
    monkeypatch.setattr(GapPatience, "is_over", lambda proof: proof._least_s < math.inf)
    assert proven.optimal
    options = Options()
    for is_patient in (True, False):
        extractor = AnytimeExtractor(
            run.egraph, COST, options.extraction, options.process, Silent(), is_patient=is_patient
        )
        seed = extractor.choose(1)
        (entry,) = extractor.log
        assert entry.optimal == is_patient
        assert proven.cost_us <= seed.cost_us < extractor.original_us


def test_each_extraction_finds_the_optimum_of_its_time_and_the_last_is_as_without() -> None:
    run = Run(example_rules("join-products", "same", "regroup"), Options.of(extract_every=1))
    explored = run.explore()
    extraction, cost_us = run.finish()
    log = run.extractor.log
    assert [entry.iteration for entry in log] == [*range(1, explored.iterations), 9]
    assert all(entry.optimal for entry in log)
    assert [entry.final for entry in log] == [False] * (len(log) - 1) + [True]
    best = [entry.best_us for entry in log]
    assert best == sorted(best, reverse=True)
    assert best[-1] < graph_cost_us(run.egraph.graph, COST)
    plain = Run(run.rules, Options())
    plain.explore()
    assert len(plain.extractor.log) == 0
    without, plain_us = plain.finish()
    assert extraction.cost_us == pytest.approx(without.cost_us)
    assert cost_us == pytest.approx(plain_us) == pytest.approx(best[-1])
    assert [entry.final for entry in plain.extractor.log] == [True]


def test_what_does_not_move_goes_on() -> None:
    run = Run(GROWS, Options.of(extract_every=1))
    assert run.explore(iterations=3).stop_reason == "iterations"
    assert [entry.iteration for entry in run.extractor.log] == [1, 2]  # the last is the final one's


def test_a_cheaper_graph_found_earlier_is_returned_though_its_e_nodes_are_filtered() -> None:
    run = Run(example_rules("join-products"), Options.of(extract_every=1))
    run.explore(iterations=3)
    best_us = run.extractor.log[-1].best_us
    run.egraph.database.execute("UPDATE enode SET filtered = true WHERE rule > 0")
    extraction, cost_us = run.finish()
    assert cost_us == pytest.approx(best_us) == pytest.approx(extraction.cost_us)
    assert run.extractor.log[-1].cost_us > best_us * 1.01
    assert run.extractor.log[-1].best_us == best_us
    assert "after iteration" in extraction.note
    assert (extraction.optimal, extraction.bound_us, extraction.gap) == (False, 0.0, 1.0)


def test_a_cheaper_graph_found_earlier_is_returned_if_the_final_extraction_is_cut_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(example_rules("join-products"), Options.of(extract_every=1))
    run.explore(iterations=2)
    best_us = run.extractor.log[-1].best_us

    monkeypatch.setattr(extractor_module, "extract", original_only)
    extraction, cost_us = run.finish()
    assert cost_us == pytest.approx(best_us) == pytest.approx(extraction.cost_us)
    assert run.extractor.log[-1].cost_us > best_us * 1.01


def original_only(problem: ExtractionProblem, *options: object, **rest: object) -> Extraction:
    """Return the original graph, as an extraction without any time would."""
    cost_us = dag_cost_us(problem, problem.original)
    return Extraction(problem.original, cost_us, 0.0, 1.0, False, "ilp", 0.0, "")


class Acts(Silent):
    """Progress that does something when the solver tells of a graph or a bound."""

    def __init__(self, times: int = 1) -> None:
        self.times = times
        self.run: Run | None = None
        self.stops_database = False

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        if self.run is not None and self.stops_database:
            self.run.egraph.database.interrupt()
            return
        for _ in range(self.times):
            os.kill(os.getpid(), signal.SIGINT)
        self.times = 0


@in_main_thread
def test_ctrl_c_between_iterations_ends_both_with_the_best_so_far() -> None:
    before = signal.getsignal(signal.SIGINT)
    run = Run(example_rules("join-products", "swap"), Options.of(extract_every=2), Acts())
    explored = run.explore()
    assert (explored.stop_reason, explored.iterations) == ("interrupted", 2)
    extraction, cost_us = run.finish()
    assert extraction.interrupted
    assert cost_us <= graph_cost_us(run.egraph.graph, COST)
    assert [entry.iteration for entry in run.extractor.log] == [2, 9]
    assert signal.getsignal(signal.SIGINT) is before


@in_main_thread
def test_ctrl_c_in_the_final_extraction_returns_the_best_so_far() -> None:
    run = Run(example_rules("join-products", "swap"), Options(), Acts())
    assert run.explore().stop_reason != "interrupted"
    extraction, cost_us = run.finish()
    assert extraction.interrupted
    assert "interrupted" in extraction.note
    assert cost_us <= graph_cost_us(run.egraph.graph, COST)


@in_main_thread
@pytest.mark.parametrize("every", [0, 1])
def test_ctrl_c_twice_ends_the_program(every: int) -> None:
    before = signal.getsignal(signal.SIGINT)
    run = Run(example_rules("join-products"), Options.of(extract_every=every), Acts(times=2))
    with pytest.raises(KeyboardInterrupt):
        run.explore()
        run.finish()
    assert signal.getsignal(signal.SIGINT) is before


def test_what_was_found_when_the_time_for_exploration_ended_is_not_lost() -> None:
    progress = Acts()
    progress.stops_database = True
    run = Run(example_rules("join-products"), Options.of(extract_every=1), progress)
    progress.run = run
    explore(run.egraph, run.rules, ExplorationOptions(1))
    with pytest.raises(Interrupted):
        run.extractor.after(1)
    run.egraph.database.resume()
    progress.run = None
    progress.times = 0
    extraction, cost_us = run.finish()
    assert extraction.optimal
    assert cost_us == pytest.approx(extraction.cost_us)


class Watcher(Silent):
    """Progress that remembers the extractions."""

    def __init__(self) -> None:
        self.entries: list[ExtractionEntry] = []

    def extracted(self, entry: ExtractionEntry) -> None:
        self.entries.append(entry)


def test_a_whole_run_has_its_extractions_in_the_result_and_in_the_database(tmp_path: Path) -> None:
    watcher = Watcher()
    result = optimize(
        shared_matmuls(),
        Options.of(cost="tensat_t4", extract_every=1, db=tmp_path / "run.duckdb"),
        progress=watcher,
    )
    assert result.optimal
    assert result.extractions[:-1] == tuple(watcher.entries)
    assert result.extractions[-1].final
    assert result.extractions[-1].best_us == pytest.approx(result.cost_after_us)
    with duckdb.connect(str(tmp_path / "run.duckdb"), read_only=True) as connection:
        rows = connection.execute("SELECT iteration, best_us, final FROM extraction_log").fetchall()
        (reason,) = connection.execute(
            "SELECT value FROM meta WHERE key = 'stop_reason'"
        ).fetchone() or ("",)
    assert rows == [
        (extraction.iteration, extraction.best_us, extraction.final)
        for extraction in result.extractions
    ]
    assert reason == result.stop_reason
    assert result.extraction.e_nodes > (result.extraction.reduced_e_nodes or 0)
    assert result.extraction.reductions
