"""Graphs as onnxruntime runs them: on one thread or several, written by this project's own ONNX writer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from relational_tensat.formats import to_onnx_model
from relational_tensat.tensor import Array, Graph

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
    model: bytes | Path, feeds: Mapping[str, Array], optimizations: str, threads: int = 1
) -> Callable[[], None]:
    """As ``prepare``, of a model as ONNX writes it, or of its file.

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
