"""Times of parts: kept for exactly what they hold for; on several threads, of several copies at once; and
which parts need a kernel."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from relational_tensat.base.watch import Watch
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.cpu.graph_times import RepeatedGraph
from relational_tensat.cost.device import DeviceKey
from relational_tensat.custom_ops import part_times
from relational_tensat.custom_ops.part_calls import PartCall, graph_of
from relational_tensat.custom_ops.part_times import PartTime, PartTimes, SessionSetting
from relational_tensat.custom_ops.parts import PartRow, _batches, _Hope, _without_little
from relational_tensat.mugraph.fusion.candidates import chain_candidates
from relational_tensat.verify.evaluate import evaluate_graph
from tests.custom_ops.fused_files import feeds_of, normed
from tests.with_compilers import needs_c

KEY = DeviceKey("cpu", "one", "", {}, 1)
SETTING = SessionSetting(1, 20)


def _times(folder: Path, key: DeviceKey = KEY, setting: SessionSetting = SETTING) -> PartTimes:
    times = PartTimes(CostCache(folder / "costs.duckdb"), key, setting)
    times.look_up(["part", "other"])
    return times


@needs_c
def test_times_hold_for_one_device_setting_compiler_and_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _times(tmp_path)
    assert first.of("part") is None and first.rough_us("other") is None
    first.learn("part", [9.0, 8.0, 8.5], [2.0, 2.1, 1.9])
    first.learn_rough("other", 7.0)
    first.keep()
    again = _times(tmp_path)
    assert again.of("part") == PartTime(8.5, 2.0) and again.rough_us("other") == 7.0
    assert again.of("other") is None
    assert _times(tmp_path, DeviceKey("cpu", "two", "", {}, 1)).of("part") is None
    for setting in (SessionSetting(2, 20), SessionSetting(1, 21)):
        assert _times(tmp_path, setting=setting).of("part") is None
    with monkeypatch.context() as patch:
        patch.setattr(part_times, "compiler_version", lambda path: "another")
        assert _times(tmp_path).of("part") is None
    monkeypatch.setattr(part_times, "_makers", lambda: "another line of code")
    assert _times(tmp_path).of("part") is None


@needs_c
def test_times_of_a_busy_machine_are_kept_until_they_are_to_be_timed_again(tmp_path: Path) -> None:
    busy = _times(tmp_path)
    busy.learn("part", [9.0, 8.0, 30.0], [2.0, 6.0, 1.9])
    busy.keep()
    assert _times(tmp_path).of("part") == PartTime(9.0, 2.0)
    again = PartTimes(CostCache(tmp_path / "costs.duckdb"), KEY, SETTING, again=True)
    again.look_up(["part"])
    assert again.of("part") is None


def test_a_busy_machine_times_parts_more_often() -> None:
    """Were there no more samples, one disturbance would decide."""
    ticks = iter([1.0, 1.0, 5.0] * 22)
    clock = partial(next, ticks)
    call = object.__new__(PartCall)
    call._run, call._copies = RepeatedGraph(lambda: None, 1, 1.0), 1
    call._clock = lambda run: clock()
    others, own = call.beside_us(call)
    assert len(others) == len(own) == 33


def test_copies_of_a_part_compute_what_each_does() -> None:
    graph = normed(3, 5)
    (place,) = chain_candidates(graph)
    copied = graph_of(place, place.nodes, 3)
    assert len(copied.nodes) == 3 * len(place.nodes) and len(copied.outputs) == 3
    feeds = feeds_of(copied)
    found = evaluate_graph(copied, feeds, {})
    for copy, name in enumerate(copied.outputs):
        ending = f" copy {copy}" if copy else ""
        own = {each: feeds[f"{each}{ending}"] for each in place.inputs}
        expected = evaluate_graph(graph_of(place, place.nodes), own, {})
        np.testing.assert_array_equal(found[name], expected[place.outputs[0]])


def _hope(saving_us: float, *values: str) -> _Hope:
    """Return a part that may save so much in each of two places, with nodes that give these values."""
    nodes = tuple(SimpleNamespace(outputs=(value,)) for value in values)
    place: Any = SimpleNamespace(nodes=nodes)
    return _Hope(" ".join(values), [place, place], PartRow(values, 2), saving_us, None)


def test_parts_that_save_little_together_have_no_kernels() -> None:
    rows: list[PartRow] = []
    hopes = [_hope(us, str(us)) for us in (2.0, 50.0, -4.0, 0.4, 1.0)]
    assert [each.saving_us for each in _without_little(hopes, 6.0, rows)] == [50.0, 2.0]
    assert [row.operators for row in rows] == [("-4.0",), ("0.4",), ("1.0",)]
    assert ["memory" in row.reason for row in rows] == [True, True, False]


@pytest.mark.parametrize(("gain_us", "last"), [(9.0, []), (1.0, ["a", "d"])])
def test_a_part_waits_for_larger_ones_only_if_it_is_within_them(
    gain_us: float, last: list[str]
) -> None:
    """What is within one that waits itself is not made beside it."""
    gains: dict[str, float] = {}
    rows: list[PartRow] = []
    hopes = [_hope(9.0, "a", "b"), _hope(8.0, "b", "c"), _hope(7.0, "a"), _hope(6.0, "d")]
    batches = _batches(hopes, gains, rows, Watch())
    assert [each.pattern for each in next(batches)] == ["a b", "b c"]
    gains |= dict.fromkeys("abc", gain_us)
    assert [each.pattern for each in next(batches)] == (last or ["d"])
    assert len(rows) == (0 if last else 1) and next(batches, None) is None
