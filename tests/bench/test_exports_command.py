"""Exports of today's models: tiny ones, made here, go the way of all; PyTorch is not needed."""

from __future__ import annotations

import dataclasses
import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper, save_model

from bench.__main__ import main
from bench.exports import cold_warm, command, of_a_day
from bench.exports.catalogue import EXPORTERS, EXPORTS, HELD_OUT, OF_A_DAY, VARIANTS, Export
from bench.exports.cold_warm import ColdWarm, TimedRun
from bench.exports.kept_timings import Kept, read_cold_warm, read_timing
from bench.exports.models import Made, make_all
from bench.exports.of_a_day import DayRow, read_row
from bench.exports.report import markdown, save
from bench.exports.runs import TIME_OUT, run_model
from bench.exports.times import Timing, for_threads
from bench.exports.timing_report import markdown as timing_table
from bench.exports.trial import Outcome, try_model
from relational_tensat.base.errors import InputError
from relational_tensat.cost.race import Standing


def _write(folder: Path, name: str, operators: tuple[str, ...]) -> Made:
    """Write a chain of operators without attributes on float32 [2 3], and two sets of inputs."""
    values = ["x", *(f"v{index}" for index in range(1, len(operators))), "y"]
    nodes = [
        helper.make_node(op, [values[index], *(["w"] if op == "Mul" else [])], [values[index + 1]])
        for index, op in enumerate(operators)
    ]
    ends = [helper.make_tensor_value_info(v, TensorProto.FLOAT, [2, 3]) for v in ("x", "y")]
    weight = numpy_helper.from_array(np.float32([1.5, -2.0, 0.25]), "w")
    graph = helper.make_graph(nodes, name, ends[:1], ends[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    save_model(model, folder / f"{name}.onnx")
    generator = np.random.default_rng(0)
    sets = {f"{index}/x": generator.standard_normal((2, 3), np.float32) for index in range(2)}
    np.savez(folder / f"{name}.npz", **sets)
    return Made(name, folder / f"{name}.onnx")


def test_a_model_is_optimized_and_compared(tmp_path: Path) -> None:
    made = _write(tmp_path, "negations", ("Neg", "Neg", "Mul", "Tanh"))
    outcome = try_model(made, "none", "float32", ("--effort", "low"), limit_s=60.0)
    assert outcome.defects() == []
    assert not outcome.unchanged
    assert outcome.comparisons > 0
    assert (outcome.nodes_before, outcome.nodes_after) == (4, 2)
    assert outcome.bytes_after < outcome.bytes_before == made.path.stat().st_size
    assert outcome.error is not None
    assert outcome.error < 1e-6
    # Some clocks count ticks: a run of 5 µs may take none.
    assert max(outcome.runtime_before_ms, outcome.runtime_after_ms) > 0
    assert outcome.cpu_s > 0
    assert outcome.peak_mib > 0


@pytest.mark.nightly
def test_the_command_tries_what_is_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "EXPORTS", (Export("none", "tanh", "legacy"),))
    _write(tmp_path, "tanh-legacy", ("Tanh",))
    assert main(["exports", "--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "models: 1, exit code 0: 1, optimized: 0, with a defect: 0" in printed
    assert "- unchanged" in printed
    assert main(["exports", "no such"]) == 2


def test_what_is_missing_needs_an_interpreter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["exports", "gpt2-legacy", "--folder", str(tmp_path)]) == 3
    assert "--python PATH" in capsys.readouterr().err
    python = str(tmp_path / "python")
    assert main(["exports", "gpt2-legacy", "--folder", str(tmp_path), "--python", python]) == 3
    assert "cannot be run" in capsys.readouterr().err


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    made = _write(tmp_path, "tanh", ("Tanh",))
    assert list(make_all(["tanh"], tmp_path, None)) == [made]
    first, second = made.input_sets()
    assert first["x"].shape == (2, 3)
    assert not np.array_equal(first["x"], second["x"])


def test_a_refused_model_is_a_defect(tmp_path: Path) -> None:
    made = _write(tmp_path, "tanh", ("Tanh",))
    run = run_model(made.path, tmp_path / "out.onnx", {"nothing": 2}, (), limit_s=60.0)
    assert run.exit_code == 2
    assert "nothing" in run.message
    outcome = Outcome("tanh", "none", 2, run.message, 0.0, 0.0, 1e-3)
    assert outcome.defects() == [f"exit code 2: {run.message}"]


def test_a_run_is_ended_at_its_limit(tmp_path: Path) -> None:
    made = _write(tmp_path, "tanh", ("Tanh",))
    assert run_model(made.path, tmp_path / "out.onnx", {}, (), limit_s=0.0).exit_code == TIME_OUT


def test_each_defect_is_named() -> None:
    good = Outcome(
        "m", "none", 0, "", 1.0, 1.0, 1e-3,
        comparisons=1, nodes_before=2, nodes_after=1, bytes_before=2, bytes_after=1, error=0.0,
    )  # fmt: skip
    assert good.defects() == []
    for change, expected in {
        ("not_run", "no kernel"): "not run by onnxruntime: no kernel",
        ("error", 0.5): "outputs differ by 5.0e-01",
        ("comparisons", 0): "changed, and nothing compared",
        ("nodes_after", 4): "2 more nodes and no reason",
        ("bytes_after", 5): "3 more bytes and no reason",
        ("dims", 1): "dynamic dimensions lost",
        ("cost_after_us", 1.0): "costs more",
    }.items():
        outcome = dataclasses.replace(good, **dict([change]))
        assert outcome.defects() == [expected]
        is_growth = expected.endswith("no reason")
        explained = dataclasses.replace(outcome, growth_explained=True)
        assert explained.defects() == ([] if is_growth else [expected])


def test_what_is_kept_has_a_row_for_each_model(tmp_path: Path) -> None:
    outcomes = [
        Outcome("a", "none", 0, "", 1.0, 90.0, 1e-3, 8, 1e-7, 4, 2, 2_000_000, 1_000_000, 9.0, 3.0,
                notes=("said",), error=2e-7, runtime_before_ms=3.0, runtime_after_ms=1.5,
                dims=2, dims_kept=2),
        Outcome("b", "none", 5, "no solution", 2.0, 80.0, 1e-3),
    ]  # fmt: skip
    rows = markdown(outcomes).splitlines()
    assert rows[2] == (
        "| a | 4 → 2 | 2.00 → 1.00 | 9 → 3 (3.00x) | 8 | 1e-07 | 2e-07 | 3 → 1.5 (2.00x) |"
        " 1.0 | 90 | 2 of 2 |"
    )
    assert rows[3] == "| b | exit code 5 |  |  |  |  |  |  | 2.0 | 80 |  |"
    assert "- said" in rows
    assert "- **exit code 5: no solution**" in rows
    path = save(outcomes, tmp_path, date(2026, 11, 22))
    assert [o["name"] for o in json.loads(path.read_text())["outcomes"]] == ["a", "b"]
    assert rows[2] in path.with_suffix(".md").read_text()


def test_timings_are_saved_with_their_table_and_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the bench extra is not installed")
    from bench.exports.timing_report import save as save_timings

    near, far = (Standing(speedup, speedup - 0.02, speedup + 0.02, 8) for speedup in (1.1, 3.8))
    timings = [
        Timing("small", 1, 2.0, {"ours": near, "original again": near}, predicted=1.12),
        Timing("quantized", 1, 2.0, {"ours": far}, predicted=3.7),
        Timing("kept", 1, 2.0, {"ours": near}, kept=True),
    ]
    path = save_timings(timings, tmp_path, ["--cost", "analytic:cpu"], "idle")
    assert len(json.loads(path.read_text("utf-8"))["timings"]) == 3
    text = path.with_suffix(".md").read_text("utf-8")
    assert "| small | 1 | 2.00 | 1.100 [1.080, 1.120] |" in text
    assert f"({path.with_suffix('.png').name})" in text
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_files_for_one_machine_are_held_against_each_other() -> None:
    slow, even, fast = (
        Standing(speedup, speedup - 0.02, speedup + 0.02, 8) for speedup in (1.0, 1.03, 1.1)
    )
    standings = {"ours": slow, "ours, this machine": even, "onnxsim": even, "ort offline": fast}
    (line,) = (
        line
        for line in timing_table([Timing("small", 1, 2.0, standings)]).splitlines()
        if line.startswith("behind")
    )
    assert line == (
        "behind beyond the noise: small, ours, this machine 1.030 [1.010, 1.050], ort offline 1.100 "
        "[1.080, 1.120]"
    )


def test_runs_choose_for_as_many_threads_as_are_timed() -> None:
    options = ["--cost", "analytic:cpu", "--budget", "20"]
    assert for_threads(options, 1) == options
    assert for_threads(options, 2) == ["--cost", "analytic:cpu:threads=2", "--budget", "20"]
    assert for_threads(["--cost", "t4"], 2) == ["--cost", "t4"]


def test_timings_are_kept_model_by_model(tmp_path: Path) -> None:
    standing = Standing(1.01, 0.99, 1.03, 8)
    timing = Timing(
        "small", 1, 2.5, {"ours": standing, "original again": standing}, 1.02, False, 30.0
    )
    path, setting = tmp_path / "kept.jsonl", {"heats": 8, "threads": [1]}
    kept = Kept(path, setting, read_timing)
    assert kept.of("small") == []
    kept.keep("small", [timing])
    assert Kept(path, setting, read_timing).of("small") == [timing]
    assert Kept(path, {**setting, "heats": 9}, read_timing).of("small") == []
    assert Kept(None, setting, read_timing).of("small") == []
    path.write_text("no line\n")
    with pytest.raises(InputError, match=r"kept\.jsonl:1: no kept timing"):
        kept.of("small")


def test_runs_with_an_empty_and_a_warm_cache_are_held_against_their_limits(tmp_path: Path) -> None:
    phases = {"load": 0.5, "whole": 60.0, "measure": 40.0}
    cold = TimedRun(110.0, 55.5, 1.2, phases, 300, 20, 2, "faster 1.035")
    row = ColdWarm("small", cold, TimedRun(9.0, 8.0, 1.0, {"load": 0.5}, 0, 20, 0, "faster 1.035"))
    late = dataclasses.replace(row, warm=dataclasses.replace(row.warm, wall_s=21.0))
    failed = dataclasses.replace(row, cold=TimedRun(1.0, 1.0, 1.0, failure="exit code 3: no"))
    assert [each.is_met for each in (row, late, failed)] == [True, False, False]
    lines = cold_warm.markdown([row, late, failed]).splitlines()
    assert lines[2] == (
        "| small | cold | 110.0 | 55.5 | 1.2 | 0.5 | 0.0 | 0.0 | 0.0 | 60.0 | 0.0 | 0.0 | 40.0 | 300 |"
        " 20 | 2 | faster 1.035 |"
    )
    assert "| 21.0 > 20 |" in lines[5] and "exit code 3: no" in lines[6]
    assert lines[-1] == "cold within 120 s and warm within 20: 1 of 3"
    kept = Kept(tmp_path / "kept.jsonl", {}, read_cold_warm)
    kept.keep("small", [row])
    assert kept.of("small") == [row]
    path = cold_warm.save([row], tmp_path, ["--cost", "cpu"], "idle")
    assert json.loads(path.read_text())["runs"][0]["cold"]["rounds"] == 2
    assert lines[2] in path.with_suffix(".md").read_text()


@pytest.mark.nightly
def test_the_command_runs_each_model_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "EXPORTS", (Export("none", "tanh", "legacy"),))
    _write(tmp_path, "tanh-legacy", ("Tanh",))
    argv = ["exports", "--cold-warm", "--folder", str(tmp_path), "--option", "--cost t4"]
    assert main(argv) == 0
    printed = capsys.readouterr().out
    assert printed.count("| not raced |") == 2
    assert "cold within 120 s and warm within 20: 1 of 1" in printed
    assert main([*argv, "--option", "no-option"]) == 4


def test_the_catalogue_has_what_is_asked_for() -> None:
    assert len({export.name for export in EXPORTS}) == len(EXPORTS) == 25
    assert {export.library for export in EXPORTS} == {
        "torchvision",
        "timm",
        "transformers",
        "diffusers",
    }
    assert {export.exporter for export in EXPORTS} == set(EXPORTERS)
    assert {export.variant for export in EXPORTS} == set(VARIANTS)
    assert any(export.dims for export in EXPORTS)
    known = {export.architecture for export in EXPORTS}
    assert len(HELD_OUT) == 17 and not known & {export.architecture for export in HELD_OUT}
    known |= {export.architecture for export in HELD_OUT}
    assert len(OF_A_DAY) == 13 and not known & {export.architecture for export in OF_A_DAY}


def test_a_report_is_held_against_what_is_timed_again(tmp_path: Path) -> None:
    timed, noise = Standing(1.2, 1.1, 1.3, 10), Standing(1.0, 0.98, 1.02, 10)
    row = DayRow("one", "measured", 1.25, (1.15, 1.35), 4.0, timed, noise, 12.0, 11.0, 1.1)
    too_good = dataclasses.replace(row, reported=1.5, interval=(1.4, 1.6))
    modelled = dataclasses.replace(row, basis="modelled", interval=None, wall_s=21.0)
    slower = dataclasses.replace(row, basis="kept", reported=1.0, interval=None, timed=noise)
    slower = dataclasses.replace(slower, timed=Standing(0.9, 0.85, 0.95, 10))
    rows = [row, too_good, modelled, slower, DayRow("none", failure="exit code 3: no")]
    assert [each.agrees for each in rows] == [True, False, True, False, False]
    assert [each.is_slower for each in rows] == [False, False, False, True, False]
    lines = of_a_day.markdown(rows).splitlines()
    assert lines[2] == (
        "| one | 4.00 | 1.250 [1.150, 1.350], measured | 1.200 [1.100, 1.300] | 1.000 [0.980, 1.020] |"
        " 12.0 | 11.0 | 1.1 |"
    )
    assert "3 are faster and 1 slower, of 4" in lines[-4]
    assert lines[-3:-1] == [
        "of 2 reports that measured, 1 have a value in common with what was timed again",
        "within 20 s: 3 of 4",
    ]
    assert lines[-1] == "none: exit code 3: no"
    kept = Kept(tmp_path / "kept.jsonl", {}, read_row)
    kept.keep("one", rows)
    assert kept.of("one") == rows
    path = of_a_day.save(rows, tmp_path, [], 2, "idle")
    assert lines[2] in path.with_suffix(".md").read_text()


@pytest.mark.nightly
def test_the_command_tries_models_of_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "OF_A_DAY", (Export("none", "tanh", "legacy"),))
    _write(tmp_path, "tanh-legacy", ("Tanh",))
    assert main(["exports", "--of-a-day", "--folder", str(tmp_path), "--heats", "2"]) in (0, 4)
    assert "| tanh-legacy | " in (printed := capsys.readouterr().out)
    assert "| original kept | " in printed
