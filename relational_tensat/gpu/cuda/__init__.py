"""Kernels on a real GPU.

PyCUDA owns device, memory, modules, streams and events, in the primary context, which the libraries share.
Products go to cuBLASLt, convolutions and pools to cuDNN, through ``ctypes`` on their shared libraries
(``modules`` says why). All others, and those that the libraries refuse, run on kernels of our own.
"""

from __future__ import annotations

from relational_tensat.gpu.cuda.cuda_library import CudaLibrary
from relational_tensat.gpu.cuda.gpu import Gpu, open_gpu

__all__ = ["CudaLibrary", "Gpu", "open_gpu"]
