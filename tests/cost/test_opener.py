"""What ``--cost`` names."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from relational_tensat.base.errors import InputError, MissingDependencyError, UsageError
from relational_tensat.cost import AnalyticSource, CostCounts, load_profile, open_source, opener
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.cost.opener import open_device
from relational_tensat.cost.table import RecordedSource, write_table
from tests.cost.fakes import CPU, FakeDevice, configuration, in_mode, plug_in, products
from tests.cost.test_table import records
from tests.graphs import f32


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tables in place of the one that ships, with the table ``fake-ort``."""
    monkeypatch.setattr(opener, "TABLE_DIR", tmp_path)
    write_table(tmp_path / "fake-ort.parquet", records(4))
    return tmp_path


@pytest.mark.parametrize("text", ["t4", "analytic:t4"])
def test_a_profile(text: str) -> None:
    source = open_source(text)
    assert isinstance(source, AnalyticSource)
    assert source.name == "t4"
    (product,) = products(1)
    profile = load_profile("t4")
    assert source.ask([product])[product].cost_us == profile.cost_us(
        product.op, product.inputs, product.output, {}
    )
    source.ask([configuration("reshape", f32(4), shape=(2, 2))])
    assert source.counts == CostCounts(estimated=1)


def test_cpu_is_the_device_and_its_profile_has_to_be_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plug_in(monkeypatch, FakeDevice())
    assert isinstance(open_source("cpu"), MeasuredSource)
    assert isinstance(open_source("analytic:cpu"), AnalyticSource)


def test_a_device_has_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    device = plug_in(monkeypatch, FakeDevice(key=replace(CPU, kind="cuda"), statistic="median_us"))
    assert open_source("cuda:tf32").name == "cuda:tf32"
    assert open_device("cuda:tf32").key == in_mode(device.key, "tf32")
    assert open_device("cuda").key == device.key
    with pytest.raises(UsageError, match=r"unknown cost profile 'cuda:tf23'.*mean 'cuda:tf32'"):
        open_source("cuda:tf23")


def test_a_processor_has_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    device = plug_in(monkeypatch, FakeDevice())
    assert open_source("cpu:all:threads=2").name == "cpu:all:threads=2"
    assert open_device("cpu:threads=2").key == in_mode(device.key, "threads=2")
    for wrong in ("cpu:threads=", "cpu:threads=two", "cuda:threads=2", "cpu:threads=-1"):
        with pytest.raises(UsageError, match="unknown cost profile"):
            open_source(wrong)


def test_a_device_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch, FakeDevice())
    with pytest.raises(MissingDependencyError, match="no cuda device here; install one"):
        open_source("cuda")


@pytest.mark.parametrize("text", ["table:fake-ort", "fake-ort"])
def test_a_table_that_ships(shipped: Path, text: str) -> None:
    source = open_source(text)
    assert isinstance(source, RecordedSource)
    assert source.name == "table:fake-ort"


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    write_table(path, records(2))
    for text in (f"table:{path}", str(path)):
        assert open_source(text).name == "table:mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cpuu", "unknown cost profile 'cpuu'.*did you mean 'cpu'"),
        ("a10", "did you mean 'a100'"),
        ("fake-otr", "did you mean 'fake-ort'"),
        ("analytic:a10", "unknown cost profile 'a10'.*did you mean 'a100'"),
        ("table:fake-otr", "unknown table of costs 'fake-otr'.*did you mean 'fake-ort'"),
        ("", "unknown cost profile ''"),
        ("tabel:fake-ort", "unknown cost profile 'tabel:fake-ort', expected analytic:PROFILE"),
    ],
)
def test_what_does_not_exist_gets_the_nearest(shipped: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        open_source(text)
    assert "\n" not in str(caught.value)


def test_files_that_do_not_exist() -> None:
    for text in ("table:absent.parquet", "absent.parquet", "absent.toml", "analytic:absent.toml"):
        with pytest.raises(InputError, match="absent"):
            open_source(text)


def test_naming_sources_loads_nothing_heavy() -> None:
    code = (
        "import sys, relational_tensat.cost; "
        "print([m for m in ('duckdb', 'pyarrow', 'onnxruntime', 'pycuda') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
