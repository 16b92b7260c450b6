"""The bench that kills fleets: it kills, continues, and sees what is lost."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

from bench.fleets.kills import KilledFleets, kill_fleet, kill_worker
from bench.fleets.overhead import overhead
from bench.fleets.simulate import (
    Overheads,
    apart_makespan_s,
    ends_of,
    makespan_s,
    speed_ups,
)


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
        "m00.json has other bytes (changed: )",
        "m00.json: 2 attempts, and 1 in the ledger",
        ".m00.part is left",
    ]


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
    assert apart_makespan_s(tasks, 5, 1, _OVERHEADS) == 13.5 + 5 * 10.5 + 2.0
    assert apart_makespan_s(tasks, 5, 5, _OVERHEADS) == 13.5 + 10.5 + 2.0
    # One worker is enough: while a task waits for its quiet host, the worker searches the next.
    assert apart_makespan_s(tasks[:2], 1, 2, _OVERHEADS) == 13.5 + 3.5 + 10.5 + 2.0
    assert apart_makespan_s([[1.0]] * 4, 2, 0, _OVERHEADS) == 13.5 + 3.5


def test_kept_durations_scale_as_it_was_said() -> None:
    rows = speed_ups(Overheads())
    assert rows["500 models, costs known"][64] > 50
    assert rows["500 models, costs known, each worker lost every 30 min"][64] > 45
    assert rows["832 searches"][64] > 60
    assert rows["500 models, costs measured, searched by 64 others"][16] > 20
