from __future__ import annotations

import argparse
import dataclasses
import json
from datetime import date
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.tensat import command as tensat
from bench.tensat.measure import Run
from bench.tensat.peer import load_peer_runs
from relational_tensat.cost import graph_cost_us, load_profile
from relational_tensat.models import TENSAT_MODELS

#: The keys of a run and what they hold; nothing else may be there.
RUN_SCHEMA: dict[str, type | tuple[type, ...]] = {
    "model": str, "k_multi": int, "e_nodes": int, "e_classes": int, "iterations": int,
    "statements": int, "stop_reason": str, "explore_cpu_s": float, "explore_wall_s": float,
    "extract_s": float, "cost_before_us": float, "cost_after_us": float, "gap": float,
}  # fmt: skip


def test_json_has_exactly_the_documented_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tensat", "--models", "vgg19", "--k", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["runs"]
    (run,) = document["runs"]
    assert list(run) == list(RUN_SCHEMA)
    for key, kind in RUN_SCHEMA.items():
        assert isinstance(run[key], kind), key
    assert (run["model"], run["k_multi"], run["stop_reason"]) == ("vgg19", 1, "saturated")
    assert (run["e_nodes"], run["e_classes"], run["gap"]) == (86, 70, 0.0)
    assert run["cost_after_us"] == pytest.approx(6609.3, abs=0.05)
    assert run["explore_wall_s"] > 0
    assert run["statements"] >= run["iterations"] >= 1


def test_tables_show_ours_beside_the_peers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensat, "RESULTS", tmp_path)
    assert main(["tensat", "--models", "vgg19", "--k", "1", "--save"]) == 0
    printed = capsys.readouterr()
    assert "vgg19, k_multi=1" in printed.err
    (path,) = tmp_path.iterdir()
    assert path.name == f"tensat-{date.today().isoformat()}-taso.json"
    saved = json.loads(path.read_text())
    assert {"date", "commit", "machine", "versions", "settings", "runs"} == set(saved)
    assert saved["versions"]["duckdb"].startswith("2.")
    assert saved["settings"]["rules"] == "taso"
    exploration, extraction = printed.out.split("Extraction\n")
    assert f"{saved['runs'][0]['e_nodes']}" in exploration
    assert "86" in exploration
    assert "7060.6" in extraction


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "vgg91"], "did you mean 'vgg19'?"),
        (["--k", "1,two"], "expected whole numbers separated by commas"),
        (["--k", "-1"], "expected whole numbers separated by commas"),
        (["--iterations", "0"], "expected a number above 0"),
        (["--extract-time-limit", "nan"], "expected a number above 0"),
        (["--cost", "tensat_t5"], "did you mean 'tensat_t4'?"),
    ],
)
def test_values_that_do_not_exist_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tensat", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("flag", ["--rules", "--extractor"])
def test_unknown_choices_are_usage_errors(flag: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["tensat", flag, "no-such-thing"])
    assert ended.value.code == 2


def test_a_second_save_of_a_day_replaces_the_first(tmp_path: Path) -> None:
    options = argparse.Namespace(command="tensat", rules="shipped", run=main, json=False, save=True)
    run = Run("vgg19", 1, 86, 70, 2, 90, "saturated", 0.1, 0.2, 0.3, 7000.0, 6000.0, 0.0, 0.25, 2.0)
    first = tensat.save([], options, tmp_path)
    second = tensat.save([run], options, tmp_path)
    assert first == second
    saved = json.loads(second.read_text())
    assert saved["runs"] == [dataclasses.asdict(run)]
    assert saved["settings"] == {"rules": "shipped"}


def test_the_peer_has_every_model_at_both_k() -> None:
    runs = load_peer_runs()
    assert set(runs) == {(model, k) for model in TENSAT_MODELS for k in (1, 2)}
    for k_multi, total_s in ((1, 0.561), (2, 3.612)):
        parts = [run.explore_cpu_s for run in runs.values() if run.k_multi == k_multi]
        assert sum(parts) == pytest.approx(total_s, abs=0.003)


def test_the_models_cost_what_the_peers_do() -> None:
    profile = load_profile("tensat_t4")
    known = {run.model: run.cost_before_us for run in load_peer_runs().values()}
    compared = {name for name, cost_us in known.items() if cost_us is not None}
    assert compared == {"bert", "nasrnn", "vgg19"}
    for name in compared:
        assert graph_cost_us(TENSAT_MODELS[name](), profile) == pytest.approx(known[name], abs=0.05)
