"""The kernels of a μGraph as code of a target, run on the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from bench.emulation.comparing import RunKernel, run_each
from bench.emulation.emulated import Emulated
from bench.emulation.interpreted import run_interpreted
from relational_tensat.base.errors import unknown
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.kernels.c.compile_c import compile_c
from relational_tensat.mugraph.kernels.c.emit_c import emit_c
from relational_tensat.mugraph.kernels.cuda.emit_cuda import emit_cuda
from relational_tensat.mugraph.kernels.layouts.choosing_layouts import (
    KernelLayouts,
    chosen_layouts,
)
from relational_tensat.mugraph.kernels.triton.emit_triton import emit_triton
from relational_tensat.tensor import Array

#: The element type that each target's kernels are tried with.
DTYPES: Mapping[str, str] = {"cuda": "float16", "triton": "float16", "c": "float32"}


def run_kernels(
    graph: MuGraph, inputs: Mapping[str, Array], target: str, folder: Path
) -> dict[str, Array]:
    """Return the inputs, and what the kernels of a μGraph compute of them, by name.

    What is between kernels lies there as was chosen for it.

    Args:
        graph: of kernels only.
        inputs: by name, of the target's element type, or float32: these are wide.
        target: ``cuda``: thread by thread, forward and backward, races in shared memory and writes outside
            of results looked for; ``triton``: by its interpreter; ``c``.
        folder: for what is compiled.

    Raises:
        UsageError: the target is none.
        InputError: it cannot say one of the kernels.
        MissingDependencyError: what it needs is not installed.
        AssertionError: a kernel has a race, or writes where it must not.
    """
    if target not in _RUNNERS:
        raise unknown("target", target, _RUNNERS)
    dtype = DTYPES[target]
    wide = graph.wide | {name for name, value in inputs.items() if value.dtype != dtype}
    return run_each(graph, inputs, dtype, _RUNNERS[target](graph, wide, folder))


def _cuda(graph: MuGraph, wide: frozenset[str], folder: Path) -> RunKernel:
    dims, dtype = kernel_tensors(graph), DTYPES["cuda"]
    chosen = _layouts(graph, "cuda", wide)
    emitted = {k.name: emit_cuda(k, dims, dtype, wide, chosen[k.name]) for k in graph.kernels}
    library = Emulated(list(emitted.values()), folder)

    def run(
        kernel: Kernel, device: Mapping[str, Dims], operands: list[Array], results: list[Array]
    ) -> None:
        shapes = dict(zip(kernel.outputs, (result.shape for result in results), strict=True))
        made = library.run(emitted[kernel.name].name, operands, shapes)
        for own, result in zip(made, results, strict=True):
            result[...] = own

    return run


def _triton(graph: MuGraph, wide: frozenset[str], folder: Path) -> RunKernel:
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    chosen = _layouts(graph, "triton", wide)

    def run(
        kernel: Kernel, device: Mapping[str, Dims], operands: list[Array], results: list[Array]
    ) -> None:
        emitted = emit_triton(kernel, device, DTYPES["triton"], wide, chosen[kernel.name].device)
        with np.errstate(all="ignore"):  # what padding holds
            run_interpreted(emitted, operands, results)

    return run


def _c(graph: MuGraph, wide: frozenset[str], folder: Path) -> RunKernel:
    chosen = _layouts(graph, "c", wide)

    def run(
        kernel: Kernel, device: Mapping[str, Dims], operands: list[Array], results: list[Array]
    ) -> None:
        emitted = emit_c(kernel, device, chosen[kernel.name].device)
        compile_c(emitted, folder)(operands, results)

    return run


def _layouts(graph: MuGraph, target: str, wide: frozenset[str]) -> dict[str, KernelLayouts]:
    """Return the layouts of kernels by their names."""
    chosen = chosen_layouts(graph, DTYPES[target], wide).kernels
    return {kernel.name: own for kernel, own in zip(graph.kernels, chosen, strict=True)}


_RUNNERS: Mapping[str, Callable[[MuGraph, frozenset[str], Path], RunKernel]] = {
    "cuda": _cuda,
    "triton": _triton,
    "c": _c,
}
