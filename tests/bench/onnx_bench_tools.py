"""A tiny ONNX file for the tests of ``python -m bench onnx``, and runs with given figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from bench.onnx.counts import Counted, Figures
from bench.onnx.measure import OnnxRun, ToolRun
from bench.onnx.tools import ONNXSIM
from tests.formats.onnx_tools import constant, model, tensor


def write_tiny(path: Path) -> Path:
    """Write relu(x·(u·v) + b): three nodes at inference, u·v is a constant."""
    generator = np.random.default_rng(0)

    def draw(name: str, *shape: int) -> onnx.TensorProto:
        return constant(name, generator.standard_normal(shape), np.float32)

    onnx.save(
        model(
            [
                helper.make_node("MatMul", ["u", "v"], ["a"]),
                helper.make_node("MatMul", ["x", "a"], ["p"]),
                helper.make_node("Add", ["p", "b"], ["s"]),
                helper.make_node("Relu", ["s"], ["y"]),
            ],
            [tensor("x", [6, 4])],
            [tensor("y", [6, 5])],
            [draw("u", 4, 6), draw("v", 6, 5), draw("b", 5)],
        ),
        path,
    )
    return path


def counted(nodes: int, cost_us: float, **ops: int) -> Counted:
    """Return the same figures in both ways of counting."""
    figures = Figures(nodes, cost_us, ops)
    return Counted(figures, figures)


def run_with(ours: Counted, onnxsim: Counted | None) -> OnnxRun:
    """Return a run in which onnxsim left ``onnxsim``; None: it is not installed."""
    return OnnxRun(
        model="tiny",
        before=counted(9, 90.0, relu=9),
        ours=ours,
        seconds={"load": 0.1, "explore": 0.5, "extract": 0.25, "verify": 0.125, "total": 1.0},
        e_nodes=12,
        stop_reason="saturated",
        optimal=True,
        gap=0.0,
        rules_used={"a-rule": 3, "another-rule": 1},
        comparisons=5,
        steps=3,
        worst_error=1e-7,
        tools={} if onnxsim is None else {ONNXSIM: ToolRun(0.5, onnxsim.written.nodes, onnxsim)},
    )
