"""Sessions of onnxruntime: a file as it is written or as its optimizations make it, run, saved and read.

It also saves a model as it is after its optimizations, with the weights beside the file. ONNX's reference
evaluator runs files where onnxruntime has no kernels (bfloat16, new operators); it is slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relational_tensat.base.errors import InputError, first_line
from relational_tensat.base.folders import temporary_folder, utf8_name
from relational_tensat.tensor import DTYPE_BYTES, Array, Graph, numpy_dtype
from relational_tensat.verify.inputs import RandomWeights

if TYPE_CHECKING:
    import onnx


_QUIET = 4  # onnxruntime's log level "fatal": its warnings on old models are none of ours

#: Where onnxruntime puts the weights of a graph that it writes: in the file itself, they end at 2 GiB.
_BESIDE = "session.optimized_model_external_initializers_file_name"
#: Whether it puts packed matrices of products there, too.
_PACKED = "session.save_external_prepacked_constant_initializers"


class Session(Enum):
    """How onnxruntime runs a file: as it is, or with all its own optimizations, as by default."""

    AS_WRITTEN = "onnxruntime"
    AS_BY_DEFAULT = "onnxruntime with its optimizations"


def open_session(
    model: Path | bytes,
    threads: int,
    run_as: Session,
    *,
    optimized: Path | None = None,
    is_packed: bool = False,
    profile: Path | None = None,
    libraries: Sequence[Path] = (),
) -> Any:
    """Return a session of onnxruntime.

    Args:
        optimized: where it writes the graph that it runs, weights beside it, in ``NAME.data``.
        is_packed: whether matrices are there as kernels have packed them, too.
        profile: the beginning of the name of the file that it writes its nodes' times to.
        libraries: of custom ops.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if run_as is Session.AS_WRITTEN:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _QUIET
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = utf8_name(profile)
    for library in libraries:
        options.register_custom_ops_library(utf8_name(library))
    if optimized is not None:
        options.optimized_model_filepath = utf8_name(optimized)
        options.add_session_config_entry(_BESIDE, f"{optimized.name}.data")
        options.add_session_config_entry(_PACKED, str(int(is_packed)))
    return onnxruntime.InferenceSession(
        model if isinstance(model, bytes) else utf8_name(model),
        sess_options=options,
        providers=["CPUExecutionProvider"],
    )


def optimized_graph(model: Path | bytes) -> onnx.GraphProto:
    """Return the graph that onnxruntime runs after all its optimizations, with one thread.

    Each of its nodes is a call of a kernel. Large weights have no data in it.

    Raises:
        Exception: one of ``runtime_errors``.
    """
    import onnx

    with temporary_folder() as folder:
        file = folder / "optimized.onnx"
        open_session(model, 1, Session.AS_BY_DEFAULT, optimized=file)
        return onnx.load(file, load_external_data=False).graph


def session_feeds(
    session: Any, graph: Graph, inputs: Mapping[str, Array], weights: RandomWeights
) -> dict[str, Array]:
    """Return a value for each input of the session; weights without data are inputs of the file."""
    feeds: dict[str, Array] = {}
    for name in (item.name for item in session.get_inputs()):
        if name in graph.inputs:
            feeds[name] = _typed(inputs[name], graph.inputs[name].dtype)
        elif name in graph.weights:
            feeds[name] = _typed(weights[name], graph.weights[name].type.dtype)
    return feeds


def _typed(array: Array, dtype: str) -> Array:
    if dtype not in DTYPE_BYTES:
        return array  # strings
    # Contiguous all the same; ``ascontiguousarray`` would make a vector of a scalar.
    return np.asarray(array).astype(numpy_dtype(dtype), order="C")


def runtime_errors() -> tuple[type[Exception], ...]:
    """Return what onnxruntime raises: it has no common base class."""
    import onnxruntime

    state = onnxruntime.capi.onnxruntime_pybind11_state
    names = (
        "EPFail", "Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf",
        "NoSuchFile", "NotImplemented", "RuntimeException",
    )  # fmt: skip
    exceptions: list[type[Exception]] = [getattr(state, name) for name in names]
    return (*exceptions, ValueError, RuntimeError)


def save_session(
    model: Path, target: Path, threads: int, *, is_packed: bool, properties: Mapping[str, str]
) -> int:
    """Save what onnxruntime makes of a model by its defaults, and check that it reads that.

    Weights go to ``NAME.data``, those of less than 1 KiB aside. Filters are there in the blocks that its
    convolutions take them in.

    Args:
        is_packed: whether constant matrices are there as its products take them, too.
        properties: the properties that the file is to have.

    Returns:
        Bytes of weights beside the model.

    Raises:
        InputError: it does not save it, or does not read what it saved.
    """
    import onnx

    errors: tuple[type[Exception], ...] = (*runtime_errors(), OSError, InputError)
    try:
        open_session(model, threads, Session.AS_BY_DEFAULT, optimized=target, is_packed=is_packed)
        if not target.exists():
            raise InputError("it wrote nothing")
        saved = onnx.load(target, load_external_data=False)
        onnx.helper.set_model_props(saved, {**_properties(saved), **properties})
        target.write_bytes(saved.SerializeToString())
        open_session(target, threads, Session.AS_BY_DEFAULT)
    except errors as error:
        raise InputError(f"onnxruntime does not save it: {first_line(error)}") from error
    data = data_of(target)
    return data.stat().st_size if data.exists() else 0


def data_of(saved: Path) -> Path:
    """Return where a saved model's weights are."""
    return saved.with_name(f"{saved.name}.data")


def _properties(model: object) -> dict[str, str]:
    return {entry.key: entry.value for entry in getattr(model, "metadata_props", ())}


@dataclass(frozen=True, slots=True)
class _ReferenceInput:
    name: str


class ReferenceSession:
    """A file, with what of a session of onnxruntime a comparison needs."""

    def __init__(self, model: Path | bytes) -> None:
        """Read the file.

        Raises:
            InputError: it cannot be read, or has operators that are not known there.
        """
        try:
            import onnx
            from onnx.reference import ReferenceEvaluator

            read = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
            self._evaluator = ReferenceEvaluator(read)
        except Exception as error:  # it has no errors of its own
            raise _refusal(error) from error
        constants = {tensor.name for tensor in read.graph.initializer}
        self._halves = {
            value.name
            for value in read.graph.input
            if value.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16
        }
        self._inputs = [
            _ReferenceInput(v.name) for v in read.graph.input if v.name not in constants
        ]

    def get_inputs(self) -> list[_ReferenceInput]:
        """Return what has a name: each input without a value."""
        return self._inputs

    def run(self, _: None, feeds: Mapping[str, Array]) -> Sequence[Any]:
        """Return the outputs, bfloat16 as float32.

        Raises:
            InputError: it cannot be computed.
        """
        try:
            import ml_dtypes  # onnx brings it

            own = {
                name: value.astype(ml_dtypes.bfloat16) if name in self._halves else value
                for name, value in feeds.items()
            }
            with np.errstate(all="ignore"):
                results = self._evaluator.run(None, own)
        except Exception as error:  # whatever an operator's own code raises
            raise _refusal(error) from error
        return [_widened(value) for value in results]


def _widened(value: Any) -> Any:
    is_half = isinstance(value, np.ndarray) and value.dtype.name == "bfloat16"
    return value.astype(np.float32) if is_half else value


def _refusal(error: Exception) -> InputError:
    return InputError(f"{type(error).__name__}: {first_line(error)}")
