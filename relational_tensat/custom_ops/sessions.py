"""``relational_tensat.session`` and ``register``: a file with its kernels in onnxruntime."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import onnx
import onnxruntime

from relational_tensat.base.errors import InputError, MissingDependencyError, first_line
from relational_tensat.base.folders import utf8_name
from relational_tensat.custom_ops.build import loaded
from relational_tensat.custom_ops.function_check import compared_library, functions_of
from relational_tensat.custom_ops.library import KernelOp
from relational_tensat.custom_ops.manifest import read_manifest
from relational_tensat.custom_ops.overrides import can_override, override_library
from relational_tensat.formats.frontend import is_onnx
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.verify.sessions import runtime_errors

_log = logging.getLogger("relational_tensat")
_LOCK = Lock()
#: The first with the table of functions that ops are written for.
_OLDEST = (1, 18)


def session(
    model: str | Path, options: onnxruntime.SessionOptions | None = None, **more: Any
) -> onnxruntime.InferenceSession:
    """Return a session of a file that ``run --fuse`` has written, with its kernels.

        session = relational_tensat.session("model.opt.onnx")
        outputs = session.run(None, {"x": x})

    Args:
        model: the file; ``model.opt.kernels`` is beside it.
        options: of the session, which know the kernels afterwards.
        more: passed to ``onnxruntime.InferenceSession``; the processor is the default provider.

    Raises:
        InputError: as ``register``; or onnxruntime does not open the file.
    """
    options = options or onnxruntime.SessionOptions()
    register(options, model)
    more.setdefault("providers", ["CPUExecutionProvider"])
    try:
        return onnxruntime.InferenceSession(utf8_name(Path(model)), options, **more)
    except runtime_errors() as error:
        raise InputError(f"{model}: onnxruntime does not open it: {first_line(error)}") from error


def register(
    options: onnxruntime.SessionOptions, model: str | Path, *, overrides: bool = True
) -> tuple[str, ...]:
    """Let the sessions of some options run a file's kernels; return the names of these.

    The manifest beside the file is read as data. Its μGraphs are checked, their C is made again, compiled
    into the user's own cache, and compared with the local functions that they stand for. Without a C
    compiler, or with an older onnxruntime, there is a warning, and the file runs by these functions.

    Args:
        options: of onnxruntime.
        model: the file that ``run --fuse`` has written.
        overrides: whether operators of onnxruntime are replaced, too, where the race of the run was won so;
            only sessions of these options are concerned.

    Raises:
        InputError: the manifest is malformed, of another file, or has a kernel that computes something else
            than its function; or the cache is not the user's own.
    """
    model = Path(model)
    if not is_onnx(model):
        raise InputError(f"{model}: is no .onnx file")
    manifest = read_manifest(model)
    replaced = manifest.overrides if overrides else {}
    if not manifest.ops and not replaced:
        return ()
    functions = functions_of(model)
    if missing := [op.name for op in manifest.ops if op.name not in functions]:
        raise InputError(f"{model}: has no function {missing[0]}, which a kernel is named for")
    proto = onnx.load(model, load_external_data=False)
    if unfit := [name for name in replaced if not can_override(name, proto)]:
        raise InputError(f"{model}: has nodes {unfit[0]} that no kernel may replace")
    try:
        register_ops(options, manifest.ops, functions, replaced)
    except MissingDependencyError as error:
        _log.warning("%s: runs without its kernels: %s", model, error)
        return ()
    return (*(op.name for op in manifest.ops), *replaced)


def register_ops(
    options: onnxruntime.SessionOptions,
    ops: Sequence[KernelOp],
    functions: Mapping[str, onnx.FunctionProto],
    overrides: Mapping[str, MuGraph] | None = None,
) -> None:
    """Let the sessions of some options run kernels.

    Args:
        options: of onnxruntime.
        ops: the kernels, each checked.
        functions: the local functions that they are named for.
        overrides: kernels by the operators of onnxruntime that they replace.

    Raises:
        MissingDependencyError: there is no C compiler, or onnxruntime is older than these ops.
        InputError: a kernel does not compile, or computes something else than its function.
    """
    if tuple(map(int, onnxruntime.__version__.split(".")[:2])) < _OLDEST:
        raise MissingDependencyError(
            f"kernels need onnxruntime {'.'.join(map(str, _OLDEST))} or later, "
            f"this is {onnxruntime.__version__}"
        )
    with _LOCK:  # a library makes its domain when it is registered first
        if ops:
            register_library(options, loaded(compared_library(ops, functions)))
        if overrides:
            register_library(options, loaded(override_library(overrides)))


def register_library(options: onnxruntime.SessionOptions, library: Path) -> None:
    """Let the sessions of some options run a library's ops.

    Raises:
        InputError: onnxruntime refuses it.
    """
    try:
        options.register_custom_ops_library(utf8_name(library))
    except runtime_errors() as error:
        raise InputError(f"onnxruntime does not take kernels: {first_line(error)}") from error
