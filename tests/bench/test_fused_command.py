"""``python -m bench fused`` on one block, and on a small row."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from bench.__main__ import main
from bench.exports.models import Made
from bench.fused import command, exports, rows
from relational_tensat.cost.race import Standing
from tests.with_compilers import needs_c


@pytest.mark.nightly
def test_a_block_with_chains_only_is_cheaper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fused", "gated_mlp", "--time-limit", "0"]) == 0
    _, row = capsys.readouterr().out.splitlines()
    cells = row.split(" | ")
    assert cells[0] == "gated_mlp"
    assert cells[1].endswith(" (time)")
    before_us, without_us, fused_us = map(float, cells[5:8])
    assert before_us > without_us > fused_us


def test_an_unknown_block_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fused", "gated_mpl"]) == 2
    assert "did you mean 'gated_mlp'" in capsys.readouterr().err


@needs_c
def test_a_row_is_one_kernel_and_right(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "SIZES", ((8, 64),))
    assert main(["fused", "--rows", "--heats", "1"]) == 0
    _, row = capsys.readouterr().out.splitlines()
    assert float(row.split(" | ")[-1]) < 1e-6


def test_both_models_of_the_row_compute_the_same() -> None:
    draw = np.random.default_rng(0).standard_normal
    feeds = {name: draw((4, 16)).astype(np.float32) for name in ("h", "x", "alpha")}
    results = []
    for has_norms in (False, True):
        model = rows.row_model(4, 16, has_norms=has_norms).SerializeToString()
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        results.append(session.run(None, feeds)[0])
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-6)


def test_a_table_of_exports_says_who_is_behind_and_what_failed() -> None:
    fast, slow = Standing(1.4, 1.35, 1.45, 5), Standing(1.1, 1.05, 1.15, 5)
    part = {
        "operators": ("add", "gelu"),
        "places": 3,
        "kernel_us": 2.0,
        "plain_us": 6.0,
        "reason": "",
    }
    left = {**part, "kernel_us": None, "reason": "a larger part's kernel saves more"}
    row = exports.ExportRow(
        "one", 1, 2.5, {exports.OURS: slow, exports.OPENVINO: fast}, 2, (part, left),
        3.0, 9.0, 4.0, 2.0, 6.0, 3.0, 0.5, {exports.KERNELS: "no compiler"},
    )  # fmt: skip
    other = replace(row, name="other", standings={exports.KERNELS: fast, exports.OPENVINO: slow})
    lines = exports.summary([row, other])
    assert "behind OpenVINO beyond the noise: one" in lines
    assert "one, with kernels: no compiler" in lines
    assert f"OpenVINO: geometric mean {math.sqrt(1.4 * 1.1):.3f} of 2" in lines
    assert len(exports.cells(row)) == len(exports.HEADER)
    assert exports.cells(row)[3] == "1.100 (1.050 to 1.150)" and exports.cells(row)[4] == ""
    assert exports.parts_table([row])[2:] == ["| one | add gelu | 3 | 2.0 | 6.0 |"]


def test_exports_go_on_where_they_were_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is written as soon as it is timed, and none is timed twice in a setting."""
    standing, timed = Standing(1.4, 1.35, 1.45, 5), []

    def run_export(made: Made, threads: int, heats: int, limit_s: float) -> exports.ExportRow:
        timed.append((made.name, threads))
        if len(timed) == 2:
            raise KeyboardInterrupt
        numbers = (3.0, 9.0, 4.0, 2.0, 6.0, 3.0, 0.5)
        return exports.ExportRow(made.name, threads, 2.5, {exports.OURS: standing}, 2, (), *numbers)

    monkeypatch.setattr(exports, "run_export", run_export)
    monkeypatch.setattr(command, "make_all", lambda names, *_: [Made(names[0], tmp_path / "x")])
    line = ["fused", "--exports", "swin_t", "levit", "--threads", "1", "2", "--heats", "3"]
    line += ["--kept", str(tmp_path / "rows.jsonl")]
    with pytest.raises(KeyboardInterrupt):
        main(line)
    assert main(line) == 0
    names = ["swin_t-legacy", "levit-legacy"]
    assert timed[2:] == [("swin_t-legacy", 2), ("levit-legacy", 1), ("levit-legacy", 2)]
    _, *rows_of = capsys.readouterr().out.split("ours: geometric")[0].strip().splitlines()
    shown = [tuple(row.split(" | ")[:2]) for row in rows_of if " | " in row][-4:]
    assert shown == [(name, str(threads)) for name in names for threads in (1, 2)]
    assert main([*line, "--minutes", "0", "--heats", "4"]) == 0 and len(timed) == 5
    assert main([*line[:2], "swin_t", "--of", "held-out"]) == 2


def test_an_export_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fused", "--exports", "nothing of that name"]) == 2
    assert "no export has 'nothing of that name' in its name" in capsys.readouterr().err
