"""One contract for all places: the same models, the same bytes, rows and reports."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from relational_tensat.base.errors import InputError, MissingDependencyError, UsageError
from relational_tensat.base.runner import runner
from relational_tensat.fleet import Beside, FleetRow, Ledger, fleet
from relational_tensat.fleet.task import CHANGED
from tests.fleet.small_models import QUICK, comparable, write_models

_COUNT = 12
_HAS = {name: importlib.util.find_spec(name) is not None for name in ("ray", "submitit")}
needs_ray = pytest.mark.skipif(not _HAS["ray"], reason="ray is not installed (the extra ray)")
needs_submitit = pytest.mark.skipif(
    not _HAS["submitit"], reason="submitit is not installed (the extra slurm)"
)
#: Both warn of what is theirs.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_models(folder, _COUNT)
    (folder / "broken.json").write_text("{}")
    return folder


@pytest.fixture(scope="module")
def expected(models: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[FleetRow]]:
    """Return what this process makes of the models."""
    out = tmp_path_factory.mktemp("here") / "out"
    rows = fleet([models / "*.json"], out, QUICK, beside=Beside(certificates=True, savings=True))
    assert sum(row.state == CHANGED for row in rows) == _COUNT
    assert all(row.rules == (("negative-difference", 1),) for row in rows[1:])
    assert all(us > 0 for row in rows[1:] for _, us in row.savings)
    return out, rows


def check_same(models: Path, out: Path, expected: tuple[Path, list[FleetRow]], on: str) -> None:
    there, rows = expected
    beside = Beside(certificates=True, savings=True)
    found = fleet([models / "*.json"], out, QUICK, on=on, beside=beside)
    assert list(map(comparable, found)) == list(map(comparable, rows))
    assert list(map(comparable, Ledger(out).rows())) == list(map(comparable, rows))
    files = _files(there)
    assert len(files) == 2 * _COUNT and _files(out) == files
    endings = Ledger(out).table("fleet_attempt", "model, attempt, ending")
    assert sorted(endings) == [(row.model, 1, row.state) for row in rows]


def _files(folder: Path) -> dict[str, bytes]:
    """Return the files of a fleet; certificates say when they were made."""
    return {
        path.name: re.sub(rb'"date": "[^"]*"', b"", path.read_bytes())
        for path in folder.glob("*.json")
    }


def test_processes(models: Path, tmp_path: Path, expected: Any) -> None:
    check_same(models, tmp_path / "out", expected, "processes:2")


@contextmanager
def ray_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Give a cluster of two machines, which are processes here."""
    root = str(Path(__file__).resolve().parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0123456789abcdef" * 2)
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "120")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # else a busy machine does everything else first
    from ray.cluster_utils import Cluster  # type: ignore[import-not-found]

    memory = {"object_store_memory": 200 << 20}
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **memory}
    )
    try:
        cluster.add_node(num_cpus=1, **memory)
        yield cluster
    finally:
        cluster.shutdown()


@pytest.fixture
def local_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give the address of a cluster of two machines."""
    with ray_cluster(monkeypatch) as cluster:
        yield cluster.address


@needs_ray
def test_ray(models: Path, tmp_path: Path, expected: Any, local_cluster: str) -> None:
    check_same(models, tmp_path / "out", expected, f"ray:{local_cluster}")


@needs_submitit
def test_slurm(
    models: Path, tmp_path: Path, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Submitit's local executor: the jobs of Slurm without Slurm."""
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))
    check_same(models, tmp_path / "out", expected, "slurm:local")


def test_places_that_are_not_there_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in (("ray", "ray"), ("slurm", "submitit")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(
            MissingDependencyError, match=rf"pip install 'relational-tensat\[{name}\]'"
        ):
            runner(name)
    with pytest.raises(UsageError, match="runner 'slurm:0', expected a number of jobs, 1 or more"):
        runner("slurm:0")


@needs_submitit
def test_slurm_is_not_computed_here_for_want_of_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="there is no sbatch here"):
        runner("slurm:4")


@needs_ray
def test_a_cluster_that_does_not_answer_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(InputError, match=rf"--on ray:{address}: Ray cannot be used: .*refused"),
            runner(f"ray:{address}"),
        ):
            pass
