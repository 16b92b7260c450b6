"""onnxruntime on a processor with AVX-512, with all its optimizations (as is its default)."""

from __future__ import annotations

from relational_tensat.rules.targets.onnxruntime.blocks import BLOCKED_KERNELS
from relational_tensat.rules.targets.onnxruntime.integer_products import IntegerProduct
from relational_tensat.rules.targets.onnxruntime.kernels import KERNELS
from relational_tensat.rules.targets.onnxruntime.norms import NORM_KERNELS, with_skip_norms
from relational_tensat.rules.targets.onnxruntime.quantized import QUANTIZED_KERNELS, as_unsigned
from relational_tensat.rules.targets.onnxruntime.running import kernels_of
from relational_tensat.rules.targets.onnxruntime.spreading import SPREADING_KERNELS
from relational_tensat.rules.targets.target import Target
from relational_tensat.tensor import Graph


def describe() -> Target:
    """Return the target."""
    kernels = (
        *KERNELS,
        *NORM_KERNELS,
        *QUANTIZED_KERNELS,
        IntegerProduct,
        *SPREADING_KERNELS,
        *BLOCKED_KERNELS,
    )
    return Target("onnxruntime", kernels, kernels_of, as_unsigned, _as_fused)


def _as_fused(graph: Graph, *, has_fixed_shapes: bool) -> Graph:
    return with_skip_norms(graph) if has_fixed_shapes else graph
