"""Equal inputs give equal results, whatever a process hashes by."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
from relational_tensat.base.process import ProcessOptions
from relational_tensat.extract import extract
from tests.extract.instances import layered_problem, random_problem
for problem in [layered_problem(2, 4, 5), *(random_problem(seed, 40) for seed in range(10))]:
    found = extract(problem, process=ProcessOptions(seed=7))
    print(found.choice.tolist(), found.cost_us, found.bound_us, found.note, dict(found.reductions))
"""


def run(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_two_processes_choose_the_same() -> None:
    first = run("1")
    assert first.count("\n") == 11
    assert first == run("2")
