"""The bench that kills fleets: it kills, continues, and sees what is lost."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from bench.fleets.kills import KilledFleets, Machines, kill_fleet, kill_worker
from bench.fleets.overhead import overhead
from bench.fleets.simulate import (
    Overheads,
    apart_makespan_s,
    ends_of,
    makespan_s,
    speed_ups,
)
from bench.fleets.timed import TimedFleets, _QuietWatch
from relational_tensat import Options
from relational_tensat.fleet import fleet


@pytest.mark.nightly
def test_fleets_that_are_killed_keep_all(tmp_path: Path) -> None:
    kills = {"fleet": kill_fleet, "worker": kill_worker}
    fleets = KilledFleets(tmp_path, 3, "processes:2", kills, random.Random(0))
    fleets.prepare()
    *killed, last = fleets.run(0, 4)
    assert last == {"fleet": 0, "trouble": ""}
    assert {row["kind"] for row in killed} == {"fleet", "worker"}


def test_what_is_lost_doubled_or_left_is_seen(tmp_path: Path) -> None:
    fleets = KilledFleets(tmp_path, 2, "here", {}, random.Random(0))
    fleets.prepare()
    out = tmp_path / "whole"
    assert list(fleets._troubles(out)) == []
    (out / ".m00.part").touch()
    with duckdb.connect(out / "fleet.duckdb") as connection:
        connection.execute("DELETE FROM fleet_event WHERE model = 'm01.json'")
        other = """'{"output_digest": "other", "attempts": 2}'"""
        connection.execute(
            f"UPDATE fleet_event SET run = json_merge_patch(run, {other}) WHERE run IS NOT NULL"
        )
    assert list(fleets._troubles(out)) == [
        "m01.json is lost",
        "m00.json: other bytes (changed: )",
        "m00.json: 2 attempts, and 1 in the ledger",
        ".m00.part is left",
    ]


def test_a_timed_result_is_held_to_what_it_says(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    fleets = TimedFleets(tmp_path, 2, "here", {}, random.Random(0), machines=_Machines())
    fleets.prepare()
    out = tmp_path / "out"
    costs = {"cost": "cpu", "learn_costs": False, "cost_cache": tmp_path / "out.costs.duckdb"}
    options = Options.of(
        only=("negative-difference",), iterations=2, verify_runs=1, budget_s=1.0, **costs
    )
    row, other = fleet([fleets.models / "*.json"], out, options)
    assert list(fleets.wrong(row, out)) == []
    # Another file is complete, and of another model.
    (out / row.model).write_bytes((fleets.models / other.model).read_bytes())
    found = list(fleets.wrong(row, out))
    assert found[:2] == [
        "the file is another than the ledger has",
        "the file computes something else",
    ]
    (out / row.model).write_bytes((fleets.models / row.model).read_bytes())
    found = list(fleets.wrong(row, out))
    assert any("its report claims" in text for text in found) == (row.state == "changed")
    (out / row.model).unlink()
    assert list(fleets.wrong(row, out)) == [f"no result ({row.state}: )"]


def test_two_things_that_are_timed_at_once_are_seen() -> None:
    with _QuietWatch(_Machines()) as watch:
        give_up_s = time.monotonic() + 20
        while not watch.together and time.monotonic() < give_up_s:
            time.sleep(0.01)
    assert watch.looks >= watch.together > 0


class _Machines(Machines):
    """Quiet machines, of which one times two things at once."""

    def __init__(self) -> None:
        pass

    def timing(self) -> list[list[int]]:
        return [[1], [2, 3]]


def test_overhead_is_counted_by_tasks() -> None:
    found = overhead("here", 2, 22)
    assert 0 < found.each_ms < 200


_OVERHEADS = Overheads(start_s=10.0, first_s=2.0, each_s=0.5, back_s=60.0)


def test_one_worker_does_all_one_after_the_other() -> None:
    assert ends_of([3.0, 1.0, 2.0], 1, _OVERHEADS) == [15.5, 17.0, 19.5]
    # As many workers as tasks: the longest is waited for. With fewer, the shortest go to who is free.
    assert makespan_s([1.0, 3.0, 2.0], 3, _OVERHEADS) == 15.5
    assert makespan_s([1.0, 3.0, 2.0], 2, _OVERHEADS) == 16.0


def test_a_worker_that_is_lost_costs_time() -> None:
    """Each task is done in the end, and no loss is a gain."""
    tasks = [20.0] * 40
    for seed in range(5):
        ends = ends_of(tasks, 4, _OVERHEADS, lost_every_s=100.0, seed=seed)
        assert len(ends) == len(tasks)
        assert max(ends) > makespan_s(tasks, 4, _OVERHEADS)


def test_quiet_hosts_bound_what_is_measured() -> None:
    # Searches take a second on many workers; what follows takes ten on one host, after another.
    tasks = [[1.0, 10.0, 2.0]] * 5
    assert apart_makespan_s(tasks, 5, 1, 1, _OVERHEADS) == 13.5 + 2.0 + 5 * 10.5 + 2.0
    assert apart_makespan_s(tasks, 5, 1, 5, _OVERHEADS) == 13.5 + 2.0 + 10.5 + 2.0
    assert apart_makespan_s([[1.0]] * 4, 1, 2, 0, _OVERHEADS) == 13.5 + 3.5


def test_a_cpu_whose_task_is_timed_is_another_s_after_a_while() -> None:
    tasks = [[1.0, 10.0, 2.0]] * 2
    slow = replace(_OVERHEADS, more_s=4.0)
    # The second task waits for four seconds, has been searched at 17.5, and is timed beside the first.
    assert apart_makespan_s(tasks, 1, 1, 2, slow) == 14.0 + 3.5 + 12.5 + 2.0
    # The quickest begins as soon as the CPU is free.
    assert apart_makespan_s(tasks, 1, 1, 2, replace(slow, more_s=0.0)) == 13.5 + 3.5 + 12.5 + 2.0


def test_a_quiet_host_is_known_to_be_free_late() -> None:
    late = replace(_OVERHEADS, first_s=0.0, known_s=1.0)
    tasks = [[1.0, 10.0, 1.0], [2.0, 5.0, 1.0], [3.0, 1.0, 1.0]]
    # The second host is free at 17.5 of which the third task hears a second later.
    assert apart_makespan_s(tasks, 3, 1, 2, late) == 11.5 + 10.5 + 1.0
    assert apart_makespan_s(tasks[1:], 3, 1, 1, late) == 12.5 + 5.5 + 1.5 + 1.0


def test_kept_durations_scale_as_it_was_said() -> None:
    rows = speed_ups(Overheads())
    assert rows["500 models, costs known"][64] > 50
    assert rows["500 models, costs known, each worker lost every 30 min"][64] > 45
    assert rows["832 searches"][64] > 60
    assert rows["500 models, costs measured, searched by 64 others"][16] > 20
