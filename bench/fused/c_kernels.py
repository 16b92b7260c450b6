"""Kernels as C beside what they replace: a runtime's nodes, and one pass over their operands and results.

Each model becomes one kernel. Times are of one thread's CPU, in turn, of arrays that stay where they are.
OpenVINO has a thread of its own: where it is installed, times are wall times. Of a runtime's, those of one
small node are taken off.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from bench.fused.rows import one_thread_session
from relational_tensat.base.watch import Watch
from relational_tensat.cost.analytic import AnalyticSource
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.formats.onnx_read import read_onnx
from relational_tensat.mugraph.fusion.candidates import chain_candidates, region_candidates
from relational_tensat.mugraph.fusion.kernel_builder import KernelBuilder
from relational_tensat.mugraph.fusion.own_kernel import KernelCosts, PlainCosts
from relational_tensat.mugraph.fusion.savings import SavingsModel
from relational_tensat.mugraph.graph.dims import count
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernel_finder import KernelSearcher, SearchEffort
from relational_tensat.mugraph.kernels.emit_c import CKernel, compile_c, compiled_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions

HEADER = (
    "kernel",
    "MB",
    "C µs",
    "onnxruntime µs",
    "OpenVINO µs",
    "pass µs",
    "by onnxruntime",
    "of a pass",
    "error",
)
_HAS_OPENVINO = find_spec("openvino") is not None
_CLOCK = time.perf_counter if _HAS_OPENVINO else time.thread_time
_SAMPLE_S = 4e-4
_MOST_OPERATORS = 40

Array = np.ndarray[Any, Any]
Model = Callable[[], onnx.ModelProto]


@dataclass(frozen=True, slots=True)
class CRow:
    """A kernel; lower quartiles in µs.

    Attributes:
        megabytes: of operands and results.
        c_us, onnxruntime_us, openvino_us, pass_us: the kernel; the model's nodes in each runtime, NaN where
            it is not installed; a copy of as many bytes.
        error: the largest, by the largest element of a result.
        load: processes that wanted the processors of the machine in the last minute.
    """

    name: str
    megabytes: float
    c_us: float
    onnxruntime_us: float
    openvino_us: float
    pass_us: float
    error: float
    load: float


def _model(
    nodes: Sequence[onnx.NodeProto], given: Mapping[str, Sequence[int]], outputs: Sequence[str],
    weights: Mapping[str, Any],
) -> onnx.ModelProto:  # fmt: skip
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in given.items()]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    constants = [numpy_helper.from_array(np.asarray(v), n) for n, v in weights.items()]
    graph = helper.make_graph(list(nodes), "kernel", inputs, results, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model)


_node = helper.make_node


def _norm(x: str, y: str) -> onnx.NodeProto:
    return _node("LayerNormalization", [x, "gain", "shift"], [y], axis=-1, epsilon=1e-5)


def _residual_norm() -> onnx.ModelProto:
    rows, width = 197, 192
    nodes = [_node("Add", ["x", "y"], ["sum"]), _norm("sum", "z")]
    given = {"x": [rows, width], "y": [rows, width], "gain": [width], "shift": [width]}
    return _model(nodes, given, ["sum", "z"], {})


def _gelu_add() -> onnx.ModelProto:
    nodes = [_node("Add", ["x", "b"], ["sum"]), _node("Gelu", ["sum"], ["z"])]
    return _model(nodes, {"x": [197, 768], "b": [768]}, ["z"], {})


def _rotary() -> onnx.ModelProto:
    nodes = [
        _node("Slice", ["x", "zero", "half", "axis"], ["low"]),
        _node("Slice", ["x", "half", "end", "axis"], ["high"]),
        _node("Neg", ["high"], ["turned"]),
        _node("Concat", ["turned", "low"], ["other"], axis=-1),
        _node("Mul", ["x", "cos"], ["one"]),
        _node("Mul", ["other", "sin"], ["two"]),
        _node("Add", ["one", "two"], ["z"]),
    ]
    weights = {
        name: np.array([n]) for name, n in (("zero", 0), ("half", 32), ("end", 64), ("axis", 3))
    }
    given = {"x": [1, 8, 128, 64], "cos": [1, 1, 128, 64], "sin": [1, 1, 128, 64]}
    return _model(nodes, given, ["z"], weights)


def _softmax() -> onnx.ModelProto:
    nodes = [
        _node("Mul", ["x", "factor"], ["scaled"]),
        _node("Add", ["scaled", "mask"], ["masked"]),
        _node("Softmax", ["masked"], ["z"], axis=-1),
    ]
    given = {"x": [1, 12, 128, 128], "mask": [1, 1, 128, 128]}
    return _model(nodes, given, ["z"], {"factor": np.float32(0.125)})


def _gate(*, times: bool) -> onnx.ModelProto:
    nodes = [_node("Sigmoid", ["x"], ["s"]), _node("Mul", ["x", "s"], ["silu" if times else "z"])]
    if times:
        nodes.append(_node("Mul", ["silu", "y"], ["z"]))
        return _model(nodes, {"x": [64, 2816], "y": [64, 2816]}, ["z"], {})
    return _model(nodes, {"x": [1, 48, 56, 56]}, ["z"], {})


def _squeeze_excite() -> onnx.ModelProto:
    nodes = [_node("Sigmoid", ["g"], ["s"]), _node("Mul", ["x", "s"], ["z"])]
    return _model(nodes, {"x": [1, 96, 28, 28], "g": [1, 96, 1, 1]}, ["z"], {})


def _group_norm() -> onnx.ModelProto:
    """Without the gain: a region has no more operators."""
    nodes = [
        _node("Reshape", ["x", "grouped"], ["g"]),
        _node("ReduceMean", ["g", "last"], ["mean"]),
        _node("Sub", ["g", "mean"], ["centred"]),
        _node("Mul", ["centred", "centred"], ["square"]),
        _node("ReduceMean", ["square", "last"], ["variance"]),
        _node("Add", ["variance", "epsilon"], ["more"]),
        _node("Sqrt", ["more"], ["root"]),
        _node("Div", ["centred", "root"], ["unit"]),
        _node("Reshape", ["unit", "shape"], ["z"]),
    ]
    weights = {
        "grouped": np.array([1, 8, 8 * 32 * 32]), "shape": np.array([1, 64, 32, 32]),
        "last": np.array([2]), "epsilon": np.float32(1e-5),
    }  # fmt: skip
    return _model(nodes, {"x": [1, 64, 32, 32]}, ["z"], weights)


def _fold() -> onnx.ModelProto:
    """MobileViT's way back from patches."""
    width, side = 144, 32
    nodes = [
        _node("Add", ["x", "y"], ["sum"]),
        _norm("sum", "normed"),
        _node("Reshape", ["normed", "patches"], ["p"]),
        _node("Transpose", ["p"], ["t"], perm=[4, 2, 0, 3, 1]),
        _node("Reshape", ["t", "image"], ["z"]),
    ]
    half = side // 2
    weights = {
        "patches": np.array([2, 2, half, half, width]), "image": np.array([1, width, side, side]),
    }  # fmt: skip
    size = [4, half * half, width]
    return _model(nodes, {"x": size, "y": size, "gain": [width], "shift": [width]}, ["z"], weights)


