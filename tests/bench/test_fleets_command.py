"""The bench that kills fleets: it kills, continues, and sees what is lost."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

from bench.fleets.kills import KilledFleets, kill_fleet, kill_worker
from bench.fleets.overhead import overhead


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
        connection.execute("DELETE FROM fleet_run WHERE model = 'm01.json'")
        connection.execute("UPDATE fleet_run SET output_digest = 'other', attempts = 2")
    assert list(fleets._troubles(out)) == [
        "m01.json is lost",
        "m00.json has other bytes (changed: )",
        "m00.json: 2 attempts, and 1 in the ledger",
        ".m00.part is left",
    ]


def test_overhead_is_counted_by_tasks() -> None:
    found = overhead("here", 2, 22)
    assert 0 < found.each_ms < 200
