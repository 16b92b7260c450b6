"""Whole graphs on the double: verified against float64, and timed in turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.gpu.graphs_on_device import prepare_graphs, time_graphs, verify_on_device
from relational_tensat.base.errors import VerificationError
from relational_tensat.cost.cuda import cuda_device as device_module
from relational_tensat.cost.cuda import graph_times as whole
from relational_tensat.cost.cuda.cuda_device import CudaDevice
from relational_tensat.cost.cuda.graph_times import compare_pair
from relational_tensat.cost.cuda.protocol import WARM, Observation, Settings
from relational_tensat.cost.device import Unmeasurable, WholeTiming
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from tests.cost.cuda.double import CudaDouble, FakeRecording, FakeTimer
from tests.cost.cuda.simulator import Kernel, SimulatedGpu
from tests.gpu.numpy_library import NumpyLibrary
from tests.graphs import f32, shared_matmuls


def _merged(factor: str = "add") -> Graph:
    """What ``shared_matmuls`` can become: one product with the sum of the weights."""
    weights = {name: Weight(f32(64, 64)) for name in ("w1", "w2")}
    nodes = [
        Node(factor, ("w1", "w2"), ("w",)),
        Node("matmul", ("x", "w"), ("y",), {"act": "relu"}),
    ]
    return build_graph("merged", {"x": f32(64, 64)}, weights, nodes, ["y"])


def test_a_graph_that_computes_the_same_passes() -> None:
    prepared = prepare_graphs(shared_matmuls(), [_merged()])
    original, merged = verify_on_device(NumpyLibrary(), prepared, "fp32")
    assert 0 < merged.worst_error < merged.tolerance == pytest.approx(1e-3)
    assert (original.implementations, merged.implementations) == ({"kernels": 5}, {"kernels": 1})


def test_a_graph_that_computes_something_else_is_refused() -> None:
    prepared = prepare_graphs(shared_matmuls(), [_merged("sub")])
    with pytest.raises(VerificationError, match=r"^merged on the device: output 'y' is off by"):
        verify_on_device(NumpyLibrary(), prepared, "fp32")


def test_weights_are_folded_and_shared_by_name() -> None:
    prepared = prepare_graphs(shared_matmuls(), [_merged()], seed=3)
    original, merged = prepared.graphs
    assert merged.count_ops() == {"matmul": 1}
    data: Any = {name: original.weights[name].data for name in ("w1", "w2")}
    total = np.sum([array.astype(np.float64) for array in data.values()], axis=0)
    weight: Any = merged.weights["w"].data
    np.testing.assert_allclose(weight, total, rtol=1e-6)


def test_what_grows_is_drawn_smaller() -> None:
    nodes = [Node("matmul", ("x", "x"), ("v0",))]
    nodes += [Node("mul", (f"v{i}", f"v{i}"), (f"v{i + 1}",)) for i in range(7)]
    graph = build_graph("growing", {"x": f32(8, 8)}, {}, nodes, ["v7"])
    prepared = prepare_graphs(graph, [])
    assert np.abs(prepared.exact[0]).max() <= 1e30
    assert prepared.inputs["x"].std() < 0.5


def test_graphs_are_timed_in_turn() -> None:
    library = CudaDouble()
    timer: Any = FakeTimer(library)
    prepared = prepare_graphs(shared_matmuls(), [_merged()])
    settings = Settings(short_us=0.0, warm_up_us=0.0, window=2, fewest=2, most=2, modes=(WARM,))
    double: Any = library
    record: Any = FakeRecording  # has of a recording what is used of one
    times = time_graphs(
        double,
        timer,
        prepared.graphs,
        prepared.inputs,
        "fp32",
        settings,
        record,
    )
    assert all(isinstance(observation, Observation) for observation in times)
    first = times[0]
    assert isinstance(first, Observation) and first.samples[WARM].median_us == 30.0
    assert first.batch == 1
    assert library.memory.live == 0 and FakeRecording.alive == 0


class _Timer(FakeTimer):
    """The second of two graphs takes longer."""

    turns = 0

    def time_us(self, before: Any, work: Any) -> float:
        super().time_us(before, work)
        self.turns += 1
        return 30.0 if self.turns % 2 else 40.0


def _device(
    monkeypatch: pytest.MonkeyPatch, timer: type[FakeTimer] = _Timer
) -> tuple[CudaDevice, CudaDouble]:
    monkeypatch.setattr(device_module, "Timer", timer)
    monkeypatch.setattr(whole, "record_launches", FakeRecording)
    monkeypatch.setattr(whole, "GRAPH_SETTINGS", replace(whole.GRAPH_SETTINGS, warm_up_us=0.0))
    library = CudaDouble()
    double: Any = library
    return CudaDevice(double), library


def test_the_device_times_two_graphs_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    device, library = _device(monkeypatch)
    prepared = prepare_graphs(shared_matmuls(), [_merged()])
    pair = prepared.graphs[0], prepared.graphs[1]
    times = device.time_whole(pair, prepared.inputs, 5.0)
    assert times == WholeTiming(30.0, 40.0, 0.75, 0.75, 0.75, 50)
    assert library.memory.live == 0 and FakeRecording.alive == 0


class _LaunchTimer(FakeTimer):
    """A launch takes 10 µs, whatever it computes."""

    def time_us(self, before: Any, work: Any) -> float:
        self.library.launched = 0
        work()
        return 10.0 * self.library.launched


def test_graphs_race_in_heats(monkeypatch: pytest.MonkeyPatch) -> None:
    device, library = _device(monkeypatch, _LaunchTimer)
    monkeypatch.setattr(whole, "_TURN_US", 30.0)  # the double computes whatever is run
    monkeypatch.setattr(whole, "_WARM_UP_US", 60.0)
    monkeypatch.setattr(whole, "_ROUNDS", 3)
    prepared = prepare_graphs(shared_matmuls(), [_merged()])
    first, merged = prepared.graphs
    for seed in range(2):  # the order in which they are loaded changes nothing
        ratios = device.heat([first, merged, first], prepared.inputs, seed)
        assert ratios == pytest.approx([1.0, 5.0, 1.0])  # five launches, and one
    assert library.memory.live == 0 and FakeRecording.alive == 0


def test_graphs_of_a_heat_are_run_equally_often(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[int] = []

    class Counting(_LaunchTimer):
        def time_us(self, before: Any, work: Any) -> float:
            time_us = super().time_us(before, work)
            launched.append(self.library.launched)
            return time_us

    device, _ = _device(monkeypatch, Counting)
    monkeypatch.setattr(whole, "_TURN_US", 50.0)
    monkeypatch.setattr(whole, "_WARM_UP_US", 60.0)
    prepared = prepare_graphs(shared_matmuls(), [_merged()])
    device.heat(prepared.graphs, prepared.inputs, 0)
    rounds = launched[-30:]  # five launches a run, and one
    assert sorted(set(rounds)) == [5, 25]
    assert rounds.count(5) == rounds.count(25) == 15


def test_a_graph_without_kernels_does_not_race(monkeypatch: pytest.MonkeyPatch) -> None:
    device, library = _device(monkeypatch, _LaunchTimer)
    view = build_graph(
        "view", {"x": f32(4, 4)}, {}, [Node("reshape", ("x",), ("y",), {"shape": (16,)})], ["y"]
    )
    why = device.heat([view, view], {"x": np.zeros((4, 4))}, 0)
    assert why == Unmeasurable("a graph takes no time: it launches no kernel")
    assert library.memory.live == 0 and FakeRecording.alive == 0


def test_what_has_no_kernel_does_not_race(monkeypatch: pytest.MonkeyPatch) -> None:
    device, library = _device(monkeypatch)
    graph = build_graph(
        "sum", {"x": TensorType("int64", (4,))}, {}, [Node("add", ("x", "x"), ("y",))], ["y"]
    )
    why = device.heat([graph, graph], {"x": np.zeros(4, np.int64)}, 0)
    assert isinstance(why, Unmeasurable) and "no GPU kernel for add of int64" in why.reason
    assert library.memory.live == 0 and FakeRecording.alive == 0


def test_what_has_no_kernel_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    device, library = _device(monkeypatch)
    whole_numbers = TensorType("int64", (4,))
    graph = build_graph("sum", {"x": whole_numbers}, {}, [Node("add", ("x", "x"), ("y",))], ["y"])
    times = device.time_whole((graph, graph), {"x": np.zeros(4, np.int64)}, 5.0)
    assert isinstance(times, Unmeasurable)
    assert "no GPU kernel for add of int64" in times.reason
    assert library.memory.live == 0 and FakeRecording.alive == 0


def test_a_clock_that_moves_does_not_count() -> None:
    gpu = SimulatedGpu(noise=0.01, slow=lambda seconds: 1.3 if 0.1 < seconds < 0.12 else 1.0)
    times = compare_pair((Kernel(300.0, 300.0), Kernel(200.0, 200.0)), gpu, 5.0)
    assert isinstance(times, WholeTiming)
    assert times.speedup == pytest.approx(1.5, rel=0.01)
    assert 1.4 < times.speedup_p10 < times.speedup_p90 < 1.6
    assert times.rounds >= 50


def test_long_graphs_have_fewer_rounds_and_longer_ones_none() -> None:
    slow = Kernel(1e5, 1e5)
    gpu = SimulatedGpu()
    times = compare_pair((slow, slow), gpu, 5.0)
    assert isinstance(times, WholeTiming)
    assert times.speedup == 1.0
    assert 11 <= times.rounds <= 12
    assert gpu.now_s < 5.0
    assert compare_pair((Kernel(1e6, 1e6), slow), gpu, 5.0) == Unmeasurable(
        "11 rounds of both graphs would take 24 s, more than 5"
    )


def test_a_graph_without_kernels_is_not_timed() -> None:
    pair = Kernel(5.0, 5.0), Kernel(0.0, 0.0)
    times = compare_pair(pair, SimulatedGpu(), 5.0)
    assert times == Unmeasurable("a graph takes no time: it launches no kernel")