def _channel_norm() -> onnx.ModelProto:
    nodes = [
        _node("Transpose", ["x"], ["t"], perm=[0, 2, 3, 1]),
        _norm("t", "n"),
        _node("Transpose", ["n"], ["z"], perm=[0, 3, 1, 2]),
    ]
    return _model(nodes, {"x": [1, 96, 28, 28], "gain": [96], "shift": [96]}, ["z"], {})


def _windows() -> onnx.ModelProto:
    """An image's windows, normalized: one transpose in."""
    nodes = [
        _node("Reshape", ["x", "parts"], ["p"]),
        _node("Transpose", ["p"], ["t"], perm=[1, 3, 2, 4, 0]),
        _norm("t", "z"),
    ]
    weights = {"parts": np.array([96, 4, 7, 4, 7])}
    return _model(nodes, {"x": [1, 96, 28, 28], "gain": [96], "shift": [96]}, ["z"], weights)


MODELS: Mapping[str, Model] = {
    "residual + norm": _residual_norm,
    "bias + GELU": _gelu_add,
    "rotary": _rotary,
    "softmax with mask": _softmax,
    "SwiGLU": lambda: _gate(times=True),
    "SiLU": lambda: _gate(times=False),
    "squeeze-excite gate": _squeeze_excite,
    "group norm": _group_norm,
    "add + norm + patches": _fold,
    "norm of channels": _channel_norm,
    "windows + norm": _windows,
}


def run_kernel(name: str, heats: int) -> CRow:
    """Fuse a model, and time its kernel in turn with onnxruntime and a copy.

    Raises:
        MissingDependencyError: there is no C compiler.
        AssertionError: the model does not become one kernel.
    """
    model = MODELS[name]()
    draw = np.random.default_rng(0).standard_normal
    feeds = {
        each.name: draw([d.dim_value for d in each.type.tensor_type.shape.dim]).astype(np.float32)
        for each in model.graph.input
    }
    with tempfile.TemporaryDirectory() as folder:
        call, results, size = _kernel(model, Path(folder), feeds)
        one_pass = _pass(size, Path(folder))
        openvino = _openvino(model, feeds, Path(folder)) if _HAS_OPENVINO else {}
    wanted = one_thread_session(model).run(None, feeds)
    call()
    errors = [
        float(np.abs(own.ravel() - want.ravel()).max() / np.abs(want).max())
        for own, want in zip(results, wanted, strict=True)
    ]
    calls = {
        "c": call, "onnxruntime": _bound(model, feeds), "nothing": _bound(*_nothing()), "pass": one_pass,
        **openvino,
    }  # fmt: skip
    times: dict[str, list[float]] = {each: [] for each in calls}
    for _ in range(heats):
        for each, function in calls.items():
            times[each].append(_time_us(function))
    us = {each: statistics.quantiles(own, n=4)[0] for each, own in times.items()}
    runtime_us = us["onnxruntime"] - us["nothing"]
    openvino_us = us["openvino"] - us["openvino nothing"] if openvino else math.nan
    own = (us["c"], runtime_us, openvino_us, us["pass"])
    return CRow(name, size / 1e6, *own, max(errors), os.getloadavg()[0])


