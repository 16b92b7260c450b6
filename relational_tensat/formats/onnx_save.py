"""Saving a tensor graph as an ONNX file: checked first, then renamed into place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx
from onnx import checker

from relational_tensat.base.errors import ModelError
from relational_tensat.base.files import write_aside
from relational_tensat.formats.onnx_external import with_weights_as_inputs
from relational_tensat.formats.onnx_infer import condense, opens_in_runtime
from relational_tensat.formats.onnx_opset import INFERENCE_ERRORS
from relational_tensat.formats.onnx_wire import with_large_weights
from relational_tensat.formats.onnx_write import write_skeleton
from relational_tensat.tensor import Array, Graph

#: From this size on, large weights go to a file of their own beside the model (protobuf ends at 2 GiB).
_EXTERNAL_FROM_BYTES = 1_500_000_000
#: Where a weight begins in that file: what a system can map into memory by itself.
_ALIGNMENT_BYTES = 4096


def save_onnx(graph: Graph, path: Path, opset: int | None = None) -> None:
    """Write a graph as ONNX, completely or not at all; large weights to ``NAME.onnx.data``.

    Args:
        opset: the version of the default operator set, if it is not to be chosen.

    Raises:
        UsageError: that version cannot be written.
        InputError: the file cannot be written.
        ModelError: the graph has no valid ONNX form.
    """
    try:
        model, weights = write_skeleton(graph, opset)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    save_skeleton(model, weights, path)


def save_skeleton(model: onnx.ModelProto, weights: Mapping[str, Array], path: Path) -> None:
    """Write a skeleton and its large weights as ``save_onnx`` does; changes a model of external data.

    Raises:
        InputError, ModelError: as ``save_onnx``.
    """
    checked = with_weights_as_inputs(model, weights)
    with write_aside(path) as aside:
        target = aside / path.name
        if sum(weight.nbytes for weight in weights.values()) >= _EXTERNAL_FROM_BYTES:
            _write_beside(model, weights, aside / f"{path.name}.data")
            weights = {}
        data = {name: memoryview(weight.data).cast("B") for name, weight in weights.items()}
        with target.open("wb") as file:
            file.writelines(with_large_weights(model, data))
        try:
            _check(checked, target)
        except (checker.ValidationError, *INFERENCE_ERRORS) as error:
            raise ModelError(
                f"{path}: not written, the result is no valid ONNX model: {condense(str(error))}"
            ) from None


def _write_beside(model: onnx.ModelProto, weights: Mapping[str, Array], path: Path) -> None:
    """Write large weights to a file of their own, which the model then refers to."""
    with path.open("wb") as file:
        for tensor in model.graph.initializer:
            if tensor.name not in weights:
                continue
            offset = -(-file.tell() // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
            file.seek(offset)
            weight = weights[tensor.name]
            file.write(weight.data)
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            place = {"location": path.name, "offset": offset, "length": weight.nbytes}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))


def _check(model: onnx.ModelProto, path: Path) -> None:
    """Check a model, the types of its values included.

    Args:
        model: the skeleton, its large weights as inputs.
        path: the file that it was written to.

    Raises:
        ValidationError, InferenceError: it is not valid.
    """
    try:
        checker.check_model(model, full_check=True)
    except INFERENCE_ERRORS:
        # ONNX fails on functions of its own (MeanVarianceNormalization) that onnxruntime runs.
        if not opens_in_runtime(path):
            raise
        checker.check_model(model)
