"""``python -m bench fused`` on one block, and on a small row."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from bench.__main__ import main
from bench.fused import rows
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
