"""An NVIDIA GPU by the executor of ``relational_tensat.gpu``: cuBLASLt, cuDNN, kernels of our own.

The executor is given the kernels (``gpu.lowering``), and starts all of a graph's as one CUDA graph.
docs/benchmarks/gpu.md has what was measured on one.
"""

from __future__ import annotations

from relational_tensat.cost import open_device
from relational_tensat.cost.profile import Profile
from relational_tensat.rules.backends.backend import SUMS_OF_CONVOLUTIONS, Backend, CostRequest
from relational_tensat.rules.backends.cuda.cuda_kernels import (
    CONVOLUTION_KERNELS,
    ELEMENTWISE_KERNELS,
    NORM_KERNELS,
    PRODUCT_KERNELS,
)
from relational_tensat.rules.backends.cuda.kernel_choice import kernels_of, with_products


def _costs_here(request: CostRequest) -> tuple[str, str]:
    from relational_tensat.cost.calibration import nearest_profile  # few runs need it

    key = open_device("cuda").key
    profile = nearest_profile(key).name
    if request.is_fused:
        return profile, f"{key.name}, as {profile}"
    return "cuda" if request.measures else profile, key.name


BACKEND = Backend(
    "cuda",
    (*PRODUCT_KERNELS, *CONVOLUTION_KERNELS, *NORM_KERNELS, *ELEMENTWISE_KERNELS),
    _costs_here,
    "cuda",
    kernels_of=kernels_of,
    left_out=SUMS_OF_CONVOLUTIONS,
    as_fused=with_products,
    takes_kernels=True,
    as_priced=Profile.in_a_graph,
)
