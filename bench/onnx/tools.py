"""The optimizers that others wrote, run on one ONNX file: onnxsim's, and onnxruntime's two levels."""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import onnx
import onnxruntime

ONNXSIM, ORT_BASIC, ORT_EXTENDED = "onnxsim", "ort basic", "ort extended"
#: Where initializers need not be inputs too, as onnxruntime and onnxsim write them.
_FREE_INITIALIZERS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Optimized:
    """What a tool made of a file.

    Attributes:
        model: as the tool wrote it.
        seconds: wall seconds from the file to the optimized model.
    """

    model: onnx.ModelProto
    seconds: float


def optimized_by(tool: str, path: Path) -> Optimized:
    """Let a tool of ``TOOLS`` optimize a file, with its defaults and one thread."""
    started = time.perf_counter()
    model = TOOLS[tool](path)
    seconds = time.perf_counter() - started
    # Old files say that every initializer is an input; what the tools add is none.
    model.ir_version = max(model.ir_version, _FREE_INITIALIZERS)
    return Optimized(model, seconds)


def tool_versions() -> dict[str, str | None]:
    """Return the version of each package; None where it is not installed."""
    return {
        name: None if importlib.util.find_spec(name) is None else version(name)
        for name in ("onnx", "onnxruntime", "onnxsim")
    }


def is_installed(tool: str) -> bool:
    """Return whether a tool of ``TOOLS`` can run; onnxruntime is always there."""
    return tool != ONNXSIM or importlib.util.find_spec("onnxsim") is not None


def inference_nodes(model: onnx.ModelProto) -> int:
    """Count the nodes of a file that depend on its inputs, whatever operators they are.

    The others are constants: what a session computes once, when it is made.
    """
    constant = {"", *(tensor.name for tensor in model.graph.initializer)}
    count = 0
    for node in model.graph.node:
        if all(name in constant for name in node.input):
            constant.update(node.output)
        else:
            count += 1
    return count


def _simplify(path: Path) -> onnx.ModelProto:
    import onnxsim

    model, _ = onnxsim.simplify(str(path))
    return model


def _session(path: Path, level: onnxruntime.GraphOptimizationLevel) -> onnx.ModelProto:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = 3  # it warns that its files are for the machine that wrote them
    with tempfile.TemporaryDirectory(prefix="relational-tensat-bench-") as folder:
        written = Path(folder) / "optimized.onnx"
        options.optimized_model_filepath = str(written)
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return onnx.load(written)


def _basic(path: Path) -> onnx.ModelProto:
    return _session(path, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC)


def _extended(path: Path) -> onnx.ModelProto:
    return _session(path, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED)


#: From a file to the optimized model. "extended" writes operators of onnxruntime's own.
TOOLS: Mapping[str, Callable[[Path], onnx.ModelProto]] = {
    ONNXSIM: _simplify,
    ORT_BASIC: _basic,
    ORT_EXTENDED: _extended,
}
