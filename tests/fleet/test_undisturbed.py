"""Races of a fleet's models are tasks of their own for quiet cores, wherever the models are searched."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relational_tensat import Options
from relational_tensat.base.errors import UsageError
from relational_tensat.base.runner import RUNNERS, Here, LostError, lending, runner, undisturbed
from relational_tensat.cli.fleet import plan_text
from relational_tensat.fleet import FleetRow, Ledger, fleet
from relational_tensat.fleet.fleet import FleetPlan, may_race_apart
from tests.fleet.small_models import write_models
from tests.fleet.test_places import needs_ray, ray_cluster

_TIMED = Options.of(
    cost="cpu", only=("negative-difference",), iterations=2, verify_runs=1, budget_s=1.0
)
_QUIET = {"num_cpus": 0, "resources": {"quiet_core": 1}, "object_store_memory": 200 << 20}


class Lending(Here):
    """Computes here, and notes what its quiet slot is asked for; it may be lost for good."""

    lends_quiet_slots = True

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.alone: list[str] = []
        self.is_lost = self.is_pressed = False

    def submit_lending(
        self, compute: Callable[[Any], Any], task: Any, memory_bytes: int = 0
    ) -> Future[Any]:
        with lending(self._lent):
            return self.submit(compute, task, memory_bytes)

    def submit_quiet(
        self, compute: Callable[[Any], Any], task: Any, memory_bytes: int = 0
    ) -> Future[Any]:
        self.alone.append(task.model)
        return self.submit(compute, task, memory_bytes)

    def _lent(self, compute: Callable[[Any], Any], task: Any) -> tuple[Any, float]:
        self.asked.append(compute.__name__)
        if self.is_lost:
            raise LostError("its machine ended")
        if self.is_pressed and compute.__name__ == "run_race":
            raise KeyboardInterrupt
        return compute(task), 3600.0  # an hour of waiting counts for nothing


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Lending:
    made = Lending()
    made.shares_files = False
    monkeypatch.setitem(RUNNERS, "ray", lambda _: made)
    return made


def _fleet(tmp_path: Path, options: Options = _TIMED, count: int = 1) -> list[FleetRow]:
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    models = write_models(tmp_path / "models", count)
    own = options.replace(cost_cache=tmp_path / "costs.duckdb")
    return fleet(models, tmp_path / "out", own, on="ray")


def test_kernels_and_races_are_for_quiet_slots_and_searches_are_not(
    tmp_path: Path, place: Lending
) -> None:
    rows = _fleet(tmp_path, count=2)
    assert [row.basis for row in rows] == ["measured", "measured"]
    assert [name for name, _ in itertools.groupby(place.asked)] == ["_measured", "run_race"] * 2
    assert not place.alone
    assert all(row.wall_s < 3600 for row in rows)


def test_the_plan_says_what_bounds_a_fleet_that_is_timed(tmp_path: Path, place: Lending) -> None:
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    models, plans = write_models(tmp_path / "models", 2), list[FleetPlan]()
    own = _TIMED.replace(cost_cache=tmp_path / "costs.duckdb")
    fleet(models, tmp_path / "out", own, on="ray", planned=plans.append)
    (plan,) = plans
    assert plan_text(plan) == "2 models to optimize, 1 at a time"
    assert plan_text(replace(plan, at_once=4)) == (
        "2 models to optimize, 4 at a time; timed parts take turns on 1 quiet core, 2 would halve that"
    )
    assert plan_text(replace(plan, at_once=4, quiet_cores=0)) == "2 models to optimize, 4 at a time"


def test_a_quiet_slot_that_is_lost_for_good_loses_the_model(tmp_path: Path, place: Lending) -> None:
    place.is_lost = True
    (row,) = _fleet(tmp_path)
    assert (row.state, row.attempts, place.asked) == ("lost", 3, ["_measured"] * 3)


def test_a_race_that_ctrl_c_ends_leaves_the_best_so_far_and_is_run_again(
    tmp_path: Path, place: Lending
) -> None:
    place.is_pressed = True
    with pytest.raises(KeyboardInterrupt):
        _fleet(tmp_path)
    (row,) = Ledger(tmp_path / "out").rows()
    assert row.reason == "interrupted"
    assert (tmp_path / "out" / row.model).exists()
    place.is_pressed = False
    (row,) = _fleet(tmp_path)
    assert (row.basis, row.reason, row.attempts) == ("measured", "", 2)


def test_what_is_timed_otherwise_has_a_quiet_slot_for_itself(
    tmp_path: Path, place: Lending
) -> None:
    fused = _TIMED.replace(fuse=True, fuse_time_limit_s=0.0)
    assert not may_race_apart(fused)
    assert not may_race_apart(Options.of(cost="cuda"))
    assert may_race_apart(Options.of(effort="high"))
    _fleet(tmp_path, fused)
    assert place.alone == ["chain000.json"]


def test_a_machine_of_another_kind_ends_the_fleet(
    tmp_path: Path, place: Lending, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(compute: Callable[[Any], Any], task: Any) -> tuple[Any, float]:
        monkeypatch.setattr("relational_tensat.cost.cpu.onnxruntime_device.processor_name", str)
        import pickle

        return compute(pickle.loads(pickle.dumps(task))), 0.0

    monkeypatch.setattr(place, "_lent", elsewhere)
    with pytest.raises(UsageError, match=r"measures on .*, expected .* as where the models"):
        _fleet(tmp_path)


# --- parts for a cluster ---


def _node() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


def _span(seconds: float) -> tuple[str, float, float]:
    begin_s = time.time()
    time.sleep(seconds)
    return _node(), begin_s, time.time()


def _searched(timed_s: float) -> tuple[str, Any, float]:
    """Search, then have something timed for so long; Ctrl-C leaves what there is."""
    time.sleep(0.5)
    try:
        return _node(), *undisturbed(_span, timed_s)
    except KeyboardInterrupt:
        return _node(), "interrupted", 0.0


@needs_ray
@pytest.mark.filterwarnings("default")
def test_quiet_cores_of_ray_are_lent_may_be_lost_and_are_told_of_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ray_cluster(monkeypatch) as cluster:
        on = f"ray:{cluster.address}"
        models = write_models(tmp_path / "models", 2)
        with pytest.raises(UsageError, match="no machine has a quiet core"):
            fleet(models, tmp_path / "out", _TIMED, on=on)
        quiet = cluster.add_node(**_QUIET)
        with runner(on) as place:
            parts = [place.submit_lending(_searched, 1.0) for _ in range(4)]
            found = [part.result() for part in parts]
            spans = sorted(span for _, span, _ in found)
            assert {node for node, _, _ in spans} == {quiet.node_id}
            assert quiet.node_id not in {node for node, _, _ in found}
            assert all(a[2] <= b[1] for a, b in itertools.pairwise(spans))
            assert max(waited_s for _, _, waited_s in found) > 1.0
            part = place.submit_lending(_searched, 5.0)
            time.sleep(3.0)
            cluster.remove_node(quiet, allow_graceful=False)
            quiet = cluster.add_node(**_QUIET)
            assert part.result()[1][0] == quiet.node_id
            part = place.submit_lending(_searched, 60.0)
            time.sleep(5.0)
            place.stop()
            assert part.result()[1] == "interrupted"
        own = _TIMED.replace(cost_cache=tmp_path / "costs.duckdb")
        rows = fleet(models, tmp_path / "out", own, on=on)
    assert [(row.state, row.basis) for row in rows] == [("changed", "measured")] * 2
