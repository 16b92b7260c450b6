"""A model's file as other tools write it, by their defaults."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable, Mapping
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


def _offline(source: Path, target: Path) -> None:
    """onnxruntime's own file, after all its optimizations for this machine."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _NO_LOG
    options.optimized_model_filepath = str(target)
    options.add_session_config_entry(
        "session.optimized_model_external_initializers_file_name", f"{target.name}.data"
    )
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


#: By name, what makes a file of another.
PEERS: Mapping[str, Callable[[Path, Path], None]] = {
    "onnxsim": _onnxsim,
    "onnxslim": _onnxslim,
    "ort offline": _offline,
}


def installed_peers() -> list[str]:
    """Return the names of those that can run."""
    return [
        name
        for name in PEERS
        if name == "ort offline" or importlib.util.find_spec(name) is not None
    ]
