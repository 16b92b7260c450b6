"""A model in a runtime that reads PyTorch's tensors where they are, and gives its outputs as tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnxruntime
import torch

from relational_tensat.base.errors import InputError, UsageError, first_line
from relational_tensat.run.options import ONNXRUNTIME
from relational_tensat.run.purpose import OPENVINO

_Tensors: TypeAlias = Sequence[torch.Tensor]
#: PyTorch's element types by the names that onnxruntime has for them, and their numbers in ONNX.
_ELEMENTS = {
    "float": (torch.float32, 1), "uint8": (torch.uint8, 2), "int8": (torch.int8, 3),
    "uint16": (torch.uint16, 4), "int16": (torch.int16, 5), "int32": (torch.int32, 6),
    "int64": (torch.int64, 7), "bool": (torch.bool, 9), "float16": (torch.float16, 10),
    "double": (torch.float64, 11), "uint32": (torch.uint32, 12), "uint64": (torch.uint64, 13),
    "bfloat16": (torch.bfloat16, 16),
}  # fmt: skip
_NOTHING = 4  # errors are raised
_WIDE = {np.dtype(name) for name in ("int64", "uint32", "uint64")}
#: Tensors without elements have no address; onnxruntime asks for one.
_SOMEWHERE = torch.empty(1)


class TorchSession:
    """A model in a runtime on the CPU.

    One thread calls it at a time, as ``torch.nn.Module`` is called.
    """

    def __init__(
        self,
        path: Path,
        runtime: str = ONNXRUNTIME,
        threads: int | None = None,
        *,
        has_kernels: bool = False,
    ) -> None:
        """Open a file.

        Args:
            runtime: ``onnxruntime`` or ``openvino``.
            threads: how many compute one operator; None for as many as the runtime takes.
            has_kernels: whether the file's own kernels are beside it, as ``run --fuse`` writes them.

        Raises:
            InputError: the runtime does not take it, as onnxruntime some products of bfloat16; or as
                ``relational_tensat.register``.
        """
        if runtime == OPENVINO:
            self._inputs, self._run = _in_openvino(path, threads)
        else:
            self._inputs, self._run = _in_onnxruntime(path, threads, has_kernels=has_kernels)
        self._runtime = runtime

    def __call__(self, tensors: _Tensors) -> list[torch.Tensor]:
        """Return the outputs for the inputs, in the model's order.

        Raises:
            UsageError: an input is on another device, of another element type, or of another size; or has
                integers that the runtime has not.
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
        except Exception as error:  # runtimes' errors have no common base class
            for (name, _, sizes), tensor in zip(self._inputs, tensors, strict=True):
                shape = list(tensor.shape)
                if len(shape) != len(sizes) or any(
                    isinstance(own, int) and own != size
                    for own, size in zip(sizes, shape, strict=True)
                ):
                    raise UsageError(f"input {name!r} is {shape}, expected {sizes}") from error
            raise UsageError(f"{self._runtime}: {first_line(error)}") from error


#: Names of inputs, their element types and sizes: no integer for any one.
_Inputs: TypeAlias = list[tuple[str, torch.dtype, list[int | str]]]
_Opened: TypeAlias = tuple[_Inputs, Callable[[_Tensors], list[torch.Tensor]]]


def _in_onnxruntime(path: Path, threads: int | None, *, has_kernels: bool) -> _Opened:
    """Return the inputs, and a function; outputs stay where onnxruntime made them.

    Raises:
        InputError: onnxruntime does not take it, or its kernels are not right.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _NOTHING
    # Idle threads would keep the processors from PyTorch's, which compute what comes next.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    if threads is not None:
        options.intra_op_num_threads = threads
    if has_kernels:
        from relational_tensat.custom_ops.sessions import register  # it emits C: few files need it

        register(options, path)
    try:
        session = onnxruntime.InferenceSession(
            os.fspath(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # its errors have no common base class
        reason = first_line(error).replace(os.fspath(path), path.name)
        raise InputError(f"onnxruntime does not run this: {reason}") from error
    elements = [
        _ELEMENTS[each.type.removeprefix("tensor(").removesuffix(")")]
        for each in session.get_inputs()
    ]
    names = [each.name for each in session.get_inputs()]
    outputs = [each.name for each in session.get_outputs()]

    def run_arrays(tensors: _Tensors) -> list[torch.Tensor]:
        """Run it on NumPy's views of the memory: onnxruntime does least of its own for these."""
        feeds = {name: each.numpy() for name, each in zip(names, tensors, strict=True)}
        return [torch.from_numpy(array) for array in session.run(outputs, feeds)]

    def run_bound(tensors: _Tensors) -> list[torch.Tensor]:
        """Run it on addresses, for types that NumPy has not."""
        binding = session.io_binding()
        for name, (_, number), tensor in zip(names, elements, tensors, strict=True):
            address = tensor.data_ptr() or _SOMEWHERE.data_ptr()
            binding.bind_input(name, "cpu", 0, number, tuple(tensor.shape), address)
        for name in outputs:
            binding.bind_output(name, "cpu")
        session.run_with_iobinding(binding)
        return [torch.from_dlpack(value._get_c_value()) for value in binding.get_outputs()]

    kinds = {each.type for each in (*session.get_inputs(), *session.get_outputs())}
    run = run_bound if "tensor(bfloat16)" in kinds else run_arrays
    sizes = [[n if n is not None else "any" for n in each.shape] for each in session.get_inputs()]
    kept = zip(names, elements, sizes, strict=True)
    return [(name, dtype, own) for name, (dtype, _), own in kept], run


def _in_openvino(path: Path, threads: int | None) -> _Opened:
    """Return the inputs, and a function; outputs are copied, as OpenVINO writes over them.

    Raises:
        InputError: OpenVINO does not take it.
    """
    import openvino

    from relational_tensat.cost.cpu.openvino_session import compile_file

    compiled = compile_file(path, threads)
    if openvino.Type.bf16 in [item.element_type for item in (*compiled.inputs, *compiled.outputs)]:
        raise InputError("OpenVINO gives bfloat16 as float16 to Python, expected another runtime")
    request = compiled.create_infer_request()
    inputs: _Inputs = []
    for item in compiled.inputs:
        dtype = torch.from_numpy(openvino.Tensor(item.element_type, [0]).data).dtype
        dims = item.get_partial_shape()
        sizes = ["any" if dim.is_dynamic else dim.get_length() for dim in dims]
        inputs.append((item.get_any_name(), dtype, sizes))

    def run(tensors: _Tensors) -> list[torch.Tensor]:
        for place, tensor in enumerate(tensors):
            array = tensor.numpy()
            # It computes them in int32, and says nothing.
            if (
                array.dtype in _WIDE
                and array.size
                and (array.min() < -(2**31) or array.max() >= 2**31)
            ):
                raise UsageError(f"input {inputs[place][0]!r} has integers beyond int32")
            request.set_input_tensor(place, openvino.Tensor(array, shared_memory=True))
        request.infer()
        return [
            torch.from_numpy(request.get_output_tensor(place).data.copy())
            for place in range(len(compiled.outputs))
        ]

    return inputs, run
