"""Runs that are killed at any moment, by SIGKILL, and resumed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from bench.kills.forker import forking
from bench.kills.killing import KilledRuns, Survival, stored_iterations
from relational_tensat.formats import save_model
from tests.run.resume.models import RULES, layers

MOMENTS = 12
FLAGS = [
    *(arg for file in RULES for arg in ("--rules", file)),
    *("--iterations", 12, "--multi-iterations", 3, "--multi-schedule", "saturated"),
    *("--search", "saturation", "--node-limit", 1500, "--extractor", "greedy", "--verify-runs", 1),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KilledRuns]:
    folder = tmp_path_factory.mktemp("killed")
    model = folder / "layers.json"
    save_model(layers(), model)
    with forking() as forker:
        yield KilledRuns(forker, folder, model, FLAGS)


def test_a_run_killed_at_any_moment_is_resumed_to_the_same_end(runs: KilledRuns) -> None:
    assert runs.result["iterations"] > 3
    draw = random.Random(20)
    survivals: list[Survival] = []
    for moment in range(MOMENTS):
        folder = runs.folder(f"moment{moment}")
        runs.kill(folder, draw.random())
        survivals.append(runs.resumed(folder))
    assert [survival.trouble for survival in survivals] == [""] * MOMENTS
    assert Counter(survival.place for survival in survivals)["exploring"] > 0


def test_a_run_killed_again_and_again_is_resumed_to_the_same_end(runs: KilledRuns) -> None:
    folder = runs.folder("again")
    runs.kill(folder, 0.5)
    if stored_iterations(folder / "run.duckdb"):
        for fraction in (0.3, 0.2, 0.4):
            runs.kill_resumed(folder, fraction)
    assert runs.resumed(folder).trouble == ""


def test_a_run_that_ends_otherwise_is_found_out(runs: KilledRuns) -> None:
    folder = runs.folder("other")
    runs.kill(folder, 0.7)
    runs.result["e_nodes"] += 1
    survival = runs.resumed(folder)
    runs.result["e_nodes"] -= 1
    assert survival.place in ("loading", "creating") or survival.trouble == "e_nodes"
