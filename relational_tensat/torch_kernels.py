"""Kernels of a folder that a run has written, as PyTorch's custom operators.

On a GPU they are Triton's; on a CPU C where there is no product, else NumPy, block by block, for checks.
They have no gradients.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from relational_tensat import kernels
from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.base.folders import check_own
from relational_tensat.kernels import KernelEntry
from relational_tensat.mugraph.graph.dims import count
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.emit_triton import WARPS_SUFFIX
from relational_tensat.mugraph.kernels.statements import identifier

#: The namespace of the operators, beside ``torch.ops``.
NAMESPACE = "relational_tensat"
_log = logging.getLogger(NAMESPACE)


def register(folder: str | Path) -> dict[str, Callable[..., Any]]:
    """Make each kernel of a folder an operator ``relational_tensat::fused_KEY``; return them by keys.

    An operator takes tensors of the shapes and the element type that its kernel was made for. A kernel that
    has been registered before, from any folder, is returned as it is.

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
    one = len(entry.results) == 1
    given_back = "Tensor" if one else f"({', '.join(['Tensor'] * len(entry.results))})"

    def run(*given: Any) -> Any:
        graph = entry.graph
        for name, tensor in zip(graph.inputs, given, strict=True):
            dtype = torch.bool if name in graph.conditions else getattr(torch, entry.dtype)
            if tensor.dtype != dtype:
                raise InputError(f"{entry.key}: an operand of {tensor.dtype}, expected {dtype}")
        if given[0].is_cuda:
            return _on_gpu(entry, given)
        computed = _on_cpu(entry)(*(tensor.detach().numpy() for tensor in given))
        if isinstance(computed, tuple):
            return tuple(map(torch.from_numpy, computed))
        return torch.from_numpy(computed)

    operator: Callable[..., Any] = torch.library.custom_op(
        f"{NAMESPACE}::fused_{entry.key}",
        run,
        mutates_args=(),
        schema=f"({operands}) -> {given_back}",
    )
    operator.register_fake(lambda *given: _as_returned(_empty(entry, given[0])))  # type: ignore[attr-defined]  # torch's
    return operator


def _empty(entry: KernelEntry, like: Any) -> list[Any]:
    """Return tensors for results, on another's device."""
    dtype = getattr(_torch(), entry.dtype)
    return [like.new_empty(shape, dtype=dtype) for shape in entry.results]


def _as_returned(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


@cache
def _on_cpu(entry: KernelEntry) -> kernels.KernelFunction:
    return kernels.function_of(entry, "c" if "c" in entry.targets else "numpy")


def _on_gpu(entry: KernelEntry, given: tuple[Any, ...]) -> Any:
    """Launch the kernels that Triton makes of the folder's source, one after the other."""
    graph, device = entry.graph, kernel_tensors(entry.graph)
    results = _empty(entry, given[0])
    tensors = {name: x.contiguous() for name, x in zip(graph.inputs, given, strict=True)}
    tensors |= {name: tensors[name].view(_torch().uint8) for name in graph.conditions}
    tensors |= dict(zip(graph.outputs, results, strict=True))
    for kernel in graph.kernels:
        for name in kernel.outputs:
            if name not in tensors:  # what one kernel leaves to the next
                dtype = getattr(_torch(), "float32" if name in graph.wide else entry.dtype)
                tensors[name] = given[0].new_empty(count(device[name]), dtype=dtype)
        operands = [tensors[name] for name in (*kernel.operands, *kernel.outputs)]
        module, name = _triton_module(entry), identifier(kernel.name)
        warps = getattr(module, f"{name}{WARPS_SUFFIX}")
        getattr(module, name)[kernel.block.grid](*operands, num_warps=warps)
    return _as_returned(results)


@cache
def _triton_module(entry: KernelEntry) -> Any:
    if "triton" not in entry.targets:
        raise InputError(f"{entry.key}: there is no Triton of this kernel")
    path = entry.path.with_suffix(".py")
    check_own(path)
    _log.info("runs the code of %s", path)
    spec = importlib.util.spec_from_file_location(f"kernel_{entry.key}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingDependencyError(
            "PyTorch's operators need PyTorch: pip install torch"
        ) from error
