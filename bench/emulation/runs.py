"""The kernels of a μGraph as code of a target, run on the CPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from bench.emulation.cuda_emulator import Emulated
from bench.emulation.errors import RunKernel, run_each
from bench.emulation.triton_interpreter import run_interpreted
from relational_tensat.base.errors import unknown
from relational_tensat.mugraph.graph.dims import Dims, variables
from relational_tensat.mugraph.graph.mugraph import Kernel, MuGraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.emit_c import compile_c, emit_c
from relational_tensat.mugraph.kernels.emit_cuda import CudaKernel, emit_cuda
from relational_tensat.mugraph.kernels.emit_triton import emit_triton
from relational_tensat.mugraph.kernels.layout_choice import (
    GraphLayouts,
    chosen_layouts,
)
from relational_tensat.tensor import Array

#: The element type that each target's kernels are tried with.
DTYPES: Mapping[str, str] = {"cuda": "float16", "triton": "float16", "c": "float32"}


def emulated(graphs: Sequence[MuGraph], folder: Path) -> Emulated:
    """Return the kernels of some μGraphs, whose names all differ, as one library: compiled once.

    Args:
        graphs: of kernels only.
        folder: for what is compiled.

    Raises:
        InputError: CUDA cannot say one of the kernels.
    """
    emitted = (
        kernel
        for graph in graphs
        for kernel in _cuda_kernels(
            graph, graph.wide, chosen_layouts(graph, DTYPES["cuda"], graph.wide)
        )
    )
    return Emulated(list(emitted), folder)


def run_kernels(
    graph: MuGraph,
    inputs: Mapping[str, Array],
    target: str,
    folder: Path,
    library: Emulated | None = None,
) -> dict[str, Array]:
    """Return the inputs, and what the kernels of a μGraph compute of them, by name.

    What is between kernels lies there as was chosen for it.

    Args:
        graph: of kernels only.
        inputs: by name, of the target's element type, bool, or float32: these are wide.
        target: ``cuda``: thread by thread, forward and backward, races in shared memory and writes outside
            of results looked for; ``triton``: by its interpreter; ``c``.
        folder: for what is compiled.
        library: for CUDA, of what was compiled before.

    Raises:
        UsageError: the target is none.
        InputError: it cannot say one of the kernels.
        MissingDependencyError: what it needs is not installed.
        AssertionError: a kernel has a race, or writes where it must not.
    """
    if target not in _RUNNERS:
        raise unknown("target", target, _RUNNERS)
    dtype = DTYPES[target]
    kinds = {name: value.dtype for name, value in inputs.items()}
    wide = graph.wide | {name for name, kind in kinds.items() if kind not in (dtype, "bool")}
    layouts = chosen_layouts(graph, dtype, wide)
    lying = {k.name: own.device for k, own in zip(graph.kernels, layouts.kernels, strict=True)}
    once = (
        _run_emulated(library)
        if library is not None
        else _RUNNERS[target](graph, wide, layouts, folder)
    )

    def run(
        kernel: Kernel, device: Mapping[str, Dims], operands: list[Array], results: list[Array]
    ) -> None:
        """Give a kernel its operands as they lie in its memory, and take its results from there."""
        order = lying[kernel.name]
        dims = {**device, **{saver.output: saver.dims for saver in kernel.block.savers}}
        given = [
            np.ascontiguousarray(value.transpose(_places(order[name], dims[name])))
            for name, value in zip(kernel.operands, operands, strict=True)
        ]
        own = [
            np.full([dim.size for dim in order[name]], np.nan, result.dtype)
            for name, result in zip(kernel.outputs, results, strict=True)
        ]
        once(kernel, device, given, own)
        for name, made, result in zip(kernel.outputs, own, results, strict=True):
            result[...] = made.transpose(_places(dims[name], order[name]))

    return run_each(graph, inputs, dtype, run)


def _places(wanted: Dims, dims: Dims) -> list[int]:
    return [variables(dims).index(name) for name in variables(wanted)]


def _cuda(graph: MuGraph, wide: frozenset[str], layouts: GraphLayouts, folder: Path) -> RunKernel:
    return _run_emulated(Emulated(_cuda_kernels(graph, wide, layouts), folder))


def _cuda_kernels(graph: MuGraph, wide: frozenset[str], layouts: GraphLayouts) -> list[CudaKernel]:
    dims = kernel_tensors(graph)
    return [
        emit_cuda(kernel, dims, DTYPES["cuda"], wide, own)
        for kernel, own in zip(graph.kernels, layouts.kernels, strict=True)
    ]


def _run_emulated(library: Emulated) -> RunKernel:
    def run(
        kernel: Kernel, device: Mapping[str, Dims], operands: list[Array], results: list[Array]
    ) -> None:
        shapes = dict(zip(kernel.outputs, (result.shape for result in results), strict=True))
        for own, result in zip(library.run(kernel.name, operands, shapes), results, strict=True):
            result[...] = own

    return run


def _triton(graph: MuGraph, wide: frozenset[str], layouts: GraphLayouts, folder: Path) -> RunKernel:
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    lying = {k.name: own.device for k, own in zip(graph.kernels, layouts.kernels, strict=True)}

    def run(
        kernel: Kernel, device: Mapping[str, Dims], operands: list[Array], results: list[Array]
    ) -> None:
        emitted = emit_triton(kernel, device, DTYPES["triton"], wide, lying[kernel.name])
        with np.errstate(all="ignore"):  # what padding holds
            run_interpreted(emitted, operands, results)

    return run


def _c(graph: MuGraph, wide: frozenset[str], layouts: GraphLayouts, folder: Path) -> RunKernel:
    lying = {k.name: own.device for k, own in zip(graph.kernels, layouts.kernels, strict=True)}

    def run(
        kernel: Kernel, device: Mapping[str, Dims], operands: list[Array], results: list[Array]
    ) -> None:
        compile_c(emit_c(kernel, device, lying[kernel.name]), folder)(operands, results)

    return run


_RUNNERS: Mapping[str, Callable[[MuGraph, frozenset[str], GraphLayouts, Path], RunKernel]] = {
    "cuda": _cuda,
    "triton": _triton,
    "c": _c,
}
