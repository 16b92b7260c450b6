"""Runs with measured costs time both graphs whole, and keep the original where it is faster."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relational_tensat import Options, optimize, resume
from relational_tensat.cli.main import main
from relational_tensat.cost import Unmeasurable
from relational_tensat.cost.device import WholeTiming
from relational_tensat.formats import load_model, save_model
from relational_tensat.run.result import Result
from relational_tensat.tensor import Node, Weight, build_graph
from tests.cli.schema import check_schema
from tests.cost.fakes import GAIN, FakeDevice, plug_in
from tests.graphs import f32, shared_matmuls

LOSS = WholeTiming(100.0, 110.0, 0.91, 0.85, 0.99, 40)
NOISE = WholeTiming(100.0, 105.0, 0.95, 0.85, 1.01, 40)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    return plug_in(monkeypatch, FakeDevice(time_us=lambda configuration: 2.0))


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options.of(
        cost="cpu",
        cost_cache=tmp_path / "costs.duckdb",
        only=("sum-of-products-sharing-left",),
        verify_runs=1,
    )


def run(options: Options, output: Path | None = None) -> Result:
    return optimize(shared_matmuls(with_data=True), options, output=output)


def was_merged(path: Path) -> bool:
    return load_model(path).count_ops()["matmul"] == 1


def test_a_gain_is_kept_and_reported(device: FakeDevice, options: Options, tmp_path: Path) -> None:
    result = run(options, tmp_path / "out.json")
    assert result.whole is not None
    assert result.whole.timing is GAIN
    assert (result.whole.modelled_before_us, result.whole.modelled_after_us) == (10.0, 6.0)
    assert was_merged(tmp_path / "out.json")
    assert result.optimal and not result.keeps_original
    assert (result.cost_before_us, result.cost_after_us) == (10.0, 6.0)
    assert result.seconds["whole"] > 0
    ((before, after), inputs) = device.timed[0]
    assert (before.count_ops()["matmul"], after.count_ops()["matmul"]) == (2, 1)
    assert set(inputs) == {"x"}


def test_a_loss_keeps_the_original(device: FakeDevice, options: Options, tmp_path: Path) -> None:
    device.whole = LOSS
    result = run(options, tmp_path / "out.json")
    assert not was_merged(tmp_path / "out.json")
    assert result.graph.count_ops() == shared_matmuls().count_ops()
    assert result.keeps_original
    assert result.cost_after_us == result.cost_before_us == 10.0
    assert not result.optimal  # a graph of 6 µs by the sums was found
    assert (result.bound_us, result.gap) == (6.0, pytest.approx(0.4))
    assert result.rules_used == {}
    assert result.unchanged and result.verification.ok and result.verification.runs > 0
    (note,) = [text for text in result.notes if "run whole" in text]
    assert note == (
        "the extracted graph should take 6.00 µs under cpu, the original 10.00, but run whole it takes "
        "110.00, the original 100.00 (0.910x, 0.850 to 0.990): the original is kept"
    )
    assert len(device.timed) == 1


@pytest.mark.parametrize(
    "timing", [NOISE, replace(LOSS, rounds=10)], ids=["within the spread", "too few rounds"]
)
def test_noise_keeps_the_original(
    device: FakeDevice, options: Options, tmp_path: Path, timing: WholeTiming
) -> None:
    device.whole = timing
    result = run(options, tmp_path / "out.json")
    assert not was_merged(tmp_path / "out.json")
    assert result.whole is not None and result.whole.timing is timing
    assert result.unchanged and result.keeps_original and not result.rules_used
    assert result.gain.basis == "measured" and "the original is kept" in result.gain.text


def test_switched_off_nothing_is_timed(device: FakeDevice, options: Options) -> None:
    device.whole = LOSS
    result = run(options.replace(end_to_end=False))
    assert device.timed == []
    assert result.whole is None
    assert result.cost_after_us == 6.0
    assert result.seconds["whole"] == 0


def test_nothing_found_nothing_timed(device: FakeDevice, options: Options) -> None:
    product = Node("matmul", ("x", "w"), ("y",))
    graph = build_graph("one", {"x": f32(4, 4)}, {"w": Weight(f32(4, 4))}, [product], ["y"])
    result = optimize(graph, options)
    assert device.timed == []
    assert result.whole is None
    assert any("no cheaper graph was found" in note for note in result.notes)


def test_costs_from_elsewhere_time_nothing(device: FakeDevice, options: Options) -> None:
    result = run(options.replace(cost="t4"))
    assert device.timed == []
    assert result.whole is None


@pytest.mark.parametrize(
    ("whole", "sentence"),
    [
        (Unmeasurable("no kernel for foo"), "not run whole on cpu: no kernel for foo"),
        (KeyboardInterrupt, "not run whole on cpu: interrupted"),
    ],
)
def test_what_cannot_be_timed_is_returned_untimed_and_reported(
    device: FakeDevice, options: Options, whole: Any, sentence: str
) -> None:
    device.whole = whole
    result = run(options)
    assert result.whole is None
    assert result.cost_after_us == 6.0
    assert sentence in result.notes


@pytest.mark.nightly
def test_explain_says_that_the_original_was_kept(
    device: FakeDevice,
    options: Options,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    db = tmp_path / "run.duckdb"

    def explained() -> str | None:
        assert main(["explain", str(db), "--json"]) == 0
        reason: str | None = json.loads(capsys.readouterr().out)["kept_original"]
        return reason

    device.whole = LOSS
    (note,) = [text for text in run(options.replace(db=db)).notes if "run whole" in text]
    assert explained() == note
    assert main(["explain", str(db)]) == 0
    assert f"note: {note}" in capsys.readouterr().out.replace("\n", " ").replace("  ", " ")
    device.whole = GAIN
    resume(db)
    assert explained() is None


def test_resumed_runs_do_the_same(device: FakeDevice, options: Options, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    options = options.replace(db=tmp_path / "run.duckdb")
    run(options, output)
    device.whole, device.timed = LOSS, []
    result = resume(tmp_path / "run.duckdb", output=output)
    assert result.keeps_original
    assert len(device.timed) == 1
    assert not was_merged(output)
    off = options.replace(db=tmp_path / "off.duckdb", end_to_end=False)
    run(off)
    device.timed = []
    assert resume(tmp_path / "off.duckdb").whole is None  # the run's own option holds
    assert device.timed == []


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "pair.json"
    save_model(shared_matmuls(with_data=True), path)
    return path


def command(model: Path, *flags: str) -> int:
    cache = str(model.with_name("costs.duckdb"))
    only = ("--only", "sum-of-products-sharing-left", "--set", "verify-runs=1")
    costs = ("--cost", "cpu", "--cost-cache", cache)
    return main(["run", str(model), "-o", str(model.with_name("o.json")), *costs, *only, *flags])


def test_the_json_object_has_it(
    model: Path, device: FakeDevice, capsys: pytest.CaptureFixture[str]
) -> None:
    device.whole = LOSS
    assert command(model, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    check_schema(report)
    assert report["whole"] == {
        "before_us": 100.0,
        "after_us": 110.0,
        "speedup": 0.91,
        "speedup_p10": 0.85,
        "speedup_p90": 0.99,
        "rounds": 40,
        "modelled_before_us": 10.0,
        "modelled_after_us": 6.0,
        "kept": "original",
    }
    assert report["cost_after_us"] == report["cost_before_us"] == 10.0
    assert report["optimal"] is False
    assert not was_merged(Path(report["output"]))
    assert command(model, "--json", "--set", "end-to-end=no") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["whole"] is None
    assert was_merged(Path(report["output"]))


def test_the_report_has_a_line_of_it(
    model: Path, device: FakeDevice, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(model, "-v") == 0
    out, err = capsys.readouterr()
    line = (
        "run whole on cpu: 100.0 → 80.0 µs (1.25x measured, 1.20-1.30 in 40 rounds; 1.67x modelled)"
    )
    assert line in out.splitlines()
    assert "optimal for every graph that the rules can reach" in out
    assert "run both graphs whole …" in err
    device.whole = LOSS
    assert command(model, "-v") == 0
    out = capsys.readouterr().out
    assert (
        "run whole on cpu: 100.0 → 110.0 µs (0.91x measured, 0.85-0.99 in 40 rounds; "
        "1.67x modelled): the original is kept"
    ) in out.splitlines()
    assert "optimal" not in out
    assert (
        "extracted: ilp, the original, as the graph that is cheaper by the sums is not faster, "
        "measured whole; gap 40.00%" in out
    )
    assert "rules that made the result" not in out
    assert command(model, "--quiet") == 0
    assert ": the original is kept; " in capsys.readouterr().out
