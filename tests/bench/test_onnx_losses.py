from __future__ import annotations

import pytest

from bench.onnx.counts import Counted, Figures
from bench.onnx.losses import losses
from bench.onnx.tools import ONNXSIM
from tests.bench.onnx_bench_tools import counted, run_with

THEIRS = counted(3, 30.0, conv=1, relu=2)


@pytest.mark.parametrize(
    "ours",
    [counted(3, 30.0, conv=3), counted(2, 29.0, conv=2), counted(3, 30.0 * (1 + 1e-12), conv=3)],
    ids=["equal", "better", "rounding"],
)
def test_what_is_no_worse_is_no_loss(ours: Counted) -> None:
    assert losses([run_with(ours, THEIRS)], ONNXSIM) == []


def test_more_nodes_are_a_loss_in_both_ways_and_named() -> None:
    written, fused = losses([run_with(counted(4, 20.0, conv=2, add=2), THEIRS)], ONNXSIM)
    assert written == (
        "tiny, as written: 4 nodes and 20.00 µs here, 3 and 30.00 by onnxsim; "
        "more here: 2 add, 1 conv; fewer here: 2 relu"
    )
    assert fused.startswith("tiny, fused: 4 nodes")


def test_a_higher_cost_is_a_loss() -> None:
    assert len(losses([run_with(counted(2, 30.01, conv=2), THEIRS)], ONNXSIM)) == 2


def test_each_way_of_counting_is_judged_by_itself() -> None:
    ours = Counted(Figures(4, 20.0, {"conv": 4}), Figures(2, 20.0, {"conv": 2}))
    (line,) = losses([run_with(ours, THEIRS)], ONNXSIM)
    assert line.startswith("tiny, as written")


def test_nothing_is_lost_to_a_tool_that_did_not_run() -> None:
    assert losses([run_with(counted(9, 90.0), None)], ONNXSIM) == []
