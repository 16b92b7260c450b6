"""Damaged files through the command line: one line for each, and never an internal error."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.mutations.running import INTERNAL_ERROR, run_mutations
from bench.mutations.seeds import seed_rules, write_seeds


def test_no_damage_is_an_internal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seeds = write_seeds(tmp_path, seed_rules())
    outcomes = run_mutations(seeds, tmp_path, count=2000, seed=0)
    assert outcomes.failures == []
    assert outcomes.codes[INTERNAL_ERROR] == 0
    assert outcomes.codes[0] > 100  # not all damage matters: the files do reach the program
    assert outcomes.codes[3] > 1000
