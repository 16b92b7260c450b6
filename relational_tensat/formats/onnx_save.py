"""Saving a tensor graph as an ONNX file: checked first, then renamed into place."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
from onnx import checker, external_data_helper

from relational_tensat.base.errors import ModelError
from relational_tensat.base.files import write_aside
from relational_tensat.formats.onnx_infer import condense, opens_in_runtime
from relational_tensat.formats.onnx_opset import INFERENCE_ERRORS
from relational_tensat.formats.onnx_write import write_model
from relational_tensat.tensor import Graph

#: From this size on, tensors go to a file of their own beside the model (protobuf ends at 2 GiB).
_EXTERNAL_FROM_BYTES = 1_500_000_000
#: Smaller tensors stay in the model all the same.
_EXTERNAL_TENSOR_BYTES = 1024


def save_onnx(graph: Graph, path: Path) -> None:
    """Write a graph as ONNX, completely or not at all; large weights to ``NAME.onnx.data``.

    Raises:
        InputError: the file cannot be written.
        ModelError: the graph has no valid ONNX form.
    """
    try:
        model = write_model(graph)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    with write_aside(path) as aside:
        target = aside / path.name
        if sum(len(tensor.raw_data) for tensor in model.graph.initializer) >= _EXTERNAL_FROM_BYTES:
            external_data_helper.convert_model_to_external_data(
                model, location=f"{path.name}.data", size_threshold=_EXTERNAL_TENSOR_BYTES
            )
            onnx.save_model(model, os.fspath(target))
        else:
            target.write_bytes(model.SerializeToString())
        try:
            _check(target)
        except (checker.ValidationError, *INFERENCE_ERRORS) as error:
            raise ModelError(
                f"{path}: not written, the result is no valid ONNX model: {condense(str(error))}"
            ) from None


def _check(path: Path) -> None:
    """Check a model file, the types of its values included.

    Raises:
        ValidationError, InferenceError: it is not valid.
    """
    try:
        checker.check_model(os.fspath(path), full_check=True)
    except INFERENCE_ERRORS:
        # ONNX fails on functions of its own (MeanVarianceNormalization) that onnxruntime runs.
        if not opens_in_runtime(path):
            raise
        checker.check_model(os.fspath(path))
