"""``run --fuse`` beside other options: resumed, in a database, as JSON, with dynamic dimensions, …."""

from __future__ import annotations

import errno
import json
import signal
from pathlib import Path

import pytest

from bench.models.builder import GraphBuilder
from relational_tensat import Options, optimize, resume
from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.cli.main import main
from relational_tensat.formats import load_model, save_model
from relational_tensat.mugraph.fusion import kernel_files, kernel_fusion
from relational_tensat.mugraph.fusion.own_kernel import RegionReport
from relational_tensat.run.progress import Silent
from relational_tensat.tensor import Graph


def gated(rows: int = 8) -> Graph:
    """silu(x·A) times x·B, and a chain after it: one region, whose smaller ones are chains and products."""
    b = GraphBuilder("gated")
    x = b.input("x", rows, 4)
    gate = b.op("matmul", x, b.weight("a", 4, 8))
    silu = b.op("mul", gate, b.op("sigmoid", gate))
    return b.build(b.op("tanh", b.op("relu", b.op("softmax", silu, axis=1))))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_model(gated(), tmp_path / "gated.onnx")
    return tmp_path / "gated.onnx"


def options(**more: object) -> Options:
    limits = {"iterations": 3, "search": "saturation", "verify_runs": 1}
    return Options.of(cost="t4", fuse=True, fuse_operators=3, **limits, **more)


class KilledError(BaseException):
    """Ends a run where it is."""


class Dies(Silent):
    """Progress that ends the run when a phase begins."""

    def __init__(self, phase: str) -> None:
        self.last = phase

    def phase(self, name: str) -> None:
        if name == self.last:
            raise KilledError


def test_a_run_that_was_killed_is_resumed_to_the_same_kernels(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = optimize(model, options())
    keys = {str(node.attrs["mugraph"]) for node in whole.graph.nodes if node.op == "fused"}
    assert keys
    for phase in ("fuse", "extract"):
        db, folder = tmp_path / f"{phase}.duckdb", tmp_path / phase
        with pytest.raises(KilledError):
            optimize(model, options(db=db, kernels=folder), progress=Dies(phase))
        with monkeypatch.context() as patch:
            if phase == "extract":
                patch.setattr(kernel_fusion, "own_kernels", None)  # none is sought again
            resumed = resume(db, output=tmp_path / "out.onnx", kernels=folder)
        assert resumed.cost_after_us == whole.cost_after_us
        assert resumed.graph.count_ops() == whole.graph.count_ops()
        assert set(json.loads((folder / "kernels.json").read_text())["kernels"]) == keys


def test_questions_are_answered_from_the_database(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = str(tmp_path / "run.duckdb")
    arguments = ["--for", "t4", "--fuse", "--set", "fuse-operators=3", "--iterations", "3"]
    output = ["-o", str(tmp_path / "out.onnx")]
    assert main(["run", str(model), *arguments, "--db", db, *output, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["cost_after_us"] < report["cost_before_us"]
    assert report["seconds"]["fuse"] > 0
    kernels = report["fusion"]["used"]
    assert all(len(kernel["operators"]) > 1 for kernel in kernels)
    rule = f"fused-{kernels[0]['mugraph']}"
    assert main(["sql", db, "SELECT count(*) FROM fused_kernel WHERE cost_us > 5"]) == 0
    capsys.readouterr()
    assert main(["kernels", "regions", db, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["left_out"]
    assert all(bool(row["mugraph"]) == (row["fate"] == "kernel") for row in rows)
    assert {"kernel", "left out", "border"} <= {row["fate"] for row in rows}
    assert any("3 at most (--set fuse-operators=N)" in row["reason"] for row in rows)
    assert all(row["reason"] for row in rows if row["fate"] != "kernel")
    assert main(["kernels", "regions", db]) == 0
    assert rows[0]["mugraph"] in capsys.readouterr().out
    found = "SELECT mugraph FROM kernel_term WHERE op = 'matmul' ORDER BY 1 LIMIT 1"
    capsys.readouterr()
    assert main(["sql", db, found, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert main(["kernels", "show", row["mugraph"], "--db", db, "--sql"]) == 0
    assert f"WHERE mugraph = '{row['mugraph']}'" in capsys.readouterr().out
    assert main(["explain", db, "--check"]) == 0
    assert "checked: every step is what its rule says" in capsys.readouterr().out
    assert main(["explain", db, "--why-not", rule]) == 0
    page = tmp_path / "page.html"
    assert main(["view", db, "-o", str(page)]) == 0
    assert rule in page.read_text()


def test_what_was_sought_is_reported(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "--for",
        "t4",
        "--fuse",
        "--set",
        "fuse-operators=3",
        "--iterations",
        "1",
        "--json-events",
    ]
    assert main(["run", str(model), "-o", str(tmp_path / "out.onnx"), *arguments]) == 0
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    regions = [event for event in events if event["event"] == "region"]
    assert [event["place"] for event in regions] == list(range(1, len(regions) + 1))
    assert any(event["kernel_us"] for event in regions)
    assert any("matmul" in event["operators"] for event in regions)


def test_where_nothing_fuses_nothing_changes(tmp_path: Path) -> None:
    b = GraphBuilder("one")
    graph = b.build(b.op("relu", b.input("x", 4, 4)))
    save_model(graph, tmp_path / "one.onnx")
    result = optimize(
        tmp_path / "one.onnx", options(kernels=tmp_path / "none"), output=tmp_path / "out.onnx"
    )
    assert result.unchanged
    assert f"kernels in {tmp_path / 'none'}: 0" in result.notes
    assert json.loads((tmp_path / "none" / "kernels.json").read_text())["kernels"] == {}


def test_ctrl_c_keeps_the_kernels_found_so_far(model: Path) -> None:
    class Presses(Silent):
        def region(self, report: RegionReport) -> None:
            if report.place == 1:
                signal.raise_signal(signal.SIGINT)

    result = optimize(model, options(), progress=Presses())
    assert any("Ctrl-C ended the search of kernels after" in note for note in result.notes)
    assert any(node.op == "fused" for node in result.graph.nodes)
    assert result.stop_reason != "interrupted"


def test_other_options_that_it_does_not_go_with_are_refused(tmp_path: Path) -> None:
    from tests.formats.dynamic.models import mlp, saved

    dynamic = saved(mlp(), tmp_path)
    with pytest.raises(UsageError, match="dynamic dimensions: give --static"):
        optimize(dynamic, options(dims={}), output=tmp_path / "out.onnx")
    here = Options.of(fuse=True, effort="low", kernels=tmp_path / "kernels")
    with pytest.raises(UsageError, match="--kernels makes kernels for fixed sizes"):
        optimize(dynamic, here, output=tmp_path / "out.onnx")
    with pytest.raises(UsageError, match="--fuse goes without --backend"):
        optimize(gated(), options(backend="onnxruntime"))


def test_a_folder_that_cannot_be_is_refused_at_once(model: Path, tmp_path: Path) -> None:
    for folder in (model, model / "kernels"):
        with pytest.raises(UsageError, match=r"gated\.onnx:? is a file, expected a folder"):
            optimize(model, options(kernels=folder), output=tmp_path / "out.onnx")


def test_a_folder_that_is_full_has_nothing_of_it(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(kernel_files, "save_mugraph", full)
    folder = tmp_path / "kernels"
    with pytest.raises(InputError, match=r"kernels\.json: cannot be written: No space left"):
        optimize(model, options(kernels=folder), output=tmp_path / "out.onnx")
    assert list(folder.iterdir()) == []
    assert load_model(model).name
