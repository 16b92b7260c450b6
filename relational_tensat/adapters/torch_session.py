"""A session of onnxruntime that reads PyTorch's tensors where they are, and gives its own as tensors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import onnxruntime
import torch

from relational_tensat.base.errors import InputError, UsageError, first_line

#: PyTorch's element types by the names that onnxruntime has for them, and their numbers in ONNX.
_ELEMENTS = {
    "float": (torch.float32, 1), "uint8": (torch.uint8, 2), "int8": (torch.int8, 3),
    "uint16": (torch.uint16, 4), "int16": (torch.int16, 5), "int32": (torch.int32, 6),
    "int64": (torch.int64, 7), "bool": (torch.bool, 9), "float16": (torch.float16, 10),
    "double": (torch.float64, 11), "uint32": (torch.uint32, 12), "uint64": (torch.uint64, 13),
    "bfloat16": (torch.bfloat16, 16),
}  # fmt: skip
_NOTHING = 4  # errors are raised
#: Tensors without elements have no address; onnxruntime asks for one.
_SOMEWHERE = torch.empty(1)


class TorchSession:
    """A model in onnxruntime. Inputs are read where they are, outputs stay where they were made.

    One thread calls it at a time, as ``torch.nn.Module`` is called.
    """

    def __init__(self, path: Path, threads: int | None = None) -> None:
        """Open a file.

        Args:
            threads: how many compute one operator; None for as many as onnxruntime takes.

        Raises:
            InputError: onnxruntime does not run it here, such as products of bfloat16.
        """
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _NOTHING
        if threads is not None:
            options.intra_op_num_threads = threads
        try:
            self._session = onnxruntime.InferenceSession(
                os.fspath(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's errors have no common base class
            raise InputError(f"onnxruntime does not run this: {first_line(error)}") from error
        self._inputs = [(each.name, *_element(each.type)) for each in self._session.get_inputs()]
        self._outputs = [each.name for each in self._session.get_outputs()]
        kinds = {each.type for each in (*self._session.get_inputs(), *self._session.get_outputs())}
        self._run = self._run_bound if "tensor(bfloat16)" in kinds else self._run_arrays

    def __call__(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the outputs for the inputs, in the model's order.

        Raises:
            UsageError: an input is on another device, of another element type, or of another size.
        """
        dense = []
        for (name, dtype, _), tensor in zip(self._inputs, tensors, strict=True):
            if tensor.device.type != "cpu" or tensor.dtype != dtype:
                raise UsageError(
                    f"input {name!r} is {tensor.dtype} on {tensor.device}, expected {dtype} on cpu"
                )
            dense.append(tensor.detach().resolve_neg().contiguous())
        try:
            return self._run(dense)
        except Exception as error:  # onnxruntime's errors have no common base class
            raise UsageError(f"onnxruntime: {first_line(error)}") from error

    def _run_arrays(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Run it on NumPy's views of the memory: onnxruntime does least of its own for these."""
        pairs = zip(self._inputs, tensors, strict=True)
        arrays = self._session.run(
            self._outputs, {name: each.numpy() for (name, *_), each in pairs}
        )
        return [torch.from_numpy(array) for array in arrays]

    def _run_bound(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Run it on addresses, for types that NumPy has not."""
        binding = self._session.io_binding()
        for (name, _, number), tensor in zip(self._inputs, tensors, strict=True):
            address = tensor.data_ptr() or _SOMEWHERE.data_ptr()
            binding.bind_input(name, "cpu", 0, number, tuple(tensor.shape), address)
        for name in self._outputs:
            binding.bind_output(name, "cpu")
        self._session.run_with_iobinding(binding)
        return [torch.from_dlpack(value._get_c_value()) for value in binding.get_outputs()]


def _element(text: str) -> tuple[torch.dtype, int]:
    """Return the element type of ``tensor(float)``."""
    return _ELEMENTS[text.removeprefix("tensor(").removesuffix(")")]
