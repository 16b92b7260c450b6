"""An NVIDIA GPU by the executor of ``relational_tensat.gpu``: cuBLASLt, cuDNN, kernels of our own.

The executor is given the kernels (``gpu.lowering``), and starts all of a graph's as one CUDA graph.
docs/benchmarks/gpu.md has what was measured on one.
"""

from __future__ import annotations

from relational_tensat.cost.profile import Profile
from relational_tensat.rules.targets.cuda.cuda_kernels import (
    CONVOLUTION_KERNELS,
    ELEMENTWISE_KERNELS,
    NORM_KERNELS,
    PRODUCT_KERNELS,
)
from relational_tensat.rules.targets.cuda.kernel_choice import kernels_of, with_products
from relational_tensat.rules.targets.target import SUMS_OF_CONVOLUTIONS, Target


def describe() -> Target:
    """Return the target."""
    kernels = (*PRODUCT_KERNELS, *CONVOLUTION_KERNELS, *NORM_KERNELS, *ELEMENTWISE_KERNELS)
    return Target(
        "cuda",
        kernels,
        kernels_of,
        as_fused=with_products,
        left_out=SUMS_OF_CONVOLUTIONS,
        as_priced=Profile.in_a_graph,
        takes_kernels=True,
        measured_on="cuda",
    )
