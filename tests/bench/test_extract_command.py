"""``python -m bench extract`` from end to end, on the smallest e-graphs of each family."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.extract import command as extract_command
from bench.extract.egraphs import Exploration, explored
from bench.extract.methods import Answer
from bench.extract.report import cell
from bench.extract.table5 import published
from bench.models import MODELS
from relational_tensat.cost import graph_cost_us, load_profile
from relational_tensat.extract import TECHNIQUES, dag_cost_us

#: The keys of an answer; nothing else may be there.
ANSWER_KEYS = [
    "method", "status", "cost", "bound", "gap", "cpu_s", "wall_s", "reduced", "dropped",
    "simplex_iterations", "branch_nodes", "note",
]  # fmt: skip
ROW_KEYS = [
    "family", "instance", "e_nodes", "e_classes", "edges", "cyclic", "optimum", "notes", "answers",
    "contradictions",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the e-graph of one model, explored once."""
    kept = tmp_path_factory.mktemp("egraphs")
    explored(Exploration("vgg19", 1), kept)
    return kept


@pytest.mark.nightly
def test_all_families_in_one_table(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(extract_command, "RESULTS", tmp_path)
    argv = ["extract", "--models", "vgg19", "--k", "1", "--egraphs", str(folder), "--jobs", "1"]
    argv += ["--gym", str(folder / "egraphs"), "--planted", "60", "--time-limit", "20", "--save"]
    argv += ["--details", "--methods", "greedy", "algorithm-2", "paper-none", "ours"]
    assert main(argv) == 0
    printed = capsys.readouterr()
    for text in (
        "vgg19 k=1",
        "shipped/vgg19-k1",
        "rings 60",
        "paper-none",
        "All e-graphs",
        "=*",
        "bound",
    ):
        assert text in printed.out
    assert "table 5" not in printed.out  # vgg19 is not in it
    (path,) = tmp_path.iterdir()
    assert path.name == f"extract-{date.today().isoformat()}-shipped.json"
    saved = json.loads(path.read_text())
    assert {
        "date",
        "commit",
        "machine",
        "versions",
        "settings",
        "load_average",
        "not_run",
        "rows",
    } == set(saved)
    for row in saved["rows"]:
        assert list(row) == ROW_KEYS
        assert row["contradictions"] == []
        assert all(list(answer) == ANSWER_KEYS for answer in row["answers"])
    # The same e-graph from the cache and as another tool's file: the same optimum.
    ours = [row["answers"][-1]["cost"] for row in saved["rows"] if row["family"] != "planted"]
    assert ours[0] == pytest.approx(ours[1])
    assert ours[0] == pytest.approx(6599.1, abs=0.05)
    for row in saved["rows"]:
        if row["optimum"] is not None:
            assert row["answers"][-1]["cost"] == pytest.approx(row["optimum"])


def test_what_comes_too_late_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["extract", "--models", "vgg19", "--k", "1", "--planted", "--egraphs", str(folder)]
    assert main([*argv, "--jobs", "1", "--budget", "1e-9"]) == 0
    printed = capsys.readouterr()
    assert "not run, the time of --budget was over: vgg19 k=1" in printed.out
    assert "vgg19 k=1: not run" in printed.err


def test_an_e_graph_is_explored_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("explored again")

    monkeypatch.setattr("bench.extract.egraphs.explore", fail)
    egraph = explored(Exploration("vgg19", 1), folder)
    assert egraph.notes["stop_reason"] == "saturated"
    assert egraph.notes["settings"]["k_multi"] == 1
    cost_us = graph_cost_us(MODELS["vgg19"](), load_profile("tensat_t4"))
    assert dag_cost_us(egraph.problem, egraph.problem.original) == pytest.approx(cost_us)
    with pytest.raises(AssertionError, match="explored again"):
        explored(Exploration("vgg19", 1, node_limit=10), folder)


def test_ablation(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(extract_command, "RESULTS", tmp_path)
    argv = ["extract", "--ablation", "--models", "vgg19", "--k", "1", "--planted", "--save"]
    assert main([*argv, "--egraphs", str(folder), "--jobs", "1", "--time-limit", "20"]) == 0
    printed = capsys.readouterr().out
    assert "ablation: vgg19 k=1" in printed
    assert "(nothing)" in printed and "landmarks" in printed
    summary = printed[printed.index("of 1 e-graphs, how many were so without") :]
    assert all(name in summary for name in TECHNIQUES)
    (path,) = tmp_path.iterdir()
    assert path.name == f"extract-ablation-{date.today().isoformat()}-shipped.json"
    saved = json.loads(path.read_text())
    (ablation,) = saved["ablations"]
    assert saved["not_run"] == []
    assert [answer["method"] for answer in ablation["answers"]] == ["all", *TECHNIQUES]
    costs = [answer["cost"] for answer in ablation["answers"]]
    assert max(costs) == pytest.approx(min(costs))


def test_an_ablation_of_other_settings_is_kept_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was not begun in time is named in what is kept."""
    monkeypatch.setattr(extract_command, "RESULTS", tmp_path)
    argv = ["extract", "--ablation", "--models", "--planted", "60", "--save", "--jobs", "1"]
    for budget in ("1e-9", "1e-9", "2e-9"):
        assert main([*argv, "--budget", budget]) == 0
    capsys.readouterr()
    name = f"extract-ablation-{date.today().isoformat()}-shipped"
    first, second = sorted(tmp_path.iterdir(), key=lambda path: len(path.name))
    assert (first.name, second.name) == (f"{name}.json", f"{name}-2.json")
    for path in (first, second):
        saved = json.loads(path.read_text())
        assert saved["ablations"] == [] and len(saved["not_run"]) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--models", "vgg91"], 2, "did you mean 'vgg19'?"),
        (["--k", "-1"], 2, "expected 0 or more"),
        (["--time-limit", "nan"], 2, "expected a number above 0"),
        (["--planted", "0"], 2, "expected a number of e-nodes"),
        (["--gym", "no-such-folder", "--models"], 3, "expected a folder with e-graph files"),
    ],
)
def test_values_that_cannot_be_are_refused(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["extract", *arguments]) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_cells() -> None:
    assert cell(None, 1.0) == cell(Answer("a", "skipped"), 1.0) == "-"
    assert cell(Answer("a", "done", cost=110.0, cpu_s=0.5), 100.0) == "+10.0% 0.50 s"
    assert cell(Answer("a", "optimal", cost=100.0, cpu_s=0.5), 100.0) == "=* 0.50 s"
    late = Answer("a", "time-out", cost=101.0, bound=99.0, gap=0.02, wall_s=10.0)
    assert cell(late, 100.0) == "+1.0% gap 2.0% t/o 10.0 s"
    assert cell(Answer("a", "no solution", wall_s=3.0), 100.0) == "none 3.0 s"
    assert cell(Answer("a", "cyclic", wall_s=3.0), 100.0) == "cyclic 3.0 s"


def test_the_published_table() -> None:
    rows = published()
    assert {model for model, _ in rows} == {"bert", "nasrnn", "nasnet_a"}
    assert rows["bert", 2].none_s == "510.3"
    assert {rows[key].real_s for key in rows if key[1] == 2} == {">3600"}
