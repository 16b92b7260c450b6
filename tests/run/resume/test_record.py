"""How a run was asked for comes back as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.models import MODELS
from relational_tensat.base.errors import InputError
from relational_tensat.formats.json_graph import parse_graph
from relational_tensat.run.options import Options
from relational_tensat.run.resume.record import (
    cost_file,
    graph_digest,
    options_text,
    read_options,
    small_copy,
)
from relational_tensat.tensor import Graph, Weight
from tests.graphs import shared_matmuls

FULL = Options.of(
    rules=(Path("/r/a.rules"), Path("/r/b")),
    only=("one", "two"),
    skip=("three",),
    memory_limit="2GB",
    temp_directory=Path("/d/spill"),
    cost="analytic:/c/own.toml",
    cost_cache=Path("/c/cache"),
    dims={"batch": 2, "seq": 128},
    inputs={"x": Path("/i/x.npy")},
    verify_runs=3,
    db=Path("/d/run.duckdb"),
    extract_every=2,
)


@pytest.mark.parametrize("options", [Options(), FULL])
def test_options_come_back(options: Options) -> None:
    assert read_options(options_text(options)) == options


def test_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = Options.of(
        rules=(Path("a.rules"),), cost="table:t.parquet", inputs={"x": Path("x.npy")}
    )
    stored = read_options(options_text(options))
    assert stored.rules.files == (tmp_path / "a.rules",)
    assert stored.verification.inputs == {"x": tmp_path / "x.npy"}
    assert stored.costs.source == f"table:{tmp_path / 't.parquet'}"


def test_options_of_another_version_are_refused() -> None:
    text = options_text(Options()).replace('"seed"', '"seeds"')
    with pytest.raises(InputError, match=r"they differ in process\.seed, process\.seeds$"):
        read_options(text)


@pytest.mark.parametrize("cost", ["t4", "analytic:a100", "cpu", "cuda", "table:t4"])
def test_costs_that_are_no_file(cost: str) -> None:
    assert cost_file(cost) is None
    assert read_options(options_text(Options.of(cost=cost))).costs.source == cost


def changed(graph: Graph) -> Graph:
    name, weight = next((n, w) for n, w in graph.weights.items() if w.data is not None)
    data = np.array(weight.data)
    data.reshape(-1)[-1] += 1
    return replace(graph, weights={**graph.weights, name: Weight(weight.type, data)})


def test_the_digest_sees_every_element_and_every_name() -> None:
    graph = shared_matmuls(with_data=True)
    assert graph_digest(graph) == graph_digest(shared_matmuls(with_data=True))
    graphs = [changed(graph), replace(graph, name="other"), shared_matmuls()]
    assert len({graph_digest(other) for other in (graph, *graphs)}) == 4


@pytest.mark.parametrize("model", ["pair", "nasrnn", "squeezenet"])
def test_a_copy_is_the_model(model: str) -> None:
    graph = shared_matmuls(with_data=True) if model == "pair" else MODELS[model]()
    text = small_copy(graph)
    assert text is not None
    assert graph_digest(parse_graph(text.encode(), "copy")) == graph_digest(graph)


def test_large_weights_are_not_copied() -> None:
    graph = shared_matmuls()
    name, weight = next(iter(graph.weights.items()))
    large = Weight(weight.type, np.zeros((1 << 19,), np.float32))
    assert small_copy(replace(graph, weights={name: large})) is None