def _kernel(
    model: onnx.ModelProto, folder: Path, feeds: Mapping[str, Array]
) -> tuple[Callable[[], None], list[Array], int]:
    """Return a call of the kernel that a model becomes, its results in the model's order, and all bytes."""
    onnx.save(model, folder / "model.onnx")
    graph = read_onnx(folder / "model.onnx", {})
    whole = [
        each
        for each in (*chain_candidates(graph), *region_candidates(graph, _MOST_OPERATORS))
        if set(each.outputs) == set(graph.outputs) and set(each.inputs) <= set(feeds)
    ]
    assert whole, f"no part of {graph.name} is all of it"
    candidate = max(whole, key=lambda each: len(each.nodes))
    modelled = PlainCosts(KernelCosts(AnalyticSource(load_profile("t4"))))
    searcher = KernelSearcher(SearchOptions(), Watch(), None)
    own = KernelBuilder(SavingsModel(modelled), searcher).make(candidate, SearchEffort(1, 0)).graph
    (step,), (function,) = own.kernels, compiled_kernels(own, folder).values()
    dims = kernel_tensors(own)
    made = {name: np.empty(count(dims[name]), np.float32) for name in step.outputs}
    named = zip(own.inputs, candidate.inputs, strict=True)
    given = {name: np.ascontiguousarray(feeds[read]) for name, read in named}
    call = function.bound([given[n] for n in step.operands], [made[n] for n in step.outputs])
    results = dict(zip(candidate.outputs, own.outputs, strict=True))
    size = sum(each.nbytes for each in (*given.values(), *made.values()))
    return call, [made[results[name]] for name in graph.outputs], size


def _bound(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Callable[[], None]:
    session = one_thread_session(model)
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for output, value in zip(session.get_outputs(), session.run(None, dict(feeds)), strict=True):
        held = onnxruntime.OrtValue.ortvalue_from_numpy(value)
        binding.bind_ortvalue_output(output.name, held)
    return lambda: session.run_with_iobinding(binding)


def _nothing() -> tuple[onnx.ModelProto, dict[str, Array]]:
    model = _model([_node("Neg", ["x"], ["z"])], {"x": [1]}, ["z"], {})
    return model, {"x": np.ones(1, np.float32)}


def _openvino(
    model: onnx.ModelProto, feeds: Mapping[str, Array], folder: Path
) -> dict[str, Callable[[], None]]:
    from relational_tensat.cost.cpu.openvino_session import OpenVinoRun

    calls: dict[str, Callable[[], None]] = {}
    for name, (each, own) in {"openvino": (model, feeds), "openvino nothing": _nothing()}.items():
        onnx.save(each, folder / f"{name}.onnx")
        calls[name] = OpenVinoRun(folder / f"{name}.onnx", own, threads=1)
    return calls


def _pass(size: int, folder: Path) -> Callable[[], None]:
    """Return what reads and writes so many bytes, a vector at a time; memcpy has steps of its own."""
    name, number = "one_pass", size // 8
    source = f"""void {name}(const float *restrict x, float *restrict y) {{
  for (long i = 0; i < {number}; ++i) y[i] = -x[i];
}}
"""
    function = compile_c(CKernel(name, source, ("x", "y")), folder)
    return function.bound([np.ones(number, np.float32)], [np.empty(number, np.float32)])


def _time_us(call: Callable[[], object]) -> float:
    call()
    runs, started_s = 0, _CLOCK()
    while (spent_s := _CLOCK() - started_s) < _SAMPLE_S:
        call()
        runs += 1
    return 1e6 * spent_s / runs


def cells(row: CRow) -> list[str]:
    """Return a row of the table."""
    return [
        row.name, f"{row.megabytes:.2f}", f"{row.c_us:.1f}", f"{row.onnxruntime_us:.1f}",
        "" if math.isnan(row.openvino_us) else f"{row.openvino_us:.1f}", f"{row.pass_us:.1f}",
        f"{row.onnxruntime_us / row.c_us:.1f}x", f"{row.c_us / row.pass_us:.2f}", f"{row.error:.1e}",
    ]  # fmt: skip
