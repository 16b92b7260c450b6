"""onnxruntime's quantization, as its documentation has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import Tensor


class _Reader(CalibrationDataReader):
    """Gives one set of inputs after another, then None."""

    def __init__(self, sets: Sequence[Mapping[str, Tensor]]) -> None:
        self._sets: Iterator[Mapping[str, Tensor]] = iter(sets)

    def get_next(self) -> dict[str, Any] | None:
        """Return the next set as arrays by name."""
        values = next(self._sets, None)
        return None if values is None else {name: v.numpy() for name, v in values.items()}


def quantize(
    original: Path, path: Path, variant: str, calibration: Sequence[Mapping[str, Tensor]]
) -> None:
    """Write the model quantized: ``qdq`` with activations calibrated, or ``quantize_dynamic``."""
    prepared = original.with_name("prepared.onnx")
    quant_pre_process(original, prepared)
    if variant == "qdq":
        quantize_static(
            prepared, path, _Reader(calibration), quant_format=QuantFormat.QDQ, per_channel=True
        )
    else:
        quantize_dynamic(prepared, path, per_channel=True)
