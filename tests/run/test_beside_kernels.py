"""What an inference takes beside its kernels: a time of its own, and nodes that compute sizes."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from relational_tensat import Options, Result, optimize
from relational_tensat.cost import load_profile
from relational_tensat.run import beside_kernels
from relational_tensat.run.beside_kernels import count_size_nodes
from tests.formats.dynamic.models import attention, mlp, saved

RUN = load_profile("cpu").run


def run(
    model: onnx.ModelProto, folder: Path, cost: str = "analytic:cpu", **others: object
) -> Result:
    options = Options.of(cost=cost, iterations=2, **others)
    return optimize(saved(model, folder), options, output=folder / "out.onnx")


def test_onnxruntime_says_how_many_nodes_compute_sizes() -> None:
    """It merges Unsqueeze of equal values and folds what it can; weights need not be there for that."""
    model = attention()
    written = count_size_nodes(model, ())
    assert 5 <= written <= 9
    assert count_size_nodes(model, [f"w{name}" for name in "qkvo"] + ["tokens"]) == written
    assert count_size_nodes(mlp(), ()) == 0


def test_sizes_that_a_result_need_not_compute_are_gained(tmp_path: Path) -> None:
    result = run(attention(), tmp_path)
    assert not result.unchanged
    before, after = (
        count_size_nodes(onnx.load(tmp_path / name), ()) for name in ("m.onnx", "out.onnx")
    )
    assert after < before
    gained_us = result.run_us - result.run_after_us
    assert gained_us >= (before - after) * RUN.size_us
    assert gained_us <= (before - after) * (RUN.size_us + RUN.cold_size_us)
    report = result.to_json()
    assert (report["run_us"], report["run_after_us"]) == (result.run_us, result.run_after_us)


def test_a_run_alone_takes_the_same_before_and_after(tmp_path: Path) -> None:
    for others in ({}, {"dims": {"batch": 4}, "static": True}):
        result = run(mlp(), tmp_path, **others)
        assert result.run_us == result.run_after_us > 0
    assert run(attention(), tmp_path, "t4").run_us == 0


def test_what_onnxruntime_does_not_take_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise RuntimeError("no such\n operator")

    monkeypatch.setattr(beside_kernels, "count_size_nodes", refuse)
    result = run(attention(), tmp_path)
    assert result.run_us == result.run_after_us > 0
    expected = (
        "what computes sizes is in no time: onnxruntime does not take the graph: no such operator"
    )
    assert expected in result.notes
