"""Emitted C as a function, by the system's compiler."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.kernels.c.emit_c import CKernel, emit_c

#: Sums are those of ``omp simd``, in any order; nothing else changes what C says.
FLAGS = (
    "-std=c11", "-O3", "-march=native", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math",
    "-shared", "-fPIC",
)  # fmt: skip


class CFunction:
    """A compiled kernel, a function of its operands and results: contiguous arrays of float32, or bools."""

    def __init__(self, kernel: CKernel, function: Callable[..., None]) -> None:
        """Take a kernel, and its entry in a library that is loaded."""
        self._kernel, self._function = kernel, function

    def __call__(self, operands: Sequence[NDArray[Any]], results: Sequence[NDArray[Any]]) -> None:
        """Compute the results.

        Raises:
            InputError: an array is of another kind.
        """
        self.bound(operands, results)()

    def bound(
        self, operands: Sequence[NDArray[Any]], results: Sequence[NDArray[Any]]
    ) -> Callable[[], None]:
        """Return what computes the results, of these arrays, which it keeps.

        Raises:
            InputError: an array is of another kind.
        """
        arrays, function = [*operands, *results], self._function
        for name, array in zip(self._kernel.parameters, arrays, strict=True):
            kind = "bool" if name in self._kernel.conditions else "float32"
            if array.dtype != kind or not array.flags.c_contiguous:
                raise InputError(f"{self._kernel.name}: {name} is no contiguous array of {kind}")
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]

        def run(kept: Sequence[NDArray[Any]] = arrays) -> None:
            function(*pointers)

        return run


def compiler() -> str:
    """Return the path of the system's C compiler.

    Raises:
        MissingDependencyError: there is none.
    """
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if found is None:
        raise MissingDependencyError("kernels in C need a C compiler: set CC, or install cc")
    return found


@cache
def compiler_version(path: str) -> str:
    """Return what a compiler calls itself, and what it compiles for: the lines of ``--version``."""
    told = subprocess.run([path, "--version"], capture_output=True, text=True)
    return " ".join([path, *told.stdout.split()])


def emitted_kernels(graph: MuGraph) -> dict[str, CKernel]:
    """Return the kernels of a μGraph as C, by their names.

    Raises:
        InputError: C cannot say one.
    """
    device = kernel_tensors(graph)
    return {
        kernel.name: emit_c(kernel, {name: device[name] for name in kernel.operands})
        for kernel in graph.kernels
    }


def compiled_kernels(graph: MuGraph, folder: Path) -> dict[str, CFunction]:
    """Return the kernels of a μGraph as functions, by their names.

    Raises:
        MissingDependencyError: there is no C compiler.
        InputError: C cannot say one, or it does not compile.
    """
    return {name: compile_c(kernel, folder) for name, kernel in emitted_kernels(graph).items()}


def compile_c(kernel: CKernel, folder: Path) -> CFunction:
    """Return a kernel as a function.

    Args:
        kernel: what to compile.
        folder: where the source and the library are written.

    Raises:
        MissingDependencyError: there is no C compiler.
        InputError: it does not compile.
    """
    source, library = folder / f"{kernel.name}.c", folder / f"{kernel.name}.so"
    source.write_text(kernel.source, encoding="utf-8")
    command = [compiler(), *FLAGS, str(source), "-o", str(library), "-lm"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        lines = made.stderr.splitlines() or ["the compiler says nothing"]
        reason = next((line for line in lines if "error" in line), lines[0])
        raise InputError(f"{kernel.name}.c: does not compile: {reason}")
    function = getattr(ctypes.CDLL(str(library)), kernel.name)
    function.restype = None
    return CFunction(kernel, function)
