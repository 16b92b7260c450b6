"""Files run by ONNX's reference evaluator, where onnxruntime has no kernels: bfloat16, new operators.

It is written in NumPy, and slow: small models only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relational_tensat.base.errors import InputError, first_line
from relational_tensat.tensor import Array


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
