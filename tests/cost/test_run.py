"""Whole runs with measured and recorded costs, the device being made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relational_tensat import Options, optimize
from relational_tensat.cli.main import main
from relational_tensat.cost.cache import CostCache
from relational_tensat.formats import save_model
from relational_tensat.tensor.uses import weight_bytes
from tests.cost.fakes import CPU, Configuration, FakeDevice, plug_in
from tests.graphs import shared_matmuls

#: Merges the two matmuls: with one rule a run is short.
ONE_RULE = ("--only", "merge-products-sharing-left", "--set", "verify-runs=1")


def by_launches(configuration: Configuration) -> float:
    """Two microseconds whatever runs: fewer kernels are better."""
    return 2.0


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "pair.json"
    save_model(shared_matmuls(with_data=True), path)
    return path


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    return plug_in(monkeypatch, FakeDevice(time_us=by_launches))


def run(model: Path, *flags: object, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    cache = model.with_name("costs.duckdb")
    argv = ["run", model, "--force", "--cost", "cpu", "--cost-cache", cache, "--json", *ONE_RULE]
    argv += ["--search", "saturation"]
    assert main([str(arg) for arg in (*argv, *flags)]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_a_second_run_measures_nothing(
    model: Path, device: FakeDevice, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(model, capsys=capsys)
    requests = [configuration for batch in device.requests for configuration in batch]
    assert len(requests) == len(set(requests))
    counts = {"measured": len(requests), "cached": 0, "recorded": 0, "estimated": 0, "spared": 0}
    assert first["costs"] == counts
    second = run(model, capsys=capsys)
    assert second["costs"] == {**counts, "measured": 0, "cached": len(requests)}
    assert second["seconds"]["measure"] == 0  # type: ignore[index]
    for key in ("cost_before_us", "cost_after_us", "e_nodes", "stop_reason"):
        assert first[key] == second[key]
    assert first["cost_before_us"] == 10.0  # five kernels of 2 µs
    assert first["cost_profile"] == "cpu"


def test_small_models_have_times_of_their_own(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = weight_bytes(shared_matmuls())
    only = ("merge-products-sharing-left",)
    options = Options.of(cost="cpu", cost_cache=model.with_name("costs.duckdb"), only=only)
    plug_in(monkeypatch, FakeDevice(time_us=by_launches, small_bytes=weights + 1))
    sentence = "the size of the model's weights asks for costs of Fake 9000, small"
    assert sentence in optimize(model, options).notes
    device = plug_in(monkeypatch, FakeDevice(time_us=by_launches, small_bytes=weights))
    result = optimize(model, options)
    assert sentence not in result.notes
    assert result.costs.cached == 0
    assert device.suited_to == [weights]


def test_measuring_is_shown_and_counted(
    model: Path, device: FakeDevice, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = model.with_name("costs.duckdb")
    argv = ["run", str(model), "--cost", "cpu", "--cost-cache", str(cache), "-v", *ONE_RULE]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    count = sum(len(batch) for batch in device.requests)
    assert f"costs of operator configurations: {count} measured, 0 cached" in out
    assert "measuring was" in out
    assert f"measured {len(device.requests[0])} of {len(device.requests[0])} configurations" in err


def test_ctrl_c_while_measuring_is_one_line(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plug_in(monkeypatch, FakeDevice(interrupt_after=2))
    cache = model.with_name("costs.duckdb")
    argv = ["run", str(model), "--cost", "cpu", "--cost-cache", str(cache), "--quiet", *ONE_RULE]
    assert main(argv) == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "interrupted while measuring: 2 of 3 configurations are measured and kept in" in err
    assert len(CostCache(cache).rows()) == 2
    assert not model.with_name("pair.opt.json").exists()


def test_a_model_is_optimized_for_a_device_that_is_not_here(
    model: Path,
    device: FakeDevice,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    measured = run(model, capsys=capsys)
    table, cache = model.with_name("fake.parquet"), model.with_name("costs.duckdb")
    assert main(["costs", "export", str(table), "--cost-cache", str(cache)]) == 0
    monkeypatch.setattr(device, "key", None)  # gone
    capsys.readouterr()
    recorded = run(model, "--cost", f"table:{table}", capsys=capsys)
    assert recorded["cost_after_us"] == measured["cost_after_us"]
    count = measured["costs"]["measured"]  # type: ignore[index]
    assert recorded["costs"] == {
        "measured": 0,
        "cached": 0,
        "recorded": count,
        "estimated": 0,
        "spared": 0,
    }
    assert recorded["cost_profile"] == "table:fake"


def test_analytic_costs_are_estimates(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = run(model, "--cost", "analytic:t4", capsys=capsys)
    costs = out["costs"]
    assert isinstance(costs, dict)
    assert costs["estimated"] > 0
    assert costs == {
        "measured": 0,
        "cached": 0,
        "recorded": 0,
        "estimated": costs["estimated"],
        "spared": 0,
    }


def test_from_python(model: Path, device: FakeDevice, tmp_path: Path) -> None:
    options = Options.of(
        cost="cpu", cost_cache=tmp_path / "mine.duckdb", only=("merge-products-sharing-left",)
    )
    result = optimize(shared_matmuls(), options)
    assert result.costs.measured == sum(len(batch) for batch in device.requests)
    assert {record.key.name for record in CostCache(tmp_path / "mine.duckdb").rows()} == {CPU.name}
