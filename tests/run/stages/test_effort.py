"""``--effort``: a modelled gain is timed, in seconds, or it is not and the report says so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from relational_tensat import Options, optimize
from relational_tensat.cli.main import main
from relational_tensat.cost import Unmeasurable
from relational_tensat.formats import save_model
from relational_tensat.run.result import Result
from relational_tensat.run.stages import heats, race, race_rounds
from relational_tensat.tensor import Array, Graph
from tests.cost.fakes import CPU, FakeDevice, plug_in
from tests.graphs import shared_matmuls


@dataclass
class CountingDevice(FakeDevice):
    """Counts the heats that it runs, and keeps what graphs these are of."""

    heats: int = 0
    run: dict[int, Graph] = field(default_factory=dict)

    def heat(
        self, graphs: Sequence[Graph], inputs: Mapping[str, Array], seed: int
    ) -> Sequence[float] | Unmeasurable:
        self.heats += 1
        self.run |= {id(graph): graph for graph in graphs}
        return super().heat(graphs, inputs, seed)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> CountingDevice:
    device = CountingDevice(speed=lambda graph: 3.0 - graph.count_ops()["matmul"])
    plug_in(monkeypatch, device)
    return device


def run(folder: Path, **options: object) -> Result:
    path = folder / "in.onnx"
    save_model(shared_matmuls(with_data=True), path)
    own = {"threads_at_inference": 1, "cost_cache": folder / "costs.duckdb", "verify_runs": 1}
    given = Options.of(**{**own, **options})
    return optimize(path, given, output=folder / "out.onnx")


def test_a_modelled_gain_is_timed_by_default(device: CountingDevice, tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.race is not None and not result.unchanged
    assert result.gain.basis == "measured"
    assert result.gain.speedup == pytest.approx(2.0)
    assert result.runs_on == "onnxruntime on this CPU, 1 thread"
    assert not device.requests  # no kernel is measured


def test_each_graph_of_a_race_is_made_once(device: CountingDevice, tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.race is not None and device.heats > 5  # first heats, and those of the race
    made = [(graph.count_ops(), len(graph.weights)) for graph in device.run.values()]
    assert len(made) == 1 + len(result.race.contenders)
    assert all(graph not in made[:place] for place, graph in enumerate(made))


def test_a_gain_that_time_does_not_confirm_is_none(device: CountingDevice, tmp_path: Path) -> None:
    whole = len(shared_matmuls().nodes)
    device.speed = lambda graph: 1.0 if len(graph.nodes) == whole else 0.9
    result = run(tmp_path)
    assert result.race is not None and result.unchanged and result.keeps_original
    assert (tmp_path / "out.onnx").read_bytes() == (tmp_path / "in.onnx").read_bytes()
    assert result.gain.basis == "measured" and "the original is kept" in result.gain.text
    assert not result.optimal


def test_a_smaller_file_that_is_as_fast_is_written(device: CountingDevice, tmp_path: Path) -> None:
    device.speed = lambda graph: 1.0
    result = run(tmp_path)
    assert not result.unchanged and result.change is not None
    assert result.change.after.nodes < result.change.before.nodes
    assert "faster" not in result.gain.text
    assert run(tmp_path, min_speedup=1.01, force=True).unchanged


def test_low_effort_times_nothing(device: CountingDevice, tmp_path: Path) -> None:
    result = run(tmp_path, effort="low")
    assert result.race is None and not result.unchanged
    assert result.gain.basis == "modelled"
    assert not device.heats and not device.requests


@pytest.mark.nightly
def test_high_effort_measures_kernels(device: CountingDevice, tmp_path: Path) -> None:
    result = run(tmp_path, effort="high")
    assert device.requests and result.costs.measured
    assert result.gain.basis == "measured"


def test_a_gain_modelled_for_a_gpu_is_timed_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = replace(CPU, kind="cuda", name="NVIDIA H100 80GB HBM3")
    device = CountingDevice(key=key, speed=lambda graph: 1.0 / len(graph.nodes))
    plug_in(monkeypatch, device)
    result = run(tmp_path, runs_on="cuda", threads_at_inference=None)
    assert result.race is not None and not result.unchanged
    assert result.gain.basis == "measured" and not device.requests
    assert (result.runs_on, result.cost_profile) == (key.name, "h100 on cuda")
    timed = run(tmp_path, runs_on="cuda", threads_at_inference=None, effort="low", force=True)
    assert timed.race is None and timed.gain.basis == "modelled"


def test_where_nothing_is_gained_nothing_is_timed(device: CountingDevice, tmp_path: Path) -> None:
    assert run(tmp_path, iterations=0).race is None
    assert not device.heats


@pytest.mark.parametrize(
    ("is_known", "cpu_s", "again"),
    [(True, 0.0, 0), (False, 11.5, 0), (False, 6.0, 2)],
    ids=["by its costs", "by its first heats", "as the machine is busy"],
)
def test_what_takes_seconds_a_run_is_not_raced(
    device: CountingDevice,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_known: bool,
    cpu_s: float,
    again: int,
) -> None:
    """A second run finds that out again only if a machine that is idle might be faster."""
    if is_known:
        monkeypatch.setattr(race_rounds, "graph_cost_us", lambda graph, cost: 2e6)
    else:
        timed = (12.5, cpu_s)
        monkeypatch.setattr(heats, "_least_and_cpu_s", lambda heat: heat((0, 1, 0)) and timed)
    result = run(tmp_path)
    assert result.race is None
    first = 0 if is_known else 2  # the first loads libraries, too
    assert device.heats == first
    assert run(tmp_path, force=True).race is None and device.heats == first + again
    (note,) = (note for note in result.notes if note.startswith("not raced"))
    assert note.startswith("not raced: a race would take at least ")
    assert "s: --effort high or --budget races it" in note
    assert result.gain.basis == "modelled" and "not timed here" in result.gain.text


def test_a_small_gain_that_is_not_raced_is_left(
    device: CountingDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_rounds, "graph_cost_us", lambda graph, cost: 2e6)
    assert not run(tmp_path).unchanged
    monkeypatch.setattr(race, "_LEAST_GAIN", 100.0)
    result = run(tmp_path, force=True)
    assert result.unchanged
    assert any("alone is too little: the original is kept" in note for note in result.notes)


def test_the_first_lines_say_what_was_timed(
    device: CountingDevice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(shared_matmuls(with_data=True), tmp_path / "in.onnx")
    argv = ["run", str(tmp_path / "in.onnx"), "-o", str(tmp_path / "out.onnx")]
    argv += ["--threads-at-inference", "1", "--cost-cache", str(tmp_path / "costs.duckdb")]
    assert main(argv) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.endswith("in.onnx, for onnxruntime on this CPU, 1 thread")
    assert second.startswith("measured: 2.000 times as fast as the original [2.000, 2.000]")
    assert main([*argv, "--force", "--json", "--quiet"]) == 0
    gain = json.loads(capsys.readouterr().out)["gain"]
    assert gain["basis"] == "measured" and gain["timed"]["low"] == pytest.approx(2.0)
