"""The device measures what is right, refuses what is not, and gives all memory back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relational_tensat.base.errors import MissingDependencyError, UsageError
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.cuda import cuda_device as device_module
from relational_tensat.cost.cuda import open_device
from relational_tensat.cost.cuda.cuda_device import CudaDevice
from relational_tensat.cost.cuda.protocol import Settings
from relational_tensat.cost.device import Configuration, TimingSample, Unmeasurable
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.tensor import TensorType
from tests.cost.cuda.double import CudaDouble, FakeRecording, FakeTimer, off_by
from tests.cost.cuda.test_single import configuration
from tests.gpu import numpy_kernels
from tests.graphs import f32

_FEW = Settings(warm_up_us=0.0, window=2, fewest=2, most=2, fewest_batch=2, most_batch=4)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[CudaDouble]:
    monkeypatch.setattr(device_module, "Timer", FakeTimer)
    monkeypatch.setattr(device_module, "record_launches", FakeRecording)
    double = CudaDouble()
    yield double
    assert double.memory.live == 0
    assert FakeRecording.alive == 0


def _measure(library: CudaDouble, *configurations: Configuration) -> dict[Configuration, Any]:
    return dict(CudaDevice(library, settings=_FEW).measure(configurations))  # type: ignore[arg-type]


def test_configurations_are_measured(library: CudaDouble) -> None:
    device = CudaDevice(library, settings=_FEW)  # type: ignore[arg-type]
    product = configuration("matmul", f32(4, 4), f32(4, 4), act="relu")
    ((key, sample),) = device.measure([product])
    assert key is product
    assert sample == TimingSample(7.5, 7.5, 7.5, 2)  # four launches a batch, 30 µs together
    timed = device.timings[product]
    assert timed.implementations == ("kernels",)
    assert timed.observation.samples["cold"].median_us == 7.5
    assert device.key.libraries == {"kernels": "double", "math": "fp32"}
    assert (device.key.kind, device.key.name, device.key.driver) == ("cuda", "NVIDIA Test", "580.1")


class _RecordedOnly(FakeTimer):
    """Refuses work that is not one CUDA graph: the GPU would wait for the calls of libraries."""

    def time_us(self, before: Callable[[], None], work: Callable[[], None]) -> float:
        before()
        started = FakeRecording.started
        work()
        assert FakeRecording.started == started + 1
        return self.launch_us


def test_single_launches_are_recorded_as_batches_are(
    library: CudaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "Timer", _RecordedOnly)
    for short_us, batch in ((0.0, 1), (100.0, 4)):
        device = CudaDevice(library, settings=replace(_FEW, short_us=short_us))  # type: ignore[arg-type]
        relu = configuration("relu", f32(4))
        assert all(isinstance(each, TimingSample) for _, each in device.measure([relu]))
        assert device.timings[relu].observation.batch == batch


def test_results_come_in_the_order_asked_for_one_by_one(library: CudaDouble) -> None:
    configurations = [configuration("relu", f32(n)) for n in range(1, 5)]
    device = CudaDevice(library, settings=_FEW)  # type: ignore[arg-type]
    results = device.measure(configurations)
    for number, relu in enumerate(configurations, start=1):
        assert next(results)[0] is relu
        assert len(device.timings) == number  # the others have not been touched


class _Killed(BaseException):
    """Stands for a signal: nobody catches it, and nothing but the cache is left."""


def test_killing_it_loses_the_measurement_in_flight(
    library: CudaDouble, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    configurations = [configuration("relu", f32(n)) for n in range(1, 5)]
    calls = _count_timings(monkeypatch, kill_at=None)
    device = CudaDevice(library, settings=_FEW)  # type: ignore[arg-type]
    ends = [
        calls["made"] for _ in device.measure(configurations)
    ]  # timings when each result is there
    assert len(set(ends)) == len(configurations)
    for kill_at in range(1, ends[-1] + 1):
        cache = CostCache(tmp_path / f"{kill_at}.duckdb")
        _count_timings(monkeypatch, kill_at)
        killed = CudaDevice(library, settings=_FEW)  # type: ignore[arg-type]
        with pytest.raises(_Killed):
            MeasuredSource("cuda", killed, cache).ask(configurations)
        finished = sum(end < kill_at for end in ends)
        assert len(cache.rows()) == finished
    _count_timings(monkeypatch, kill_at=None)
    rest = MeasuredSource("cuda", CudaDevice(library, settings=_FEW), cache)  # type: ignore[arg-type]
    rest.ask(configurations)
    assert (rest.counts.cached, rest.counts.measured) == (len(configurations) - 1, 1)


def _count_timings(monkeypatch: pytest.MonkeyPatch, kill_at: int | None) -> dict[str, int]:
    """Count what is timed from now on; kill it at one of these, the first being 1."""
    calls = {"made": 0}

    class Counting(FakeTimer):
        def time_us(self, before: Callable[[], None], work: Callable[[], None]) -> float:
            calls["made"] += 1
            if calls["made"] == kill_at:
                raise _Killed
            return super().time_us(before, work)

    monkeypatch.setattr(device_module, "Timer", Counting)
    return calls


def test_another_way_to_multiply_is_another_device(library: CudaDouble, tmp_path: Path) -> None:
    exact, rounded = (CudaDevice(library, math, _FEW) for math in ("fp32", "tf32"))  # type: ignore[arg-type]
    assert exact.key.name == "NVIDIA Test"
    assert rounded.key.name == "NVIDIA Test, tf32"
    assert rounded.key.libraries == {"kernels": "double", "math": "tf32"}
    cache, configurations = CostCache(tmp_path / "costs.duckdb"), [configuration("relu", f32(4))]
    MeasuredSource("cuda", exact, cache).ask(configurations)
    source = MeasuredSource("cuda:tf32", rounded, cache)
    source.ask(configurations)
    assert source.counts.measured == 1
    assert source.notes == ()  # times of the other mode are not times of another version


@pytest.mark.parametrize(
    ("op", "math", "is_right"),
    [
        ("matmul", "fp32", False),
        ("matmul", "tf32", True),  # 10 bits of mantissa
        ("tanh", "tf32", False),  # only products are rounded
    ],
)
def test_only_products_may_be_as_wrong_as_tf32_is(
    library: CudaDouble, monkeypatch: pytest.MonkeyPatch, op: str, math: str, is_right: bool
) -> None:
    for kernel in ("gemm_simt", "gemm_mma", "unary"):
        wrong = off_by(1.001, numpy_kernels.KERNELS[kernel])
        monkeypatch.setitem(numpy_kernels.KERNELS, kernel, wrong)
    operands = (f32(8, 8), f32(8, 8)) if op == "matmul" else (f32(8, 8),)
    device = CudaDevice(library, math, _FEW)  # type: ignore[arg-type]
    ((_, result),) = device.measure([configuration(op, *operands)])
    assert isinstance(result, TimingSample) == is_right


def test_views_take_no_time(library: CudaDouble) -> None:
    view = configuration("split", f32(1, 8, 4), axis=1, sizes=(4, 4))
    copy = configuration("split", f32(2, 8, 4), axis=2, sizes=(1, 3))
    costs = _measure(library, view, copy)
    assert costs[view] == TimingSample(0.0, 0.0, 0.0, 1)
    assert isinstance(costs[copy], TimingSample) and costs[copy].median_us > 0


def test_what_has_no_kernel_is_unmeasurable(library: CudaDouble) -> None:
    whole = TensorType("int64", (4,))
    addition = configuration("add", whole, whole)
    costs = _measure(library, addition, configuration("relu", f32(4)))
    reason = costs[addition]
    assert isinstance(reason, Unmeasurable)
    assert "no GPU kernel for add of int64" in reason.reason


def test_wrong_kernels_are_never_timed(
    library: CudaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = off_by(1.001, numpy_kernels.unary)
    monkeypatch.setitem(numpy_kernels.KERNELS, "unary", wrong)
    tanh = configuration("tanh", f32(8, 8))
    reason = _measure(library, tanh)[tanh]
    assert isinstance(reason, Unmeasurable)
    assert reason.reason.startswith("tanh on kernels: the result is off by 1.0e-03")


def test_results_that_were_not_written_are_found(
    library: CudaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(numpy_kernels.KERNELS, "unary", lambda memory, kind, arguments: None)
    tanh = configuration("tanh", f32(8, 8))
    reason = _measure(library, tanh)[tanh]
    assert isinstance(reason, Unmeasurable)
    assert "64 elements that are not finite: not written, or wrong" in reason.reason


def test_what_does_not_fit_is_unmeasurable(
    library: CudaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    from relational_tensat.cost.cuda import subject

    monkeypatch.setattr(subject, "_MOST_BYTES", 1000)
    relu = configuration("relu", f32(1000))
    reason = _measure(library, relu)[relu]
    assert reason == Unmeasurable("relu: two copies of its operands take too much memory")


def test_without_pycuda_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(MissingDependencyError) as caught:
        open_device()
    assert str(caught.value) == (
        "running on NVIDIA GPUs needs PyCUDA: pip install 'relational-tensat[gpu]'"
    )


def test_an_unknown_math_mode_is_refused() -> None:
    with pytest.raises(
        UsageError, match="unknown math mode 'tf23', expected one of fp32, tf32; did"
    ):
        open_device("tf23")
