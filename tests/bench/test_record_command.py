"""``python -m bench record``: which configurations a table gets, and that what is in is written."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import ClassVar

import pytest

from bench.__main__ import main
from bench.record import configurations as record
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.cost.table import read_table
from relational_tensat.models import MODELS, GraphBuilder
from relational_tensat.tensor import Graph
from tests.cost.fakes import FakeDevice, plug_in, products


def _two_products() -> Graph:
    builder = GraphBuilder("two")
    x = builder.input("x", 4, 8)
    return builder.build(*(builder.op("matmul", x, builder.weight(f"w{n}", 8, 8)) for n in "ab"))


def test_a_graph_asks_for_each_configuration_once_and_its_e_graph_for_more() -> None:
    graph = _two_products()
    own = record.graph_configurations(graph)
    assert [configuration.op for configuration in own] == ["matmul"]
    more = record.egraph_configurations(graph)
    assert set(own) < set(more)
    assert "split" in {configuration.op for configuration in more}  # the products merged


def test_all_thirteen_graphs_and_all_files_are_recorded() -> None:
    known = record.all_models()
    assert len(known) == 13 + 1 + 14
    assert {name for name, path in known.items() if path is None} == {*MODELS, "two_products"}


def test_recording_ends_with_its_time_and_says_what_is_in(tmp_path: Path) -> None:
    device, cache = FakeDevice(), CostCache(tmp_path / "costs.duckdb")
    source = MeasuredSource("cpu", device, cache)
    configurations = products(20)
    assert list(record.record(source, configurations, time.perf_counter() - 1)) == []
    assert list(record.record(source, configurations[:10], time.perf_counter() + 60)) == [8, 10]
    (line,) = record.coverage(device, cache, {"products": configurations})
    assert (line.measured, line.total) == (10, 20)


def test_the_table_has_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = plug_in(monkeypatch, FakeDevice())
    table, cache = tmp_path / "fake.parquet", tmp_path / "costs.duckdb"
    arguments = ["record", "cpu", str(table), "--models", "nasrnn", "--cost-cache", str(cache)]
    assert main(arguments) == 0
    requests = {configuration for batch in device.requests for configuration in batch}
    assert set(read_table(table).samples) == requests
    assert len(requests) == len(record.graph_configurations(record.load("nasrnn", None)))


def test_unknown_models_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "cpu", str(tmp_path / "t.parquet"), "--models", "vgg91"]) == 2
    assert "did you mean 'vgg19'" in capsys.readouterr().err


def test_a_processor_may_be_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("relational_tensat.cost.cpu.onnxruntime_device.OnnxRuntimeDevice", _Patient)
    table, cache = tmp_path / "fake.parquet", tmp_path / "costs.duckdb"
    arguments = ["--models", "nasrnn", "--cost-cache", str(cache), "--patience", "7"]
    assert main(["record", "cpu:all", str(table), *arguments]) == 0
    assert _Patient.made == [("all", 7.0)]
    assert main(["record", "cuda", str(table), *arguments]) == 2
    assert "--patience 7.0 with cuda, expected seconds, and cpu" in capsys.readouterr().err


class _Patient(FakeDevice):
    made: ClassVar[list[tuple[str, float]]] = []

    def __init__(
        self, optimizations: str, patience_s: float, most_patience_s: float, threads: int
    ) -> None:
        super().__init__()
        assert patience_s == math.inf and threads == 1
        self.made.append((optimizations, most_patience_s))
