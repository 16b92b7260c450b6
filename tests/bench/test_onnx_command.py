from __future__ import annotations

import io
import json
from datetime import date
from pathlib import Path

import pytest
from rich.console import Console

from bench.__main__ import main
from bench.onnx import command as onnx_command
from bench.onnx import measure as onnx_measure
from bench.onnx.model_files import BLOCKS, LIGHT, model_files
from bench.onnx.report import print_runs
from bench.onnx.tools import ONNXSIM, ORT_BASIC, ORT_EXTENDED, is_installed
from tests.bench.onnx_bench_tools import counted, run_with, write_tiny


def printed(run: onnx_measure.OnnxRun) -> str:
    console = Console(file=io.StringIO(), width=1000, highlight=False, markup=False)
    print_runs([run], "t4", console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_file_is_optimized_beside_the_others_and_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(onnx_command, "RESULTS", tmp_path / "results")
    path = write_tiny(tmp_path / "tiny.onnx")
    assert main(["onnx", str(path), "--save", "--cost", "a100"]) == 0
    out = capsys.readouterr().out
    assert "in µs under a100" in out
    nothing_lost = f"on no model more nodes or a higher cost than what {ONNXSIM} leaves"
    assert (nothing_lost in out) == is_installed(ONNXSIM)
    (saved,) = (tmp_path / "results").iterdir()
    assert saved.name == f"onnx-{date.today().isoformat()}-a100.json"
    document = json.loads(saved.read_text())
    assert {"date", "commit", "machine", "versions", "settings", "runs"} == set(document)
    assert document["settings"]["cost"] == "a100"
    assert document["versions"]["onnxruntime"] is not None
    (run,) = document["runs"]
    assert run["model"] == "tiny"
    assert run["before"]["written"]["nodes"] == 3
    assert run["ours"]["written"]["ops"] == {"matmul": 1, "relu": 1}
    assert run["ours"]["fused"]["ops"] == {"matmul": 1}
    assert any(name.startswith("activation-into-product") for name in run["rules_used"])
    assert run["comparisons"] > 0
    assert {ORT_BASIC, ORT_EXTENDED} <= set(run["tools"])
    assert run["tools"][ORT_EXTENDED]["counted"] is None
    assert run["tools"][ORT_BASIC]["counted"]["written"]["nodes"] <= 3


def test_without_onnxsim_a_line_says_so() -> None:
    text = printed(run_with(counted(2, 20.0, conv=2), None))
    assert "onnxsim is not installed, nothing is compared with it" in text
    assert "on no model" not in text


def test_being_behind_is_exit_code_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    behind = run_with(counted(4, 20.0, conv=4), counted(3, 30.0, conv=3))
    monkeypatch.setattr(onnx_measure, "measure_model", lambda *_: behind)
    assert main(["onnx", str(tmp_path / "any.onnx")]) == 4
    out = capsys.readouterr().out
    assert "behind onnxsim: tiny, as written: 4 nodes" in out
    assert "on no model" not in out


def test_tables_have_every_figure() -> None:
    text = printed(run_with(counted(2, 20.0, conv=2), counted(3, 30.0, conv=3)))
    nodes_and_costs = ["tiny", "9", "2", "3", "-", "90.00", "20.00", "30.00", "-"]
    seconds = ["tiny", "0.50", "0.25", "0.12", "1.00", "0.50", "-", "-", "-"]
    rows = [line.split() for line in text.splitlines() if line.startswith("tiny")]
    assert rows[:3] == [nodes_and_costs, nodes_and_costs, seconds]
    assert "optimal" in rows[3]
    assert "a-rule 3, another-rule 1" in text


def test_all_models_have_a_file() -> None:
    files = model_files([])
    assert list(files) == [*BLOCKS, *LIGHT]
    assert len(LIGHT) == 9
    assert all(path.is_file() for path in files.values())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["vit_blok"], 2, "did you mean 'vit_block'?"),
        (["missing.onnx"], 3, "missing.onnx: no such file"),
        (["gated_mlp", "--cost", "t5"], 2, "did you mean 't4'?"),
        (["gated_mlp", "--extract-time-limit", "-1"], 2, "seconds"),
    ],
)
def test_values_that_do_not_exist_are_refused(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["onnx", *arguments]) == code
    assert message in capsys.readouterr().err
