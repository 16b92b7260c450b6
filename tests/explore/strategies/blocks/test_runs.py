"""Whole runs that reuse recurring blocks: explained, resumed, reported."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from bench.kills.tables import dump_file
from relational_tensat import Options, optimize, resume
from relational_tensat.base.errors import InputError
from relational_tensat.cli.run_json import json_report
from relational_tensat.cli.run_text import print_report
from relational_tensat.cost import graph_cost_us, load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explain.explanation import explain
from relational_tensat.explain.numeric import check_numerically
from relational_tensat.explore import ExplorationOptions, IterationReport
from relational_tensat.explore.strategies.blocks import explore_blocks
from relational_tensat.explore.strategies.blocks import partition as plan
from relational_tensat.extract.tables import chosen_graph
from relational_tensat.run.progress import Silent
from tests.egraph.extraction import FlatCost, cheapest_graph
from tests.explain.runs import choose_at_random, graphs_between, shape_of
from tests.explore.example_rules import example_rules
from tests.explore.strategies.blocks.models import chain
from tests.run.resume.models import RULES as MERGING
from tests.run.resume.models import layers

RULES = example_rules("twice", "same", "negate", "join-products", "zero")
BLOCK = ["identity", "products", "residual", "swap"]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "LEAST_NODES", 2)


def reused_egraph() -> EGraph:
    """Return the e-graph of a chain of equal blocks behind a head."""
    egraph = EGraph.create(chain([["relu"], *[BLOCK] * 5]))
    _, reused = explore_blocks(egraph, RULES, ExplorationOptions(blocks="always"))
    assert reused is not None
    return egraph


def assert_explained(egraph: EGraph) -> None:
    """Fail unless the extracted graph is explained, by steps that replay and compute the same."""
    explanation = explain(egraph.connection)
    graphs = graphs_between(explanation)
    assert shape_of(graphs[0]) == shape_of(egraph.graph)
    assert shape_of(graphs[-1]) == shape_of(chosen_graph(egraph))
    check = check_numerically(explanation)
    assert check.ok, check.failures


def test_what_copied_e_nodes_make_is_explained() -> None:
    egraph = reused_egraph()
    cheapest_graph(egraph, FlatCost(by_operator={"sub": 9.0, "matmul": 5.0}))
    explanation = explain(egraph.connection)
    steps = [step.rule for step in explanation.steps]
    assert steps.count("join-products") == 5
    assert steps.count("negate") == 5
    assert_explained(egraph)


def test_whatever_is_chosen_is_explained() -> None:
    egraph = reused_egraph()
    for seed in range(5):
        choose_at_random(egraph, Random(seed))
        assert_explained(egraph)


class Killed(BaseException):
    """Ends a run where it is."""


class Dies(Silent):
    """Progress that ends the run after so many iterations."""

    def __init__(self, iterations: int) -> None:
        self.left = iterations

    def iteration(self, report: IterationReport) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


def test_a_run_is_resumed_after_its_copies(tmp_path: Path) -> None:
    model = layers(steps=6, width=3)
    options = Options.of(
        rules=MERGING,
        db=tmp_path / "run.duckdb",
        force=True,
        blocks="always",
        extractor="greedy-dag",
        verify_runs=1,
    )
    whole = optimize(model, options.replace(db=tmp_path / "whole.duckdb"))
    assert whole.blocks is not None
    rows = dump_file(tmp_path / "whole.duckdb")
    refused = resumed = 0
    for iterations in range(1, whole.iterations + 1):
        with pytest.raises(Killed):
            optimize(model, options, progress=Dies(iterations))
        try:
            result = resume(tmp_path / "run.duckdb", model)
        except InputError as error:
            assert "killed before exploration had begun: start it again" in str(error)
            assert not resumed
            refused += 1
            continue
        resumed += 1
        assert dump_file(tmp_path / "run.duckdb") == rows
        assert result.cost_after_us == whole.cost_after_us
        assert result.blocks is None
    assert refused
    assert resumed


def test_the_report_shows_what_was_reused(capsys: pytest.CaptureFixture[str]) -> None:
    model = layers(steps=6, width=3)
    options = Options.of(rules=MERGING, extractor="greedy-dag", verify_runs=1)
    result = optimize(model, options.replace(blocks="always"))
    assert result.blocks is not None
    line = f"blocks: explored 1 distinct of {result.blocks.blocks}"
    console = Console(width=200)
    print_report(result, console)
    assert line in capsys.readouterr().out
    assert json.loads(json_report(result))["blocks"]["copied"] == result.blocks.copied
    without = optimize(model, options.replace(blocks="never"))
    assert json.loads(json_report(without))["blocks"] is None
    assert without.cost_after_us == result.cost_after_us
    profile = load_profile("t4")
    assert graph_cost_us(result.graph, profile) == pytest.approx(
        graph_cost_us(without.graph, profile)
    )
