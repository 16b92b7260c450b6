"""A choice is settled by few measurements: as cheap as if all had been measured."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.models import MODELS
from relational_tensat.cost import CostCounts, ask_for_graph
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.calibration import base_profile
from relational_tensat.cost.key import configuration_text
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.cost.profile import kernel_time_us
from relational_tensat.cost.source import ABOUT, AT_LEAST, CostSource
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract import Extraction, ExtractionOptions, extract
from relational_tensat.extract.few_measurements import chosen_enodes, settle
from relational_tensat.extract.problem import Ints
from relational_tensat.extract.tables import (
    TableProblem,
    ask_for_chosen,
    extraction_problem,
    fill_costs,
)
from relational_tensat.formats import load_model
from relational_tensat.rules.library import load_rules
from relational_tensat.tensor import Graph
from tests.cost.fakes import CPU, Configuration, FakeDevice
from tests.tiers import nightly

PROFILE = base_profile(CPU)
INPUTS = Path(__file__).parents[2] / "bench/inputs"


def uneven_us(of: Configuration) -> float:
    """What the profile says, up to 1.25 times, by operator and by kernel in no order."""
    kernel = zlib.crc32(configuration_text(of).encode()) % 1000 / 1000
    operator = zlib.crc32(of.op.encode()) % 1000 / 1000
    work_us = kernel_time_us(PROFILE, of.op, of.inputs, of.output, dict(of.attrs))
    return (work_us + 0.1) * (0.5 + operator) * (1.0 + 0.25 * kernel)


@contextmanager
def explored(graph: Graph) -> Iterator[EGraph]:
    egraph = EGraph.create(graph)
    explore(egraph, load_rules(), ExplorationOptions(iterations=3, node_limit=2000))
    yield egraph
    egraph.close()


def search(table: TableProblem, start: Ints | None) -> Extraction:
    return extract(table.problem, ExtractionOptions(), start=start)


def source_of(folder: Path, name: str, limit_s: float = 1e9) -> MeasuredSource:
    return MeasuredSource(
        "cpu", FakeDevice(time_us=uneven_us), CostCache(folder / name), limit_s=limit_s
    )


@pytest.mark.parametrize(
    ("graph", "eager", "lazy"),
    [
        nightly(lambda: load_model(INPUTS / "transformer_block.onnx"), 27, 26),
        (lambda: load_model(INPUTS / "gated_mlp.onnx"), 25, 17),
        nightly(MODELS["squeezenet"], 76, 62),
    ],
    ids=["transformer", "gated", "convolutional"],
)
def test_bounds_settle_what_measuring_all_does(
    graph: object, eager: int, lazy: int, tmp_path: Path
) -> None:
    assert callable(graph)
    with explored(graph()) as egraph:
        source = source_of(tmp_path, "lazy")
        table, extraction = settle(egraph, source, search)
        assert source.counts.measured == lazy
        assert source.counts.spared == eager - lazy
        labels = egraph.connection.execute("SELECT DISTINCT source FROM cost").fetchall()
        assert (source.label(AT_LEAST),) in labels
        assert not ask_for_chosen(egraph, source, chosen_enodes(table, extraction.choice))
        fill_costs(egraph, source, type(source).about)
        labels = egraph.connection.execute("SELECT DISTINCT source FROM cost").fetchall()
        assert (source.label(AT_LEAST),) not in labels
        assert (source.label(ABOUT),) in labels
        everything = source_of(tmp_path, "eager")
        egraph.connection.execute("DELETE FROM cost; DELETE FROM computed_cost")
        best = search(extraction_problem(egraph, everything), None)
    assert everything.counts == CostCounts(measured=eager)
    assert extraction.optimal
    assert extraction.cost_us == pytest.approx(best.cost_us, rel=1e-9)


def test_out_of_time_what_decides_is_estimated_and_the_choice_is_as_cheap_by_estimates(
    tmp_path: Path,
) -> None:
    graph = load_model(INPUTS / "gated_mlp.onnx")
    ask_for_graph(source_of(tmp_path, "costs"), graph)
    with explored(graph) as egraph:
        source = source_of(tmp_path, "costs", limit_s=0.0)
        _, extraction = settle(egraph, source, search)
        counts = source.counts
        by_estimates = search(extraction_problem(egraph, source, CostSource.about), None)
    assert counts == CostCounts(cached=12, estimated=6, spared=7)
    assert extraction.cost_us == pytest.approx(by_estimates.cost_us, rel=1e-9)
    late, spared = source.notes
    assert late.startswith("measuring was ended after 0 s: 6 configurations are estimated by ")
    assert spared.startswith("7 configurations need not be measured: ")


@pytest.mark.nightly
def test_a_second_time_all_is_in_the_cache(tmp_path: Path) -> None:
    counts = []
    for _ in range(2):
        with explored(load_model(INPUTS / "gated_mlp.onnx")) as egraph:
            source = source_of(tmp_path, "costs")
            settle(egraph, source, search)
            counts.append(source.counts)
    first, second = counts
    assert second == CostCounts(cached=first.measured, spared=first.spared)
