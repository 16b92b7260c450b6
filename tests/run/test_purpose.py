"""``--for`` decides costs and target; what is named instead wins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from relational_tensat.base import process
from relational_tensat.base.errors import UsageError
from relational_tensat.base.process import default_threads, physical_cores
from relational_tensat.cli.main import main
from relational_tensat.run import purpose as purposes
from relational_tensat.run.options import Options
from relational_tensat.run.purpose import purpose_of

ONNX = Path("m.onnx")
BLOCK = Path(__file__).resolve().parents[2] / "bench" / "inputs" / "transformer_block.onnx"


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "physical_cores", lambda: 2)
    monkeypatch.setattr(process, "processors", lambda: 4)
    monkeypatch.setattr(purposes, "processors", lambda: 4)


def decided(model: str = "m.onnx", **options: Any) -> tuple[str | None, str | None, str]:
    """Return costs, target and the text of what a run is for."""
    purpose = purpose_of(Options.of(**options), Path(model))
    return purpose.options.costs.source, purpose.options.rules.backend, purpose.text


HERE = "onnxruntime on this CPU, 2 threads"


@pytest.mark.parametrize(
    ("model", "options", "cost", "target", "text"),
    [
        ("m.onnx", {}, "analytic:cpu:threads=2", "onnxruntime", HERE),
        ("M.ONNX", {"effort": "low"}, "analytic:cpu:threads=2", "onnxruntime", HERE),
        ("m.onnx", {"effort": "high"}, "cpu:threads=2", "onnxruntime", HERE),
        ("m.json", {}, "t4", None, "t4"),
        ("m.json", {"runs_on": "onnxruntime"}, "analytic:cpu:threads=2", "onnxruntime", HERE),
        ("m.json", {"backend": "onnxruntime"}, "analytic:cpu:threads=2", "onnxruntime", HERE),
        ("m.onnx", {"runs_on": "a100"}, "a100", None, "a100"),
        ("m.onnx", {"runs_on": "tensat_t4"}, "tensat_t4", None, "tensat_t4"),
        ("m.onnx", {"runs_on": "my.toml"}, "my.toml", None, "my.toml"),
        # names win, and what has names alone is as it was
        ("m.onnx", {"cost": "h100"}, "h100", None, ""),
        ("m.onnx", {"cost": "h100", "backend": "cuda"}, "h100", "cuda", ""),
        ("m.onnx", {"backend": "cuda"}, "t4", "cuda", "t4"),
        ("m.onnx", {"runs_on": "onnxruntime", "cost": "cpu"}, "cpu", "onnxruntime", ""),
        ("m.onnx", {"runs_on": "cuda", "cost": "h100", "backend": "cuda"}, "h100", "cuda", ""),
        # kernels of its own are no target's, but of what is written for onnxruntime
        (
            "m.onnx",
            {"fuse": True, "threads_at_inference": 1},
            "analytic:cpu",
            "onnxruntime",
            "onnxruntime on this CPU, 1 thread",
        ),
        ("m.onnx", {"fuse": True, "runs_on": "a100"}, "a100", None, "a100"),
    ],
)
def test_what_goes_with_a_place(
    model: str, options: dict[str, Any], cost: str, target: str | None, text: str
) -> None:
    assert decided(model, **options) == (cost, target, text)


def test_threads_can_be_named() -> None:
    assert decided(threads_at_inference=1) == (
        "analytic:cpu", "onnxruntime", "onnxruntime on this CPU, 1 thread",
    )  # fmt: skip
    assert decided(threads_at_inference=3)[0] == "analytic:cpu:threads=3"


def test_what_was_decided_is_decided_again_so() -> None:
    """A run that is resumed has the options of one that knew."""
    once = purpose_of(Options(), ONNX)
    again = purpose_of(once.options, ONNX)
    assert (again.options, again.text) == (once.options, once.text)


def test_without_onnxruntime_a_line_says_what_is_modelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purposes, "_has_onnxruntime", lambda: False)
    purpose = purpose_of(Options(), ONNX)
    assert (purpose.options.costs.source, purpose.options.rules.backend) == ("t4", None)
    assert "onnxruntime is not installed" in purpose.note and "pip install" in purpose.note


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"runs_on": "t5"}, "--for t5: expected onnxruntime, cuda, .*did you mean 't4'"),
        ({"runs_on": "cpu"}, "--for cpu: .*this CPU is onnxruntime"),
        ({"runs_on": "t4", "effort": "high"}, "--effort high measures kernels, but t4 is modelled"),
        ({"cost": "t4", "effort": "low"}, "--effort goes with --for"),
        ({"cost": "cpu", "threads_at_inference": 2}, "write cpu:threads=N"),
        ({"runs_on": "t4", "threads_at_inference": 2}, "goes with --for onnxruntime, not t4"),
        ({"threads_at_inference": 99}, "expected 1 to 4, the processors here"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        decided(**options)


def test_each_core_is_counted_once(tmp_path: Path) -> None:
    def block(package: int, core: int) -> str:
        return f"processor\t: 0\nphysical id\t: {package}\ncore id\t\t: {core}\nflags\t\t: fpu\n"

    info = tmp_path / "cpuinfo"
    info.write_text("\n".join([block(0, 0), block(0, 1), block(0, 0), block(0, 1), block(1, 0)]))
    assert physical_cores(info) == 3
    info.write_text("processor\t: 0\n")
    assert physical_cores(info) >= 1
    assert default_threads() == 2


def test_the_first_line_says_what_it_is_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "o.onnx")
    argv = ["run", str(BLOCK), "-o", output, "--effort", "low", "--set", "verify-runs=1"]
    assert main(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{BLOCK}, for {HERE}"
    assert lines[1].startswith(f"modelled for {HERE}, not timed here")
    assert main([*argv, "--json", "--for", "t4"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["runs_on"], report["gain"]["on"]) == ("t4", "t4")
