"""``python -m bench mirage`` on one benchmark."""

from __future__ import annotations

import argparse
import json
from datetime import date
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.mirage import command
from bench.mirage.cases import TABLE_5, cases
from bench.mirage.measure import MirageRun


def test_a_benchmark_is_searched_and_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mirage", "MLP 1", "--max-kernels", "1"]) == 0
    _, row = capsys.readouterr().out.splitlines()
    cells = row.removeprefix("MLP 1").split()
    assert cells[:6] == ["7", "-", "1", "45", "147", "139"]
    assert cells[-1] == "3x"


def test_an_unknown_benchmark_is_refused_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["mirage", "LoRa 1"]) == 2
    assert "did you mean 'LoRA 1'" in capsys.readouterr().err


def test_the_benchmarks_are_those_of_the_paper_at_two_batches() -> None:
    names = [case.name for case in cases()]
    assert len(names) == 2 * 12 + 5
    for case in cases():
        assert case.build().inputs
    assert set(TABLE_5) == {4, 5, 6, 7}


def test_results_are_kept_with_their_circumstances(tmp_path: Path) -> None:
    options = argparse.Namespace(ablation=False, time_limit=1.0)
    run = MirageRun("LoRA 1", 7, (), 1, 2, 3, 4, 5, True, True, 28, 1.0, 17.4, 5.2, "2.3x")
    path = command.save([run], options, tmp_path)
    assert path.name == f"mirage-{date.today().isoformat()}.json"
    assert json.loads(path.read_text())["runs"][0]["case"] == "LoRA 1"
