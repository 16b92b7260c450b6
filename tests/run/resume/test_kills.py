"""Runs that are killed at any moment, by SIGKILL, and resumed by their own search or another."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from bench.kills import kills
from bench.kills.forker import forking
from relational_tensat.formats import save_model
from tests.run.resume.models import RULES, layers

MOMENTS = 6
FLAGS = (
    *(arg for file in RULES for arg in ("--rules", str(file))),
    *("--iterations", "12", "--multi-iterations", "3", "--set", "multi-schedule=saturated"),
    *(
        "--search",
        "saturation",
        "--node-limit",
        "1500",
        "--set",
        "subgraph-nodes=120",
        "--set",
        "restarts=1",
    ),
    *(
        "--set",
        "tree-decisions=1",
        "--set",
        "tree-budget=8",
        "--extractor",
        "greedy-dag",
        "--set",
        "verify-runs=1",
    ),
    *(
        "--set",
        "extract-every=1",
        "--time-limit",
        "1",
        "--cost",
        "tensat_t4",
        "--db",
        "+run.duckdb",
    ),
)


@pytest.mark.nightly
def test_a_run_killed_at_any_moment_goes_on_from_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kills, "KINDS", {"small": FLAGS})
    model = tmp_path / "layers.onnx"
    save_model(layers(), model)
    draw = random.Random(20)
    with forking() as forker:
        runs = kills.KilledRuns("small", forker, tmp_path, model)
        survivals = [runs.survived(moment, draw.random()) for moment in range(MOMENTS)]
    assert [survival.trouble for survival in survivals] == [""] * MOMENTS
    assert Counter(survival.place for survival in survivals)["exploring"] > 0
