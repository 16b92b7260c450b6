"""``python -m bench search`` on a small model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.search import command as search_command
from bench.search.search_run import Moment, SearchRun
from bench.search.tables import tables_of


@pytest.mark.nightly
def test_focus_costs_no_more_than_saturation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "vgg19", "--k", "1", "--node-limits", "500"]) == 0
    _, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    saturation, focus = rows
    assert (saturation[1], focus[1]) == ("saturation", "focus")
    assert saturation[5] == "0"
    assert saturation[11] == saturation[10]  # it has no graph before it ends
    assert saturation[15] == saturation[7]  # after 60 s, what it found
    assert int(focus[5]) > 1
    assert float(focus[7]) <= float(saturation[7])


@pytest.mark.nightly
def test_equal_cpu_seconds_end_every_search(capsys: pytest.CaptureFixture[str]) -> None:
    searches = ["--searches", "saturation,focus,mcts,backtracking"]
    searches += ["--k", "1", "--node-limits", "500", "--cpu-seconds", "0"]
    assert main(["search", "nasrnn", *searches]) == 0
    _, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert [row[1] for row in rows] == ["saturation", "focus", "mcts", "backtracking"]
    assert {row[-1] for row in rows[1:]} == {"time"}
    assert all(float(row[7]) <= float(row[6]) for row in rows)


def test_an_unknown_model_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "vgg20"]) == 2
    assert "did you mean 'vgg19'" in capsys.readouterr().err


def test_tables_have_ranges_and_who_is_missing() -> None:
    run = SearchRun(
        "m", "focus", 1, 400, 5, 3, 9, "focus", 9.0, 8.0, 7.5, 1.0, 1.5, 2.0, 1.0,
        cpu_limit_s=60.0, moments=(Moment(0.5, 8.5, 4), Moment(7.0, 8.0, 5)),
    )  # fmt: skip
    other = replace(run, seed=1, cost_after_us=8.4, moments=(Moment(0.5, 8.4, 4),))
    plain = replace(run, search="saturation", moments=())
    cheaper = replace(plain, k_multi=2, cost_after_us=7.9, node_limit=400)
    smaller = replace(plain, node_limit=100, cost_after_us=8.8)
    tables = {t.name: t for t in tables_of([plain, cheaper, smaller, run, other])}
    assert [column.title for column in tables["seconds"].columns[2:]] == [
        "saturation, 400",
        "focus, 400",
    ]
    assert tables["seconds"].rows == (
        ("m", "5", "7.9 to 8.0 (2)", "8.4 to 8.5"),
        ("m", "20", "7.9 to 8.0 (2)", "8.0 to 8.4"),
        ("m", "60", "7.9 to 8.0 (2)", "8.0 to 8.4"),
    )
    assert tables["limits"].rows == (
        ("m", 100, "8.8 (1)", None),
        ("m", 400, "7.9 to 8.0 (2)", "8.0 to 8.4"),
    )
    assert tables["best"].rows[1][:9] == ("m", "focus", 400, None, 2, 8.0, 8.4, 7.5, 7.0)
    assert len(tables["runs"].rows) == 5
    assert len(tables["moments"].rows) == 3


def test_what_is_kept_is_not_run_again_and_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="the bench extra is not installed")
    monkeypatch.setattr(search_command, "RESULTS", tmp_path / "results")
    argv = ["search", "vgg19", "--searches", "saturation,backtracking", "--k", "1,2"]
    argv += [
        "--node-limits",
        "300",
        "--time-limit",
        "0.2",
        "--out",
        str(tmp_path / "runs"),
        "--save",
    ]
    assert main(argv) == 0
    first = capsys.readouterr()
    assert main(argv) == 0
    again = capsys.readouterr()
    assert first.out == again.out
    assert "3 of 3 cells kept from before" in again.err
    (folder,) = (tmp_path / "results").glob("search-*-shipped-runs")
    assert (folder / "moments.png").read_bytes().startswith(b"\x89PNG")
    text = (folder / "search.md").read_text(encoding="utf-8")
    assert "3 of 3 runs are here" in text
    assert json.loads((folder / "runs.json").read_text())["settings"]["node_limits"] == "300"
    assert main([*argv, "--total-limit", "0", "--out", str(tmp_path / "none")]) == 0
    assert "3 of 3 runs are missing" in capsys.readouterr().err
