"""``costs show``, ``export``, ``import`` and ``clear``, as a user runs them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from relational_tensat.cli.main import main
from relational_tensat.cost import DeviceKey, TimingSample, Unmeasurable
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.device import PROTOCOLS
from relational_tensat.cost.earlier_runs import Raced, RunsBefore
from relational_tensat.cost.key import device_id, now
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.cost.race import Standing
from tests.cost.fakes import CPU, FakeDevice, configuration, in_mode, plug_in, products
from tests.graphs import f32

OLD = replace(CPU, libraries={**CPU.libraries, "onnxruntime": "1.20.0"})
GPU = DeviceKey("cuda", "NVIDIA H200", "580.1", {"cublas": "13.0"}, PROTOCOLS["cuda"].version)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with times of this machine, of its past, and of a GPU that is elsewhere."""
    plug_in(monkeypatch, FakeDevice())
    path = tmp_path / "costs.duckdb"
    for key, count in ((CPU, 12), (OLD, 2), (GPU, 3)):
        MeasuredSource("", FakeDevice(key=key), CostCache(path)).ask(products(count))
    CostCache(path).keep(CPU, configuration("relu", f32(4)), Unmeasurable("no kernel"))
    return path


def costs(path: Path, *argv: object) -> int:
    return main(["costs", *map(str, argv), "--cost-cache", str(path)])


def test_show_says_what_is_stale(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert costs(path, "show") == 0
    out = capsys.readouterr().out
    assert f"{path}: 18 configurations" in out
    current, stale, elsewhere = (
        next(line for line in out.splitlines() if line.startswith(device_id(key)))
        for key in (CPU, OLD, GPU)
    )
    assert current.rstrip().endswith("current")
    assert stale.rstrip().endswith("stale (onnxruntime: 1.20.0 → 1.31.1)")
    assert elsewhere.rstrip().endswith("elsewhere")
    assert "cuda: NVIDIA H200" in elsewhere


def test_times_of_a_mode_are_this_machines_too(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mode = in_mode(CPU, "all")
    CostCache(path).keep(mode, configuration("relu", f32(4)), TimingSample(2.0, 1.0, 3.0, 30))
    assert costs(path, "show") == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = (text for text in lines if text.startswith(device_id(mode)))
    assert line.rstrip().endswith("current")


def test_show_one_device_with_its_rows_and_the_fit(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert costs(path, "show", "--device", device_id(CPU)) == 0
    out = capsys.readouterr().out
    assert "NVIDIA" not in out
    assert out.count("matmul float32[8,16] float32") == 12
    assert "no kernel" in out
    assert "calibrated on 12 measured times" in out
    assert "matrix product" in out


def test_show_one_device_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert costs(path, "show", "--device", "fake 9000", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [device["status"] for device in report["devices"]] == ["current", "stale"]
    assert [len(device["rows"]) for device in report["devices"]] == [13, 2]
    assert report["devices"][0]["rows"][-1]["reason"] == "no kernel"
    assert report["devices"][1]["why"] == ["onnxruntime: 1.20.0 → 1.31.1"]


def test_show_everything_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert costs(path, "show", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [device["configurations"] for device in report["devices"]] == [12, 2, 3]
    row = report["devices"][0]["rows"][0]
    assert set(row) == {"configuration", "median_us", "p10_us", "p90_us", "samples", "date"}


def test_an_empty_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "absent.duckdb"
    assert costs(path, "show") == 0
    assert "0 configurations" in capsys.readouterr().out
    assert costs(path, "clear") == 0
    assert costs(path, "export", tmp_path / "x.parquet") == 2
    assert "nothing has been measured" in capsys.readouterr().err
    assert not path.exists()


def test_a_time_of_another_protocol_is_stale_wherever_its_device_is(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = replace(GPU, protocol=9)
    MeasuredSource("", FakeDevice(key=key), CostCache(path)).ask(products(1))
    assert costs(path, "show") == 0
    version = PROTOCOLS["cuda"].version
    assert f"stale (protocol: 9 → {version})" in capsys.readouterr().out
    assert costs(path, "export", path.with_suffix(".parquet"), "--device", device_id(key)) == 2
    assert "such a table would be refused" in capsys.readouterr().err


def test_export_import_clear(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = path.with_name("fake.parquet")
    assert costs(path, "export", table, "--device", "cpu") == 0  # of the two, the current one
    assert "12 configurations of Fake 9000" in (out := capsys.readouterr().out)
    assert "1 that cannot be measured left out" in out
    assert costs(path, "import", table) == 0
    assert "0 configurations" in (out := capsys.readouterr().out)
    assert "12 were there already and stay" in out
    before = [record for record in CostCache(path).rows() if record.key == CPU]
    assert costs(path, "clear", "--device", "cpu") == 0
    assert "15 configurations of 2 devices forgotten" in capsys.readouterr().out
    assert {record.key.name for record in CostCache(path).rows()} == {GPU.name}
    assert costs(path, "import", table, "--device", "fake") == 0
    assert "12 configurations of Fake 9000" in capsys.readouterr().out
    after = [record for record in CostCache(path).rows() if record.key == CPU]
    assert after == [record for record in before if not isinstance(record.result, Unmeasurable)]
    assert costs(path, "clear") == 0
    assert CostCache(path).rows() == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["show", "--device", "Fake 9001"], "no such device in the cache.*did you mean"),
        (["export", "x.csv"], "suffix of a table must be .parquet"),
        (["export", "x.parquet", "--device", "a"], "which device. name one with --device"),
        (["clear", "--device", "h100"], "no such device in the cache"),
    ],
)
def test_usage(
    path: Path, argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    MeasuredSource("", FakeDevice(key=replace(OLD, name="Atom")), CostCache(path)).ask(products(1))
    assert costs(path, *argv) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert re.search(message, err), err


def test_a_table_of_another_device_is_refused_where_one_is_insisted_on(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = path.with_name("fake.parquet")
    assert costs(path, "export", table, "--device", "cuda") == 0
    assert costs(path, "import", table, "--device", "cpu") == 3
    version = PROTOCOLS["cuda"].version
    what = f"a table of NVIDIA H200; 580.1; cublas 13.0; protocol {version}"
    assert f"{what}, expected one of 'cpu'" in capsys.readouterr().err


def test_costs_alone_names_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["costs"]) == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^  costs (\w+) ", printed, re.MULTILINE) == [
        "show", "export", "import", "farm", "clear",
    ]  # fmt: skip


def test_clear_reaches_a_device_on_which_graphs_only_raced(tmp_path: Path) -> None:
    cache = CostCache(tmp_path / "raced.duckdb")
    before = RunsBefore(cache, CPU)
    standing = Standing(1.1, 1.0, 1.2, 5)
    before.keep("original", "setting", {"graph": Raced(standing, True, standing, now())})
    assert cache.rows() == [] and cache.keys() == [CPU]
    assert costs(cache.path, "clear") == 0
    assert before.raced("original", "setting") == {} and cache.keys() == []
