"""Random models of motifs: valid, the same for a seed; the command goes on, and finds a wrong file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from bench.__main__ import main
from bench.motifs import trial
from bench.motifs.command import MODES
from bench.motifs.drawn import MOTIFS, drawn_sketch
from bench.motifs.sketch import as_model, feeds
from relational_tensat.base.errors import VerificationError
from relational_tensat.verify.sessions import Session, open_session
from tests.tiers import nightly


def test_models_are_valid_and_run_and_are_the_same_for_a_seed() -> None:
    met = set()
    for index in range(40):
        sketch, names = drawn_sketch(0, index)
        met |= set(names)
        model = as_model([sketch])
        assert model == as_model([drawn_sketch(0, index)[0]])
        onnx.checker.check_model(onnx.load_model_from_string(model), full_check=True)
        values = feeds([sketch], np.random.default_rng(index))
        results = open_session(model, 1, Session.AS_WRITTEN).run(None, values)
        assert any(np.isfinite(each).any() for each in results if each.dtype.kind == "f") or results
    assert met == set(MOTIFS)


def test_the_command_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[int] = []

    def tried_only(_: int, indices: range, __: Any) -> dict[str, Any]:
        tried.extend(indices)
        return {"first": indices[0], "graphs": len(indices), "motifs": ["masks"], "status": "equal"}

    monkeypatch.setattr(trial, "try_sketches", tried_only)
    keep = ["--keep", str(tmp_path / "rows.jsonl"), "--together", "2"]
    assert main(["motifs", "4", *keep]) == 0
    assert main(["motifs", "7", *keep]) == 0
    assert tried == list(range(7))
    assert "| graphs | 7 | 0 | 0 | 0 | 0 |" in (tmp_path / "rows.md").read_text()
    assert "7 graphs in 4 models, for onnxruntime" in capsys.readouterr().out
    assert main(["motifs", "2", "--fresh", *keep]) == 0
    assert tried[7:] == [0, 1]


@pytest.mark.parametrize("is_wrong", [nightly(False), True])
def test_a_wrong_file_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_wrong: bool
) -> None:
    right = trial.optimize

    def changed(source: Path, options: Any, *, output: Path) -> Any:
        result = right(source, options, output=output)
        model = onnx.load_model(output)
        first = model.graph.output[0].name
        for node in model.graph.node if is_wrong else ():
            node.output[:] = ["before_" * (name == first) + name for name in node.output]
        if is_wrong:
            last = onnx.helper.make_node("Add", [f"before_{first}"] * 2, [first])
            model.graph.node.append(last)
        output.write_bytes(model.SerializeToString())
        return result

    monkeypatch.setattr(trial, "optimize", changed)
    monkeypatch.setitem(MODES, "onnxruntime", {"only": ("drop-second-application",)})
    keep = tmp_path / "rows.jsonl"
    code = main(["motifs", "1", "--first", "1", "--keep", str(keep)])
    (row,) = map(json.loads, keep.read_text().splitlines())
    assert (code, row["status"]) == (
        (VerificationError.exit_code, "different") if is_wrong else (0, "equal")
    )
