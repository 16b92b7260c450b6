"""The ledger: what became of a model last is its row, whatever figures that has."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from relational_tensat.fleet import FleetRow, Ledger

_ROW = FleetRow("a/m.onnx", "digest", "options", "1.0", "changed", attempts=1, report="{}")


def test_a_row_comes_back_as_it_was(tmp_path: Path) -> None:
    row = replace(
        _ROW,
        speedup=1.0 / 3.0,
        low=0.0,
        high=math.inf,
        nodes_before=7,
        rules=(("b", 1), ("c", 2)),
        savings=(("b", 0.1), ("c", -1e-300)),
    )
    with Ledger(tmp_path).write() as ledger:
        ledger.keep([row])
        assert ledger.rows() == [row]
    assert Ledger(tmp_path).rows() == [row]


def test_the_last_row_of_a_model_is_its_row(tmp_path: Path) -> None:
    last = replace(_ROW, attempts=3, state="refused", reason="no", report=None)
    other = replace(_ROW, model="b.onnx")
    with Ledger(tmp_path).write() as ledger:
        for row in (replace(_ROW, rules=(("b", 1),), savings=(("b", 2.0),)), other, last):
            ledger.keep([row])
    assert Ledger(tmp_path).rows() == [last, other]
