"""A farm of costs: each kernel once, on quiet cores; what it brought in is all that runs read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import pytest

from relational_tensat import Options, optimize
from relational_tensat.base.errors import UsageError
from relational_tensat.base.runner import Here, LostError
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.device import Configuration, Device, TimingSample, Unmeasurable
from relational_tensat.cost.opener import open_device
from relational_tensat.fleet import farm as farm_module
from relational_tensat.fleet.farm import FarmPlan, farm
from relational_tensat.formats.frontend import frontend_of
from relational_tensat.tensor import Node, TensorType, Weight, build_graph
from tests.fleet.small_models import write_models
from tests.fleet.test_places import needs_ray, ray_cluster

pytest.importorskip("onnxruntime", reason="needs onnxruntime")
_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_MEASURED = Options.of(cost="cpu", only=("negative-difference",), iterations=2, verify_runs=1)


class Counted:
    """This machine's processor, but its times are made up and counted."""

    asked: list[Configuration] = []  # noqa: RUF012  # of all copies

    def __init__(self, device: Device) -> None:
        self._device, self.key, self.statistic = device, device.key, device.statistic

    def adapted(self, weights_bytes: int) -> Counted:
        return Counted(self._device.adapted(weights_bytes))

    def measure(
        self, configurations: list[Configuration]
    ) -> Iterator[tuple[Configuration, TimingSample | Unmeasurable]]:
        for each in configurations:
            self.asked.append(each)
            yield each, TimingSample(2.0, 1.0, 3.0, 10)


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Configuration]]:
    farm_module._opened.cache_clear()
    monkeypatch.setattr(farm_module, "open_device", lambda name: Counted(open_device(name)))
    Counted.asked.clear()
    yield Counted.asked
    farm_module._opened.cache_clear()


def test_each_kernel_is_measured_once(tmp_path: Path, counted: list[Configuration]) -> None:
    models = write_models(tmp_path / "models", 3)
    plans: list[FarmPlan] = []
    farmed = farm(models[:2], tmp_path / "costs", _MEASURED, planned=plans.append)
    # Of each model: a difference, a negative, a tanh; chains of the same are the same kernel.
    assert farmed.measured == len(counted) == len(set(counted)) == 6
    assert [plan.kernels for plan in plans] == [6]
    assert plans[0].quiet_cores == 1
    assert plans[0].seconds > 0
    farmed = farm(models, tmp_path / "costs", _MEASURED, planned=plans.append)
    assert farmed.measured == 3  # those of the new model
    assert len(counted) == len(set(counted)) == 9
    (table,) = farmed.tables
    assert table.kernels == 9
    assert table.models == tuple(path.name for path in models)


def test_a_run_reads_the_snapshot_and_measures_nothing(tmp_path: Path) -> None:
    (model,) = write_models(tmp_path / "models", 1)
    farmed = farm([model], tmp_path / "costs", _MEASURED)
    options = _MEASURED.replace(
        cost_cache=farmed.snapshot, measure_time_limit_s=0.0, budget_s=0.0, end_to_end=False
    )
    result = optimize(model, options)
    assert result.costs.measured == result.costs.estimated == 0
    assert result.costs.cached > 0
    frozen = optimize(
        model, Options.of(cost=f"table:{farmed.tables[0].path}", only=("negative-difference",))
    )
    assert frozen.cost_before_us == result.cost_before_us == 3.0
    assert frozen.cost_after_us == result.cost_after_us == 2.0


def test_kernels_of_a_model_whose_weights_change_nothing_are_asked_for(tmp_path: Path) -> None:
    model, kind = tmp_path / "wide.json", TensorType("float32", (1, 1200))
    weight = Weight(TensorType("float32", (1200, 1200)))
    nodes = [Node("matmul", ("x", "w"), ("y",)), Node("tanh", ("y",), ("z",))]
    graph = build_graph("wide", {"x": kind}, {"w": weight}, nodes, ["z"])
    frontend_of(model).write(graph, model, None)
    assert open_device("cpu").adapted(weight.type.nbytes).key == open_device("cpu").key
    assert farm([model], tmp_path / "costs", _MEASURED).measured == 2


def test_options_that_measure_nothing_are_refused(tmp_path: Path) -> None:
    models = write_models(tmp_path / "models", 1)
    with pytest.raises(UsageError, match="a run measures no kernels"):
        farm(models, tmp_path / "costs", Options.of(cost="t4"))


def test_a_model_that_cannot_be_read_is_a_result(tmp_path: Path) -> None:
    models = write_models(tmp_path / "models", 1)
    broken = tmp_path / "models" / "broken.json"
    broken.write_text("{}")
    farmed = farm([*models, broken], tmp_path / "costs", _MEASURED)
    assert [*farmed.refused] == ["broken.json"]
    assert farmed.measured == 3


class Losing(Here):
    """Loses quiet cores: so many parts that measure, before one is computed."""

    left = 0

    def submit_quiet(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        if Losing.left:
            Losing.left -= 1
            future: Future[_Result] = Future()
            future.set_exception(LostError("its machine ended"))
            return future
        return self.submit(compute, task)


@pytest.mark.parametrize(("lost", "is_lost"), [(2, False), (3, True)])
def test_a_quiet_core_that_is_lost_is_tried_three_times(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    counted: list[Configuration],
    lost: int,
    is_lost: bool,
) -> None:
    models = write_models(tmp_path / "models", 1)
    monkeypatch.setattr(farm_module, "runner", lambda on: Losing())
    Losing.left = lost
    if is_lost:
        with pytest.raises(LostError):
            farm(models, tmp_path / "costs", _MEASURED)
        Losing.left = 0
    farm(models, tmp_path / "costs", _MEASURED)
    assert (
        len(counted) == len(set(counted)) == len(CostCache(tmp_path / "costs/costs.duckdb").rows())
    )


@needs_ray
@pytest.mark.filterwarnings("default")
def test_quiet_cores_of_ray_measure_one_after_the_other_and_may_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = write_models(tmp_path / "models", 12)
    with ray_cluster(monkeypatch) as cluster:
        on = f"ray:{cluster.address}"
        with pytest.raises(UsageError, match="no machine has a quiet core"):
            farm(models[:1], tmp_path / "costs", _MEASURED, on=on)

        def begin() -> Any:
            memory = {"object_store_memory": 200 << 20}
            return cluster.add_node(num_cpus=0, resources={"quiet_core": 1}, **memory)

        machines = [begin()]

        def lose_first(done: int, total: int) -> None:
            if len(machines) == 1:  # it has begun with the second part
                cluster.remove_node(machines[0], allow_graceful=False)
                machines.append(begin())

        farmed = farm(models, tmp_path / "costs", _MEASURED, on=on, measured=lose_first)
    assert len(machines) == 2
    assert farmed.measured == len(CostCache(farmed.snapshot).rows()) == 36
    spans = sorted(farmed.spans, key=lambda span: span.begin_s)
    assert len(spans) == 3
    assert all(a.end_s <= b.begin_s for a, b in itertools.pairwise(spans))
