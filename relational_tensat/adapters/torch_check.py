"""Whether a session computes what its module computes.

Exporters err: PyTorch's writes a quotient of integers as one of floats, and converts it back. All that
follows is compared with the exported file, so the end is compared with the module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree

from relational_tensat.adapters.artefacts import Artefact
from relational_tensat.adapters.torch_export import Calls
from relational_tensat.adapters.torch_session import TorchSession
from relational_tensat.base.errors import InputError, first_line

#: How far floats may be off, of the largest one: far more than rounding, for a fault is larger, too.
_OFF = {torch.float16: 0.1, torch.bfloat16: 0.1}
_OFF_OTHERS = 0.01
#: A largest element below this counts as this: rounding leaves as much of a difference of equal numbers.
_RESIDUE = 1e-4
#: Which part of integers may be others: a float on a step may be rounded to either side of it.
_OTHERS = 0.01


def returned(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """Return all that a module returns, of whatever nesting; it may set attributes of itself.

    Raises:
        InputError: it does not run.
    """
    with torch.no_grad():
        try:
            return list(_pytree.tree_leaves(module(*args, **kwargs)))
        except Exception as error:  # a module may raise anything
            name = type(module).__name__
            raise InputError(
                f"{name}: does not run for the example: {first_line(error)}"
            ) from error


def opened(
    name: str,
    made: Artefact[Any],
    leaves: Sequence[Any],
    calls: Calls,
    tensors: Sequence[torch.Tensor],
) -> TorchSession:
    """Return the session of what was made of a module, which computes the same for the example.

    Args:
        name: of the module.
        made: the optimized file.
        leaves: of what the module returns.
        calls: how its inputs and outputs are nested.
        tensors: the example's.

    Raises:
        InputError: it computes something else, or its runtime does not open it.
    """
    session = TorchSession(made.path, made.runtime, has_kernels=made.has_kernels)
    expected = [leaf for leaf, kind in zip(leaves, calls.returned, strict=True) if kind[0]]
    for place, (own, other) in enumerate(zip(expected, session(tensors), strict=True)):
        difference = _difference(own.detach(), other)
        if difference:
            raise InputError(
                f"{name}: its ONNX export computes something else: for the example, "
                f"output {place} {difference}"
            )
    return session


def _difference(own: torch.Tensor, other: torch.Tensor) -> str:
    """Return how the file's output differs from the module's, "" where it does not."""
    if (own.dtype, own.shape) != (other.dtype, other.shape):
        return f"is {other.dtype} {list(other.shape)}, expected {own.dtype} {list(own.shape)}"
    if not own.dtype.is_floating_point:
        n_others = int((own != other).sum())
        return f"has {n_others} wrong of {own.numel()}" if n_others > _OTHERS * own.numel() else ""
    numbers, most = own.isfinite(), _OFF.get(own.dtype, _OFF_OTHERS)
    one_sided = int((numbers != other.isfinite()).sum())
    if one_sided:
        return f"has {one_sided} elements of {own.numel()} that are finite on one side only"
    if not numbers.any():
        return ""
    own, other = own[numbers].double(), other[numbers].double()
    off, largest = float((own - other).abs().max()), float(own.abs().max())
    is_close = off <= most * max(largest, _RESIDUE)
    return "" if is_close else f"is off by {off:.2g}, its largest element is {largest:.2g}"
