"""Whole graphs in onnxruntime: what the samples say, and what is not timed; no time is asserted."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relational_tensat.cost.cpu import graph_times as whole
from relational_tensat.cost.cpu import onnxruntime_device, open_device
from relational_tensat.cost.cpu.graph_times import repeated, time_in_turn, time_whole, timing
from relational_tensat.cost.cpu.quiet import Taken
from relational_tensat.cost.device import Unmeasurable, WholeTiming
from relational_tensat.run.end_to_end import with_drawn_weights
from relational_tensat.tensor import Graph, Node, TensorType, build_graph
from relational_tensat.tensor.uses import weight_bytes
from tests.graphs import shared_matmuls

_X = {"x": np.ones((64, 64), np.float32)}


class _Calm:
    """A processor that nobody disturbs."""

    def slowdown(self) -> float:
        return 1.0


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "processor_watch", _Calm)


def test_a_speed_up_is_the_median_of_ratios_within_rounds() -> None:
    before, after = [10.0, 40.0, 12.0, 14.0, 16.0], [5.0, 20.0, 6.0, 7.0, 4.0]
    samples = [[Taken(time, 1, 1) for time in times] for times in (before, after)]
    times = timing(list(zip(*samples, strict=True)))
    assert times.speedup == times.speedup_p10 == 2.0
    assert times.speedup_p90 == pytest.approx(3.2)
    assert times.rounds == 5
    assert (times.before_us, times.after_us) == (pytest.approx(10.8), pytest.approx(4.4))


def test_rounds_are_corrected_or_left_out() -> None:
    calm, slow, torn = Taken(10.0, 1, 1), Taken(40.0, 2, 2), Taken(99.0, 1, 2)
    pairs = [*[(calm, Taken(5.0, 1, 1))] * 6, *[(calm, slow)] * 5, (calm, torn)]
    times = timing(pairs)
    assert times.rounds == 11
    assert times.speedup == 10 / 5
    assert times.speedup_p10 == pytest.approx(10 / 20)
    assert timing(pairs[1:]).rounds == 11  # too few would be left: the torn one counts, too


def _pair() -> tuple[Graph, Graph]:
    weights = with_drawn_weights(shared_matmuls(), 0)
    return weights, weights


def test_many_weights_race_from_a_file_that_goes_with_the_device(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(onnxruntime_device, "_MANY_WEIGHT_BYTES", 2000)
    graphs, device = _pair(), open_device()
    ratios = device.heat(graphs, _X, 0)
    assert not isinstance(ratios, Unmeasurable) and len(ratios) == 2
    (folder,) = tmp_path.iterdir()  # equal graphs are written once
    assert (folder / "weights").stat().st_size >= weight_bytes(graphs[0])
    del device
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_two_graphs_are_timed_by_the_device() -> None:
    pytest.importorskip("onnxruntime")
    times = open_device().time_whole(_pair(), _X, 5.0)
    assert isinstance(times, WholeTiming)
    assert times.rounds == 40
    assert times.speedup_p10 <= times.speedup <= times.speedup_p90
    assert min(times.before_us, times.after_us, times.speedup_p10) > 0


@pytest.mark.parametrize("mode", ["off", "all"])
def test_onnxruntimes_own_optimizations_are_those_of_the_costs(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    pytest.importorskip("onnxruntime")
    used: list[tuple[str, int]] = []

    def prepare(
        graph: Graph, feeds: object, optimizations: str, threads: int
    ) -> Callable[[], None]:
        used.append((optimizations, threads))
        return lambda: None

    monkeypatch.setattr(whole, "prepare", prepare)
    open_device(mode).time_whole(_pair(), _X, 5.0)
    assert used == [(mode, 1)] * 2


def test_both_run_in_turn_and_as_often_as_there_is_time() -> None:
    log: list[str] = []
    pair = repeated(lambda: log.append("a")), repeated(lambda: log.append("b"))
    log.clear()
    assert time_in_turn(pair, 3, 60.0).rounds == 3
    assert "".join(log) == 3 * ("a" * pair[0].times + "b" * pair[0].times)  # both as often
    assert time_in_turn(pair, 40, 0.0).rounds == 11  # no time: the fewest that must be


def test_rounds_that_do_not_count_are_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Restless(_Calm):
        """The processor is disturbed in the second of three rounds."""

        looks = 0

        def slowdown(self) -> float:
            self.looks += 1
            return 2.0 if self.looks == 8 else 1.0  # three looks a sample: it ends disturbed

    monkeypatch.setattr(whole, "processor_watch", Restless)
    log: list[str] = []
    pair = repeated(lambda: log.append("a")), repeated(lambda: log.append("b"))
    log.clear()
    assert time_in_turn(pair, 11, 60.0).rounds == 11
    assert log.count("a") == 12 * pair[0].times


def test_short_runs_are_repeated_and_long_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    for took_us, times in ((10.0, 200), (1e6, 1)):
        monkeypatch.setattr(whole, "thread_us", lambda run, took_us=took_us: took_us)
        assert repeated(lambda: None).times == times


def test_what_takes_too_long_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(whole, "_MOST_S", 0.0)
    times = time_whole(_pair(), _X, "off", 5.0)
    assert isinstance(times, Unmeasurable)
    assert times.reason.startswith("11 rounds of both graphs would take")


def test_large_weights_are_not_written_to_be_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "MOST_WEIGHT_BYTES", 1000)
    times = time_whole(_pair(), _X, "off", 5.0)
    assert times == Unmeasurable("32,768 bytes of weights, more than 1,000")


def test_what_onnxruntime_refuses_is_reported() -> None:
    pytest.importorskip("onnxruntime")
    kind = TensorType("bfloat16", (4,))
    graph = build_graph("odd", {"x": kind}, {}, [Node("relu", ("x",), ("y",))], ["y"])
    times = time_whole((graph, graph), {"x": np.ones(4, np.float32)}, "off", 5.0)
    assert isinstance(times, Unmeasurable)
    assert times.reason.startswith("onnxruntime cannot run odd: ")
    assert "\n" not in times.reason
