"""Emitted C as a function, by the system's compiler."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.mugraph.kernels.c.emit_c import CKernel

#: Sums are those of ``omp simd``, in any order; nothing else changes what C says.
FLAGS = (
    "-std=c11", "-O3", "-march=native", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math",
    "-shared", "-fPIC",
)  # fmt: skip

Function = Callable[[Sequence[NDArray[Any]], Sequence[NDArray[Any]]], None]


def compile_c(kernel: CKernel, folder: Path) -> Function:
    """Return a kernel as a function of its operands and results, contiguous arrays of float32.

    Args:
        kernel: what to compile.
        folder: where the source and the library are written.

    Raises:
        MissingDependencyError: there is no C compiler.
        InputError: it does not compile.
    """
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise MissingDependencyError("kernels in C need a C compiler: set CC, or install cc")
    source, library = folder / f"{kernel.name}.c", folder / f"{kernel.name}.so"
    source.write_text(kernel.source, encoding="utf-8")
    command = [compiler, *FLAGS, str(source), "-o", str(library), "-lm"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        lines = made.stderr.splitlines() or ["the compiler says nothing"]
        reason = next((line for line in lines if "error" in line), lines[0])
        raise InputError(f"{kernel.name}.c: does not compile: {reason}")
    function = getattr(ctypes.CDLL(str(library)), kernel.name)
    function.restype = None

    def call(operands: Sequence[NDArray[Any]], results: Sequence[NDArray[Any]]) -> None:
        arrays = [*operands, *results]
        for name, array in zip(kernel.parameters, arrays, strict=True):
            if array.dtype != np.float32 or not array.flags.c_contiguous:
                raise InputError(f"{kernel.name}: {name} is no contiguous array of float32")
        function(*(ctypes.c_void_p(array.ctypes.data) for array in arrays))

    return call
