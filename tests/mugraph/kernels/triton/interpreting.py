"""Emitted Triton, run by Triton's own interpreter on NumPy's arrays: no GPU and no PyTorch.

As a program, with TRITON_INTERPRET=1, it prints the relative error of each small kernel as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.kernels.triton.emit_triton import TritonKernel, emit_triton
from relational_tensat.mugraph.kernels.triton.machine_code import load_triton
from relational_tensat.tensor import Array
from tests.mugraph.kernels.comparing import (
    drawn,
    exact,
    norm_error,
    run_all,
    with_level_keys,
    with_level_logits,
)
from tests.mugraph.kernels.mugraphs import SMALL, split_attention

SPLIT = split_attention()


class _HostTensor:
    """What Triton's interpreter asks of a tensor of PyTorch's."""

    def __init__(self, array: Array | None = None) -> None:
        self.array = array

    @property
    def dtype(self) -> str:
        assert self.array is not None
        return str(self.array.dtype)

    def data_ptr(self) -> int:
        assert self.array is not None
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> _HostTensor:
        return self

    def cpu(self) -> _HostTensor:
        return self

    def new_empty(self, size: int, device: str) -> _HostTensor:
        return _HostTensor()

    def set_(self, storage: _HostTensor, *layout: Any) -> None:
        self.array = storage.array

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        assert self.array is not None
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return ()

    def copy_(self, other: _HostTensor) -> None:
        assert other.array is self.array


def run_interpreted(
    kernel: TritonKernel, operands: Sequence[Array], results: Sequence[Array]
) -> None:
    """Run a kernel."""
    function = load_triton(kernel)
    arrays = [*map(np.ascontiguousarray, operands), *results]
    function[kernel.grid](*map(_HostTensor, arrays))


def _errors() -> list[tuple[str, str, float]]:
    errors = [
        (dtype, graph.name, _error(graph, drawn(graph, dtype)))
        for dtype in ("float16", "float32")
        for graph in SMALL
    ]
    plain, level = drawn(SPLIT), with_level_logits(SPLIT, drawn(SPLIT), 600)
    split = (plain, level, with_level_keys(plain, 6000))
    errors += [("float16", SPLIT.name, _error(SPLIT, inputs)) for inputs in split]
    return errors


def _error(graph: MuGraph, inputs: dict[str, Array]) -> float:
    dtype = str(next(iter(inputs.values())).dtype)

    def run(
        kernel: Kernel, device: Mapping[str, Dims], operands: list[Array], results: list[Array]
    ) -> None:
        emitted = emit_triton(kernel, device, dtype, graph.wide)
        with np.errstate(all="ignore"):  # what padding holds
            run_interpreted(emitted, operands, results)

    return norm_error(run_all(graph, inputs, run), exact(graph, inputs))


if __name__ == "__main__":
    print(json.dumps(_errors()))  # noqa: T201
