"""Costs measured on this machine's NVIDIA GPU, through PyCUDA.

``protocol`` says how is timed, ``device`` on what; everything between them and the driver is in
``relational_tensat.gpu``.
"""

from __future__ import annotations

from relational_tensat.cost.device import Device

__all__ = ["open_device"]


def open_device(math: str = "fp32") -> Device:
    """Return this machine's first NVIDIA GPU.

    Args:
        math: how float32 is multiplied, ``fp32`` or ``tf32``.

    Raises:
        MissingDependencyError: PyCUDA, the driver, a GPU or NVRTC is missing; says which, and what to
            install.
        UsageError: there is no such way to multiply.
    """
    from relational_tensat.base.errors import check_choice
    from relational_tensat.gpu.catalogue import MATH_MODES
    from relational_tensat.gpu.cuda import CudaLibrary, open_gpu

    check_choice("math mode", math, MATH_MODES)
    library = CudaLibrary(open_gpu())

    from relational_tensat.cost.cuda.cuda_device import CudaDevice

    return CudaDevice(library, math)
