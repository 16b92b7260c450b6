"""Emitted CUDA to machine code; neither a GPU nor a driver is needed."""

from __future__ import annotations

from pathlib import Path

from relational_tensat.gpu.catalogue import HEADERS, read_source
from relational_tensat.gpu.nvrtc import Compiled, compile_source
from relational_tensat.mugraph.kernels.cuda.emit_cuda import CudaKernel
from relational_tensat.tensor.spellings import definitions

#: Kernels are made and tested for these: Ampere, Hopper, Blackwell.
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")

#: The functions of ``tensor.spellings`` that kernels call; common.cuh has sigmoid.
_CALLED = ("relu", "nan_to_zero", "div_or_zero", "square", "silu", "gelu")

_FUSED = Path(__file__).resolve().parent / "fused.cuh"


def read_fused() -> str:
    """Return the text of ``fused.cuh``, and the functions that its kernels call behind it."""
    functions = definitions("DEVICE float", _CALLED, exp="expf", erf="erff")
    return _FUSED.read_text(encoding="utf-8") + functions


def headers() -> dict[str, str]:
    """Return what an emitted source includes, by name."""
    return {**{name: read_source(name) for name in HEADERS}, _FUSED.name: read_fused()}


def compile_cuda(kernel: CudaKernel, arch: str) -> Compiled:
    """Compile a kernel.

    Args:
        kernel: what to compile.
        arch: for example ``sm_90``.

    Raises:
        MissingDependencyError: NVRTC is not installed.
        InputError: it does not compile.
    """
    return compile_source(f"{kernel.name}.cu", kernel.source, headers(), (), arch)
