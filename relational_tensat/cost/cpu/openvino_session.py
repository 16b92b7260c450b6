"""A model's file in OpenVINO, compiled as users are told to compile it for one request at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino

from relational_tensat.base.errors import InputError, first_line
from relational_tensat.tensor import Array

#: On processors with AMX, OpenVINO rounds to bfloat16 by itself: errors of 2e-3 instead of 2e-7.
_CONFIG = {"NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
_REFUSAL = "OpenVINO does not take it"


def compile_file(path: Path, threads: int | None = None) -> openvino.CompiledModel:
    """Compile a file for one request at a time, in the element types that it has.

    Args:
        threads: that compute one operator; None for OpenVINO's own number.

    Raises:
        InputError: OpenVINO does not take it.
    """
    own: dict[str, Any] = {} if threads is None else {"INFERENCE_NUM_THREADS": threads}
    try:
        return openvino.Core().compile_model(str(path), "CPU", {**_CONFIG, **own})
    except Exception as error:  # OpenVINO raises RuntimeError and its own for what it cannot do
        raise InputError(f"{_REFUSAL}: {first_line(error)}") from error


class OpenVinoRun:
    """A compiled model with its inputs."""

    def __init__(self, path: Path, feeds: Mapping[str, Array], threads: int) -> None:
        """Compile a file.

        Args:
            feeds: a value for each input.

        Raises:
            InputError: OpenVINO does not take it.
        """
        compiled = compile_file(path, threads)
        # OpenVINO leaves out operators that do nothing: their operand's name is one of the output's, too.
        self._names = [output.get_names() for output in compiled.outputs]
        try:
            self._request = compiled.create_infer_request()
            for item in compiled.inputs:
                value = np.ascontiguousarray(feeds[item.get_any_name()])
                self._request.set_tensor(item, openvino.Tensor(value))
        except Exception as error:  # as above
            raise InputError(f"{_REFUSAL}: {first_line(error)}") from error

    def __call__(self) -> None:
        """Run it once."""
        self._request.infer()

    def outputs(self) -> dict[str, Array]:
        """Run it once; return the outputs by name."""
        self()
        outputs = [self._request.get_output_tensor(place) for place in range(len(self._names))]
        return {
            name: output.data.copy()
            for names, output in zip(self._names, outputs, strict=True)
            for name in names
        }
