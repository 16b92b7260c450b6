"""Kernels of a folder that a run has written, as PyTorch's custom operators.

On a GPU they are Triton's; on a CPU C where there is no product, else NumPy, block by block, for checks.
They have no gradients.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from relational_tensat import kernels
from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.kernels import KernelEntry
from relational_tensat.mugraph.kernels.lowering.names import identifier

#: The namespace of the operators, beside ``torch.ops``.
NAMESPACE = "relational_tensat"


def register(folder: str | Path) -> dict[str, Callable[..., Any]]:
    """Make each kernel of a folder an operator ``relational_tensat::fused_KEY``; return them by keys.

    An operator takes tensors of the shapes and the element type that its kernel was made for. What has been
    registered before, from whichever folder, is returned as it is.

    Raises:
        InputError: the folder has no kernels, or one is malformed.
        MissingDependencyError: PyTorch is not installed.
    """
    return {key: _operator(entry) for key, entry in kernels.entries(folder).items()}


_REGISTERED: dict[str, Callable[..., Any]] = {}


def _operator(entry: KernelEntry) -> Callable[..., Any]:
    if entry.key not in _REGISTERED:
        _REGISTERED[entry.key] = _registered(entry)
    return _REGISTERED[entry.key]


def _registered(entry: KernelEntry) -> Callable[..., Any]:
    torch = _torch()
    operands = ", ".join(f"Tensor x{place}" for place in range(len(entry.operands)))

    def run(*given: Any) -> Any:
        dtype = getattr(torch, entry.dtype)
        for tensor in given:
            if tensor.dtype != dtype:
                raise InputError(f"{entry.key}: an operand of {tensor.dtype}, expected {dtype}")
        if given[0].is_cuda:
            return _on_gpu(entry, given)
        return torch.from_numpy(_on_cpu(entry)(*(tensor.detach().numpy() for tensor in given)))

    operator: Callable[..., Any] = torch.library.custom_op(
        f"{NAMESPACE}::fused_{entry.key}", run, mutates_args=(), schema=f"({operands}) -> Tensor"
    )
    operator.register_fake(lambda *given: given[0].new_empty(entry.result))  # type: ignore[attr-defined]  # torch's
    return operator


@cache
def _on_cpu(entry: KernelEntry) -> kernels.KernelFunction:
    return kernels.function_of(entry, "c" if "c" in entry.targets else "numpy")


def _on_gpu(entry: KernelEntry, given: tuple[Any, ...]) -> Any:
    """Launch the kernel that Triton makes of the folder's source."""
    (kernel,) = entry.graph.kernels
    by_name = dict(zip(entry.graph.inputs, given, strict=True))
    operands = [by_name[name].contiguous() for name in kernel.operands]
    result = given[0].new_empty(entry.result)
    _triton_function(entry)[kernel.block.grid](*operands, result)
    return result


@cache
def _triton_function(entry: KernelEntry) -> Any:
    if "triton" not in entry.targets:
        raise InputError(f"{entry.key}: there is no Triton of this kernel")
    path = entry.path.with_suffix(".py")
    spec = importlib.util.spec_from_file_location(f"kernel_{entry.key}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, identifier(entry.graph.kernels[0].name))


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingDependencyError(
            "PyTorch's operators need PyTorch: pip install torch"
        ) from error
