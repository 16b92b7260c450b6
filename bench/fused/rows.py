"""A row of functions and reductions as one kernel in C, beside onnxruntime on the same processor.

The row is the normalized transformer's step: rms(x + alpha (rms(h) + x)), thirteen operators of ONNX.
onnxruntime runs these, optimized by its defaults, and a file whose norms are its own fused ones. Each
has one thread; times are of the thread, in turn.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from relational_tensat import Options, kernels, optimize

SIZES = ((1024, 4096), (256, 1024), (16, 4096))
HEADER = (
    "rows x columns", "C ms", "operators ms", "fused norms ms", "by operators", "by fused norms",
    "largest error",
)  # fmt: skip
#: A processor without a cache, on which one kernel is the cheapest at any size.
_MEMORY = "peak_flops_per_s = 100e9\nbandwidth_bytes_per_s = 12e9\nlaunch_us = 0.3\n"
_EPSILON = 1e-6
_INPUTS = ("h", "x", "alpha")


@dataclass(frozen=True, slots=True)
class RowRun:
    """A row at one size; medians of thread time, in ms.

    Attributes:
        c_ms: the kernel.
        operators_ms, norms_ms: onnxruntime, on operators and with its fused norms.
        largest_error: of the kernel, by the largest element.
        load: processes that wanted the processors of the machine in the last minute.
    """

    rows: int
    columns: int
    c_ms: float
    operators_ms: float
    norms_ms: float
    largest_error: float
    heats: int
    load: float


def run_row(rows: int, columns: int, heats: int) -> RowRun:
    """Fuse the row, load its kernel, and time it in turn with onnxruntime.

    Raises:
        MissingDependencyError: there is no C compiler.
    """
    draw = np.random.default_rng(0).standard_normal
    feeds = {name: draw((rows, columns)).astype(np.float32) for name in _INPUTS}
    plain, norms = (row_model(rows, columns, has_norms=fused) for fused in (False, True))
    with tempfile.TemporaryDirectory() as folder:
        call = _kernel(plain, Path(folder), feeds)
    one, other = one_thread_session(plain), one_thread_session(norms)
    expected = one.run(None, feeds)[0]
    error = float(np.abs(call() - expected).max() / np.abs(expected).max())
    times: dict[str, list[float]] = {"c": [], "operators": [], "norms": []}
    for _ in range(heats):
        times["c"].append(_time_ms(call))
        times["operators"].append(_time_ms(lambda: one.run(None, feeds)))
        times["norms"].append(_time_ms(lambda: other.run(None, feeds)))
    medians = {f"{name}_ms": statistics.median(values) for name, values in times.items()}
    load = os.getloadavg()[0]
    return RowRun(rows, columns, largest_error=error, heats=heats, load=load, **medians)


def row_model(rows: int, columns: int, *, has_norms: bool) -> onnx.ModelProto:
    """Return the step as ONNX: of plain operators, or with onnxruntime's own norms."""
    node = helper.make_node
    norm = _fused_norm if has_norms else _plain_norm
    nodes = [
        *norm("h", "normed"),
        node("Add", ["normed", "x"], ["sum"]),
        node("Mul", ["alpha", "sum"], ["moved"]),
        node("Add", ["moved", "x"], ["step"]),
        *norm("step", "y"),
    ]
    constants = {
        "axes": np.array([-1], np.int64),
        "epsilon": np.array(_EPSILON, np.float32),
        "ones": np.ones(columns, np.float32),
    }
    used = {name for one in nodes for name in one.input}
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [rows, columns]) for n in _INPUTS]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, columns])
    weights = [numpy_helper.from_array(v, n) for n, v in constants.items() if n in used]
    graph = helper.make_graph(nodes, "row", given, [output], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _plain_norm(x: str, y: str) -> list[onnx.NodeProto]:
    node = helper.make_node
    return [
        node("Mul", [x, x], [f"{y}_square"]),
        node("ReduceMean", [f"{y}_square", "axes"], [f"{y}_mean"], keepdims=1),
        node("Add", [f"{y}_mean", "epsilon"], [f"{y}_shifted"]),
        node("Sqrt", [f"{y}_shifted"], [f"{y}_root"]),
        node("Div", [x, f"{y}_root"], [y]),
    ]


def _fused_norm(x: str, y: str) -> list[onnx.NodeProto]:
    attrs = {"axis": -1, "epsilon": _EPSILON, "stash_type": 1}
    return [helper.make_node("SimplifiedLayerNormalization", [x, "ones"], [y], **attrs)]


def _kernel(
    model: onnx.ModelProto, folder: Path, feeds: dict[str, np.ndarray[Any, Any]]
) -> Callable[[], np.ndarray[Any, Any]]:
    """Return a call of the kernel that the whole model becomes."""
    onnx.save(model, folder / "row.onnx")
    (folder / "memory.toml").write_text(_MEMORY)
    cost = f"analytic:{folder / 'memory.toml'}"
    options = Options.of(cost=cost, fuse=True, kernels=folder / "kernels")
    optimize(folder / "row.onnx", options, output=folder / "fused.onnx")
    fused = onnx.load(folder / "fused.onnx").graph
    (call,) = [node for node in fused.node if node.op_type.startswith("fused_")]
    values = {**feeds, **{w.name: numpy_helper.to_array(w) for w in fused.initializer}}
    for node in fused.node:
        if node.op_type == "Constant":
            values[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    function = kernels.load(folder / "kernels")[call.op_type.removeprefix("fused_")]
    operands = [values[name] for name in call.input]
    return lambda: function(*operands)


def one_thread_session(model: onnx.ModelProto) -> Any:
    """Return a session of onnxruntime on one thread of the CPU."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _time_ms(call: Callable[[], object]) -> float:
    started_s = time.thread_time()
    call()
    return 1e3 * (time.thread_time() - started_s)


def cells(run: RowRun) -> list[str]:
    """Return a row of the table."""
    return [
        f"{run.rows} x {run.columns}", f"{run.c_ms:.3f}", f"{run.operators_ms:.3f}",
        f"{run.norms_ms:.3f}", f"{run.operators_ms / run.c_ms:.1f}x",
        f"{run.norms_ms / run.c_ms:.1f}x", f"{run.largest_error:.1e}",
    ]  # fmt: skip
