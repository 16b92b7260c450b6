"""Graphs as onnxruntime runs them, and the processor that it runs them on.

They are written by this project's own ONNX writer and run on one thread or several. The processor has L2
and L3 caches of some sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from relational_tensat.formats import to_onnx_model
from relational_tensat.tensor import Array, Graph

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_L2_SIZE, _L3_SIZE = _CACHES / "index2" / "size", _CACHES / "index3" / "size"

#: The size where the system does not say: no processor of today has more by core.
_L2_BYTES = 4 << 20
#: A usual size of those that several cores share.
_L3_BYTES = 32 << 20
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


def l2_bytes(size_file: Path = _L2_SIZE) -> int:
    """Return the bytes of a core's L2 cache."""
    return _cache_bytes(size_file) or _L2_BYTES


def l3_bytes(size_file: Path = _L3_SIZE) -> int:
    """Return the bytes of the L3 cache that a core shares with others."""
    return _cache_bytes(size_file) or _L3_BYTES


def _cache_bytes(size_file: Path) -> int:
    text = size_file.read_text(encoding="ascii").strip() if size_file.is_file() else ""
    match = re.fullmatch(r"(\d+)([KM]?)", text)
    return int(match[1]) * _UNITS[match[2]] if match else 0


#: How far onnxruntime rewrites a graph before it runs it: not at all, or as far as it can.
OPTIMIZATIONS = ("off", "all")
_LEVELS = {
    "off": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_FATAL = 4


def refusals() -> tuple[type[Exception], ...]:
    """Return what onnxruntime raises where it cannot make or run a session."""
    state = vars(onnxruntime.capi.onnxruntime_pybind11_state).values()
    own = tuple(
        value for value in state if isinstance(value, type) and issubclass(value, Exception)
    )
    return (*own, RuntimeError, ValueError)


def prepare(
    graph: Graph, feeds: Mapping[str, Array], optimizations: str = "off", threads: int = 1
) -> Callable[[], None]:
    """Return a function that runs a graph once, its inputs bound already.

    Args:
        feeds: a value for each graph input.
        optimizations: one of ``OPTIMIZATIONS``.
        threads: that each operator is run by.

    Raises:
        InputError: the graph has no ONNX form.
        Exception: one of ``refusals``.
    """
    return prepare_model(to_onnx_model(graph).SerializeToString(), feeds, optimizations, threads)


def prepare_model(
    model: bytes | Path,
    feeds: Mapping[str, Array],
    optimizations: str,
    threads: int = 1,
    libraries: Sequence[Path] = (),
) -> Callable[[], None]:
    """As ``prepare``, of a model as ONNX writes it, or of its file.

    Args:
        libraries: of custom ops.

    Raises:
        Exception: one of ``refusals``.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = _LEVELS[optimizations]
    options.intra_op_num_threads = threads
    if threads > 1:  # another session's idle threads would keep the processors from this one
        options.add_session_config_entry("session.force_spinning_stop", "1")
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL  # what is wrong is raised
    for library in libraries:
        options.register_custom_ops_library(str(library))
    source = str(model) if isinstance(model, Path) else model
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return bound(session, feeds)


def bound(session: Any, feeds: Mapping[str, Array]) -> Callable[[], None]:
    """Return a function that runs a session once, its inputs bound already."""
    binding = session.io_binding()
    for item in session.get_inputs():
        value = np.ascontiguousarray(feeds[item.name])
        binding.bind_ortvalue_input(
            item.name,
            onnxruntime.OrtValue.ortvalue_from_numpy(value.reshape(feeds[item.name].shape)),
        )
    for item in session.get_outputs():
        binding.bind_output(item.name)

    def run() -> None:
        session.run_with_iobinding(binding)

    return run
