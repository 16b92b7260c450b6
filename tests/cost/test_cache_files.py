"""The cost cache as a file: shared by processes, killed while writing, or something else."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.base.folders import CACHE_VARIABLE
from relational_tensat.base.watch import DeferredInterrupt
from relational_tensat.cost import cache as cache_module
from relational_tensat.cost.cache import CostCache, default_cache
from relational_tensat.cost.measured_source import MeasuredSource
from tests.cost.fakes import CPU, FakeDevice, products

ROOT = Path(__file__).resolve().parents[2]
#: Measures matrix products from one number to another, saying each on standard output once it is kept.
MEASURE = """
import sys, time
from pathlib import Path
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.measured_source import MeasuredSource
from tests.cost.fakes import FakeDevice, products

path, first, last, pause_s = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])

def watch(done, total):
    print(done, flush=True)
    time.sleep(pause_s)

MeasuredSource("cpu", FakeDevice(), CostCache(path), watch).ask(products(last)[first:])
"""


def measuring(path: Path, first: int, last: int, pause_s: float = 0.0) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", MEASURE, str(path), str(first), str(last), str(pause_s)]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_two_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "costs.duckdb"
    processes = [measuring(path, 0, 20), measuring(path, 10, 30)]
    for process in processes:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert 10 <= int(out.split()[-1]) <= 20  # what the other has kept already is not measured
    device = FakeDevice()
    MeasuredSource("cpu", device, CostCache(path)).ask(products(30))
    assert device.requests == []


def test_a_new_file_has_its_name_only_once_it_is_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "costs.duckdb"
    result = next(FakeDevice().measure(products(1)))[1]
    name_once = cache_module._name_once

    def another_is_first(new: Path, name: Path) -> None:
        assert not name.exists()
        assert duckdb.connect(str(new)).execute("SHOW TABLES").fetchall() == []
        monkeypatch.setattr(cache_module, "_name_once", name_once)
        CostCache(path)._make()
        name_once(new, name)

    monkeypatch.setattr(cache_module, "_name_once", another_is_first)
    CostCache(path).keep(CPU, products(1)[0], result)
    assert len(CostCache(path).rows()) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Path) -> None:
        raise PermissionError("no hard links here")

    monkeypatch.setattr(cache_module.os, "link", link)
    path = tmp_path / "costs.duckdb"
    CostCache(path).keep(CPU, products(1)[0], next(FakeDevice().measure(products(1)))[1])
    assert len(CostCache(path).rows()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_killing_loses_at_most_the_measurement_in_flight(tmp_path: Path) -> None:
    path = tmp_path / "costs.duckdb"
    known = 0
    for kill_at in (3, 2):
        with measuring(path, 0, 40, pause_s=0.001) as process:
            assert process.stdout is not None
            kept = 0
            while kept < kill_at:
                kept = int(process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            kept = max([kept, *map(int, process.stdout.read().split())])
        known += kept
        costs = CostCache(path).find(CPU, products(40))
        # what was reported as kept is there; of the next it is not known whether it was
        assert known <= len(costs) <= known + 1
        known = len(costs)


def test_a_file_that_is_held_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "costs.duckdb"
    CostCache(path).keep(CPU, products(1)[0], next(FakeDevice().measure(products(1)))[1])
    hold = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        monkeypatch.setattr(cache_module, "_LOCK_WAIT_S", 0.05)
        with pytest.raises(InputError, match="another process has kept it"):
            CostCache(path).rows()
    finally:
        holder.communicate("\n", timeout=10)
    assert len(CostCache(path).rows()) == 1


def test_files_that_are_no_cache(tmp_path: Path) -> None:
    text = tmp_path / "text.duckdb"
    text.write_text("costs")
    other = tmp_path / "other.duckdb"
    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE enode (id INTEGER)")
    for path, message in (
        (text, "cannot be used as a cost cache"),
        (tmp_path, "cannot be used as a cost cache"),
        (other, "a database with the tables enode, expected a cost cache"),
        (text / "costs.duckdb", "a cost cache cannot be made there"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            CostCache(path).keep(CPU, products(1)[0], next(FakeDevice().measure(products(1)))[1])
        assert str(caught.value).endswith("; --cost-cache names another file")
        assert "\n" not in str(caught.value)
    with duckdb.connect(str(other)) as connection:
        assert connection.execute("SHOW TABLES").fetchall() == [("enode",)]


def test_a_cache_of_another_layout_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "costs.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE measured_cost (configuration VARCHAR)")
    with pytest.raises(InputError, match=r"costs\.duckdb: .*") as caught:
        CostCache(path).find(CPU, products(1))
    assert "\n" not in str(caught.value)


def test_where_the_users_own_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert default_cache() == tmp_path / "costs.duckdb"
    monkeypatch.delenv(CACHE_VARIABLE)
    assert default_cache().parent.name == "relational-tensat"


def test_ctrl_c_waits_until_a_row_is_written(tmp_path: Path) -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), DeferredInterrupt():
        signal.raise_signal(signal.SIGINT)
        reached.append("the end")
    assert reached
    with pytest.raises(KeyboardInterrupt), DeferredInterrupt() as interruption:
        interruption.check()
        signal.raise_signal(signal.SIGINT)
        interruption.check()
        pytest.fail("went on waiting for another process")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with DeferredInterrupt():
        pass  # nobody pressed anything
