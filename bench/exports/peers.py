"""A model's file as other tools write it, by their defaults."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import onnxruntime

_NO_LOG = 4


def _onnxsim(source: Path, target: Path) -> None:
    import onnx
    import onnxsim

    model, _ = onnxsim.simplify(str(source))
    onnx.save(model, target)


def _onnxslim(source: Path, target: Path) -> None:
    import onnxslim

    with contextlib.redirect_stdout(io.StringIO()):  # it prints a table
        onnxslim.slim(str(source), str(target))


def _offline(source: Path, target: Path, *, is_packed: bool = False) -> None:
    """onnxruntime's own file, after all its optimizations for this machine.

    Args:
        is_packed: with the matrices of products as its kernels have packed them, too.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _NO_LOG
    options.optimized_model_filepath = str(target)
    options.add_session_config_entry(
        "session.optimized_model_external_initializers_file_name", f"{target.name}.data"
    )
    options.add_session_config_entry(
        "session.save_external_prepacked_constant_initializers", str(int(is_packed))
    )
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


#: By name, what makes a file of another.
PEERS: Mapping[str, Callable[[Path, Path], None]] = {
    "onnxsim": _onnxsim,
    "onnxslim": _onnxslim,
    "ort offline": _offline,
    "ort offline, packed": partial(_offline, is_packed=True),
}
#: Those whose files are for one version of onnxruntime and one kind of processor.
FOR_THIS_MACHINE = frozenset({"ort offline", "ort offline, packed"})


def installed_peers() -> list[str]:
    """Return the names of those that can run."""
    return [
        name
        for name in PEERS
        if name in FOR_THIS_MACHINE or importlib.util.find_spec(name) is not None
    ]
