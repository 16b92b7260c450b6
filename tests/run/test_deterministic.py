"""Where no clock decides, a result is the same however fast it is found, and whether it is kept or not."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path

import pytest

from relational_tensat import Options, UsageError, optimize
from relational_tensat.base import deadline
from relational_tensat.base.deadline import now_s, standing_clock, wall_limit_s
from relational_tensat.base.watch import Watch

INPUTS = Path(__file__).resolve().parents[2] / "bench" / "inputs"


def test_a_standing_clock_meets_no_limit() -> None:
    with standing_clock():
        assert not Watch(1e-9).is_over and now_s() == now_s()
        assert wall_limit_s(3.0) == float("inf")
    assert Watch(0.0).is_over and wall_limit_s(3.0) == 3.0


def test_neither_the_clock_nor_a_database_changes_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that runs away, every limit of seconds is met at once; of a database, none is read."""
    model, options = INPUTS / "encoder_block.onnx", Options.of(deterministic=True, verify_runs=1)
    results = [optimize(model, options, output=tmp_path / "first.onnx")]
    ticks = itertools.count(0, 100)
    monkeypatch.setattr(deadline, "_clock", lambda: float(next(ticks)))
    kept = options.replace(db=tmp_path / "run.duckdb")
    results.append(optimize(model, kept, output=tmp_path / "second.onnx"))
    assert (tmp_path / "first.onnx").read_bytes() == (tmp_path / "second.onnx").read_bytes()
    first, second = ((r.e_nodes, r.e_classes, r.cost_after_us, r.rules_used) for r in results)
    assert first == second
    assert results[0].stop_reason == "saturated"
    sent = pickle.loads(pickle.dumps((options, results[0])))
    assert sent[0] == options and sent[1].to_json() == results[0].to_json()


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"effort": "high"}, "--effort high"),
        ({"budget_s": 3.0}, "--budget"),
        ({"cost": "cpu:threads=2"}, "--cost cpu"),
        ({"time_limit_s": 3.0}, "--time-limit"),
        ({"this_machine": True}, "--this-machine"),
    ],
)
def test_what_goes_by_a_clock_is_refused(options: dict[str, object], flag: str) -> None:
    with pytest.raises(UsageError, match=f"--deterministic and {flag}, expected one of the two"):
        optimize(INPUTS / "nasrnn.json", Options.of(deterministic=True, **options))
