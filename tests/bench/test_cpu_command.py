"""``python -m bench cpu``: what is measured of a model, and what is reported; no time is asserted."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench.common.plots import label_heights
from bench.cpu import command as cpu_command
from bench.cpu.additivity import Additivity, operator_counts
from bench.cpu.measure import CpuRun, cpu_options, measure_model
from bench.cpu.plot import points, write_points
from bench.cpu.report import losses, print_runs
from relational_tensat.base.errors import UsageError
from relational_tensat.cli.console import stdout_console
from relational_tensat.cost.device import WholeTiming
from relational_tensat.formats import save_model
from relational_tensat.models import GraphBuilder
from tests.cost.fakes import FakeDevice, plug_in

_FAST = WholeTiming(100.0, 50.0, 2.0, 1.9, 2.1, 30)
_SLOW = WholeTiming(100.0, 110.0, 0.91, 0.85, 0.95, 30)
_TIE = WholeTiming(100.0, 101.0, 0.99, 0.95, 1.02, 30)


def _run(**timings: WholeTiming) -> CpuRun:
    return CpuRun(
        model="tiny",
        modelled_before_us=95.0,
        modelled_after_us=50.0,
        call_us=5.0,
        additivity=Additivity(0.98, 0.95, 1.01, 30, 0),
        timings=timings,
        costs={"measured": 3, "cached": 0, "recorded": 0, "estimated": 0},
        seconds={"measure": 0.1, "total": 0.2},
        e_nodes=7,
        optimal=True,
        rules_used={"some-rule": 2},
    )


def test_slower_in_nine_rounds_of_ten_is_a_loss_and_within_the_noise_is_none() -> None:
    assert losses([_run(off=_FAST, all=_TIE)]) == []
    (line,) = losses([_run(off=_SLOW, all=_FAST)])
    assert line == "tiny, optimizations off: 0.910x (0.850-0.950), modelled 1.900x"
    assert losses([_run(off=replace(_SLOW, rounds=4), all=_FAST)]) == []  # too few to say


def test_the_sum_of_single_operators_is_held_against_the_whole() -> None:
    assert _run(off=_FAST, all=_TIE).modelled_over_whole == 95.0 / (100.0 - 5.0)


def test_points_of_the_plot(tmp_path: Path) -> None:
    runs = [_run(off=_FAST, all=_TIE)]
    assert [point[1] for point in points(runs)] == ["off", "all"]
    write_points(runs, tmp_path / "points.csv")
    with (tmp_path / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {
        "model": "tiny",
        "optimizations": "off",
        "modelled": "1.9000",
        "measured": "2.0000",
        "p10": "1.9000",
        "p90": "2.1000",
    }


def test_the_report_says_where_it_is_slower(capsys: pytest.CaptureFixture[str]) -> None:
    print_runs([_run(off=_FAST, all=_SLOW)], stdout_console())
    text = capsys.readouterr().out
    assert "slower than the original: tiny, optimizations all" in text
    print_runs([_run(off=_FAST, all=_TIE)], stdout_console())
    assert "no optimized graph is slower" in capsys.readouterr().out


def _model(folder: Path) -> Path:
    builder = GraphBuilder("tiny")
    x = builder.input("x", 4, 8)
    products = [builder.op("matmul", x, builder.weight(f"w{n}", 8, 8)) for n in range(2)]
    graph = builder.build(*products)
    path = folder / "tiny.onnx"
    save_model(graph, path)
    return path


@pytest.mark.nightly
def test_both_graphs_are_run_in_both_modes_with_weights_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = plug_in(monkeypatch, FakeDevice())
    only = ("merge-products-sharing-left",)
    options = cpu_options(tmp_path / "costs.duckdb", 10.0).replace(only=only)
    run = measure_model("tiny", _model(tmp_path), options, rounds=2, seconds=5.0)
    assert set(run.timings) == {"off", "all"}
    assert all(timing.rounds >= 1 for timing in run.timings.values())
    assert run.costs["measured"] == sum(map(len, device.requests)) > 0
    assert run.modelled_before_us >= run.modelled_after_us > 0
    assert run.call_us > 0
    assert run.additivity.rounds >= 5
    assert run.additivity.unmeasured == 0


def test_the_result_is_saved_with_its_circumstances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Path] = []

    def draw(runs: object, path: Path) -> None:
        drawn.append(path)

    monkeypatch.setattr("bench.cpu.plot.plot", draw)
    path = cpu_command.save([_run(off=_FAST, all=_TIE)], tmp_path)
    content: Mapping[str, object] = json.loads(path.read_text())
    assert {"date", "commit", "machine", "versions", "runs"} == set(content)
    assert drawn == [path.with_suffix(".png")]
    assert path.with_suffix(".csv").exists()


def test_unknown_models_are_refused() -> None:
    from bench.__main__ import main
    from bench.onnx.model_files import model_files

    with pytest.raises(UsageError, match="did you mean 'resnet50'"):
        model_files(["resnet5"])
    assert main(["cpu", "resnet5"]) == 2


def test_labels_do_not_cover_one_another() -> None:
    places = [(1.0, 1.0), (1.0, 1.001), (1.01, 1.02), (1.3, 1.0), (1.0, 1.5)]
    heights = label_heights(places, (0.12, 0.022))
    assert heights[0] == 1.0
    assert heights[3:] == [1.0, 1.5]  # far from the others
    assert min(heights[1] - heights[0], heights[2] - heights[1]) >= 0.02


def test_the_plot_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the bench extra is not installed")
    from bench.cpu.plot import plot

    path = tmp_path / "plot.png"
    plot([_run(off=_FAST, all=_TIE)], path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_operators_are_counted_as_the_nodes_that_run() -> None:
    builder = GraphBuilder("counted")
    x, weight = builder.input("x", 2, 4), builder.weight("w", 4, 4)
    twice = [
        builder.op("matmul", operand, weight, act="relu") for operand in (x, builder.op("tanh", x))
    ]
    folded = builder.op("tanh", weight)  # depends on weights only: it does not run
    graph = builder.build(*twice, builder.op("matmul", x, folded))
    counts = {
        (node.op, dict(node.attrs).get("act")): n for node, n in operator_counts(graph).items()
    }
    assert counts == {("tanh", None): 1, ("matmul", "none"): 3, ("relu", None): 2}
