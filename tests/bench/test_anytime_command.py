"""``python -m bench anytime`` on small models."""

from __future__ import annotations

import argparse
import json
from datetime import date
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.anytime import command as anytime_command
from bench.anytime.measure import AnytimeRun, FirstAnswer


@pytest.mark.nightly
def test_every_variant_ends_with_the_same_optimum(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anytime_command, "VARIANTS", ((0, 0), (1, 1)))
    assert main(["anytime", "vgg19", "--k", "1"]) == 0
    header, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    runs = [dict(zip(header, row, strict=True)) for row in rows]
    assert [(run["every"], run["patience"]) for run in runs] == [("0", "0"), ("1", "1")]
    assert len({run["cost_us"] for run in runs}) == 1
    assert {run["gap"] for run in runs} == {"0.00%"}
    assert float(runs[0]["between_s"]) == 0 < float(runs[1]["between_s"])


def test_first_answers_come_before_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anytime", "vgg19", "--first", "--k", "1"]) == 0
    header, row = (line.split() for line in capsys.readouterr().out.splitlines())
    cells = dict(zip(header, row, strict=True))
    assert float(cells["first_s"]) <= float(cells["best_s"]) <= float(cells["total_s"])
    assert float(cells["first_us"]) >= float(cells["early_us"]) >= float(cells["best_us"])


def test_an_unknown_model_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["anytime", "vgg20"]) == 2
    assert "did you mean 'vgg19'" in capsys.readouterr().err


def test_results_are_kept_with_their_circumstances(tmp_path: Path) -> None:
    options = argparse.Namespace(
        first=False, k="1", cost="t4", node_limit=100, extract_time_limit=5.0
    )
    run = AnytimeRun("m", 1, 1, 2, 3, 2, 50, "patience", 1.0, 0.5, 0.25, 10.0, 0.0)
    path = anytime_command.save([run], options, tmp_path)
    assert path.name == f"anytime-{date.today().isoformat()}.json"
    document = json.loads(path.read_text())
    assert document["runs"][0]["stop_reason"] == "patience"
    assert document["settings"]["node_limit"] == 100
    assert document["machine"]["cores"]
    options.first = True
    answer = FirstAnswer("m", 1, 5, 4, 0.1, 9.0, 8.0, 0.2, 7.0, 0.3, 0.0)
    assert anytime_command.save([answer], options, tmp_path).name.startswith("anytime-first-")
