"""What is remembered of a processor from one process to the next."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.base.folders import CACHE_VARIABLE
from relational_tensat.cost.cpu.quiet import Baseline


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "undisturbed.json"


def test_the_best_time_stays(path: Path) -> None:
    assert Baseline("Xeon", path).best_us() == math.inf
    Baseline("Xeon", path).keep(40.0)
    Baseline("Xeon", path).keep(35.0)
    Baseline("Xeon", path).keep(61.0)  # by a process that has only seen it disturbed
    assert Baseline("Xeon", path).best_us() == 35.0


def test_processors_are_told_apart(path: Path) -> None:
    Baseline("Xeon", path).keep(35.0)
    other = Baseline("EPYC", path)
    assert other.best_us() == math.inf
    other.keep(50.0)
    assert json.loads(path.read_text()) == {"Xeon": 35.0, "EPYC": 50.0}


def test_noise_is_not_written(path: Path) -> None:
    baseline = Baseline("Xeon", path)
    baseline.keep(35.0)
    baseline.keep(34.9)
    assert baseline.best_us() == 35.0


@pytest.mark.parametrize("text", ["", "[1]", '{"Xeon": "35"}', '{"Xeon": -1}', '{"Xeon": NaN}'])
def test_a_file_of_something_else_is_refused_in_one_line(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(InputError, match=r"undisturbed.json: expected a JSON object of micro") as e:
        Baseline("Xeon", path).best_us()
    assert "\n" not in str(e.value)


def test_it_lies_beside_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    Baseline("Xeon").keep(35.0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["undisturbed.json"]
