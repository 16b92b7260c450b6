"""Emitted CUDA, compiled for the CPU; ``races.h`` finds races, and what is outside of tensors."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bench.emulation.device_memory import DeviceMemory, check_nothing_was_outside
from bench.emulation.host import FOLDER, with_meanings
from relational_tensat.gpu.catalogue import read_source
from relational_tensat.mugraph.kernels.emit_cuda import CudaKernel, read_fused
from relational_tensat.tensor import Array


class Emulated:
    """Kernels of one library, by name."""

    def __init__(self, kernels: Sequence[CudaKernel], folder: Path) -> None:
        """Compile them; they share their element type."""
        parts = [read_source("common.cuh"), read_source("tiles.cuh"), read_fused()]
        parts += [_source(kernel) for kernel in kernels]
        text = re.sub(r"#include .*|#pragma .*", "", with_meanings("\n".join(parts)))
        path = folder / "kernels.cpp"
        path.write_text(f'#include "races.h"\n{text}', encoding="utf-8")
        object_file, library = folder / "kernels.o", folder / "kernels.so"
        flags = ["-std=c++20", "-O1", "-w", "-fPIC", "-fsanitize=thread"]
        subprocess.run(
            ["g++", *flags, f"-I{FOLDER}", "-c", str(path), "-o", str(object_file)], check=True
        )
        subprocess.run(["g++", "-shared", str(object_file), "-o", str(library)], check=True)
        self._library = ctypes.CDLL(str(library))
        self._kernels = {kernel.name: kernel for kernel in kernels}

    def run(
        self, name: str, operands: Sequence[Array], results: Mapping[str, tuple[int, ...]]
    ) -> list[Array]:
        """Run a kernel, threads forward and backward; return its results, float32 where it says so.

        What it computes must not depend on the order, nothing outside of a tensor is read or written, and
        no byte of shared memory is touched by two threads between two barriers, one of them writing.
        """
        forward, backward = (self._once(name, operands, results, order) for order in (0, 1))
        for one, other in zip(forward, backward, strict=True):
            np.testing.assert_array_equal(one, other)
        return forward

    def _once(
        self,
        name: str,
        operands: Sequence[Array],
        results: Mapping[str, tuple[int, ...]],
        order: int,
    ) -> list[Array]:
        kernel = self._kernels[name]
        types = _types(kernel)
        dtypes = {"float": "float32", "u8": "bool", "T": kernel.dtype}
        for operand, kind in zip(operands, types, strict=False):
            assert operand.dtype == dtypes[kind]
        outputs = [
            np.full(shape, np.nan, dtypes[kind])
            for shape, kind in zip(results.values(), types[len(operands) :], strict=True)
        ]
        memory = DeviceMemory([*operands, *outputs])
        memory.watch(self._library)
        addresses = [tensor.ctypes.data for tensor in memory.tensors]
        pointers = (ctypes.c_void_p * len(addresses))(*addresses)
        grid = (ctypes.c_uint * 3)(*kernel.grid)
        block = (ctypes.c_uint * 3)(kernel.threads, 1, 1)
        races = getattr(self._library, f"run_{name}")(grid, block, pointers, order)
        assert races == 0, f"{name}: {races} races in shared memory"
        check_nothing_was_outside(self._library, name)
        return memory.tensors[len(operands) :]


def _types(kernel: CudaKernel) -> list[str]:
    """Return the element types of a kernel's parameters, ``T``, ``float`` or ``u8``."""
    signature = re.search(rf"{kernel.name}\(([^)]*)\)", kernel.source)
    assert signature is not None
    return re.findall(r"(T|float|u8)\* __restrict__", signature[1])


def _source(kernel: CudaKernel) -> str:
    """Return a kernel in a namespace of its own, its shared memory outside of it, and an entry."""
    size = max(kernel.schedule.shared_bytes, 1)
    text = re.sub(r"alignas\(16\) (extern )?__shared__ u8 arena\[\d*\];", "", kernel.source)
    text = re.sub(r"#define WARPS.*", "", text).replace('extern "C"', "")
    arguments = ", ".join(f"({kind}*)given[{n}]" for n, kind in enumerate(_types(kernel)))
    return f"""
namespace in_{kernel.name} {{
alignas(16) static u8 arena[{size}];
{text.replace("__restrict__", "")}
}}
extern "C" int run_{kernel.name}(const unsigned* grid, const unsigned* block, void** given, int order) {{
  using in_{kernel.name}::T;
  static_assert({size} <= races::LARGEST);
  races::watch(in_{kernel.name}::arena, {size});
  host::is_backward = order;
  host::launch(grid, block, [=] {{ in_{kernel.name}::{kernel.name}({arguments}); }});
  return races::found;
}}
"""
