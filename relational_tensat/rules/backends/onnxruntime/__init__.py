"""onnxruntime on a processor with AVX2 or AVX-512, with all its optimizations (as is its default)."""

from __future__ import annotations

from relational_tensat.base.process import default_threads, instruction_sets
from relational_tensat.cost.profile import cpu_profile
from relational_tensat.rules.backends.backend import SUMS_OF_CONVOLUTIONS, Backend, CostRequest
from relational_tensat.rules.backends.onnxruntime.attention import ATTENTION_KERNELS
from relational_tensat.rules.backends.onnxruntime.blocks import BLOCKED_KERNELS
from relational_tensat.rules.backends.onnxruntime.integer_kernels import QUANTIZED_KERNELS
from relational_tensat.rules.backends.onnxruntime.kernel_choice import kernels_of, more_work_of
from relational_tensat.rules.backends.onnxruntime.kernels import (
    INTEGER_KERNELS,
    KERNELS,
    NORM_KERNELS,
    with_skip_norms,
)
from relational_tensat.rules.backends.onnxruntime.quantized_convolutions import (
    as_unsigned,
    dequantized_for_each,
    with_quantized_convolutions,
)
from relational_tensat.rules.backends.onnxruntime.rotary import ROTARY_KERNELS
from relational_tensat.rules.backends.onnxruntime.split_pieces import (
    SPELLED_KERNELS,
    SPREADING_KERNELS,
    as_spelled,
    with_splits,
)
from relational_tensat.tensor import Graph


def _as_read(graph: Graph) -> Graph:
    return as_unsigned(with_splits(as_spelled(graph)))


def _as_fused(graph: Graph, *, has_fixed_shapes: bool) -> Graph:
    fused = with_skip_norms(graph) if has_fixed_shapes else graph
    return dequantized_for_each(with_quantized_convolutions(fused))


def _costs_here(request: CostRequest) -> tuple[str, str]:
    threads = request.threads or (1 if request.is_fused else default_threads())
    suffix = f":threads={threads}" if threads > 1 else ""
    plural = "s" if threads > 1 else ""
    modelled = f"analytic:{cpu_profile(instruction_sets())}"
    cost = f"{'cpu' if request.measures else modelled}{suffix}"
    return cost, f"onnxruntime on this CPU, {threads} thread{plural}"


def _measured_as(source: str) -> str:
    """Return a processor with all of onnxruntime's optimizations."""
    kind, _, mode = source.partition(":")
    if kind != "cpu" or mode.startswith("all"):
        return source
    return f"cpu:all:{mode}".removesuffix(":")


BACKEND = Backend(
    "onnxruntime",
    (
        *KERNELS,
        *NORM_KERNELS,
        *ATTENTION_KERNELS,
        *ROTARY_KERNELS,
        *QUANTIZED_KERNELS,
        *INTEGER_KERNELS,
        *SPELLED_KERNELS,
        *SPREADING_KERNELS,
        *BLOCKED_KERNELS,
    ),
    _costs_here,
    "cpu",
    kernels_of=kernels_of,
    left_out=SUMS_OF_CONVOLUTIONS,
    as_read=_as_read,
    as_fused=_as_fused,
    more_work_of=more_work_of,
    is_everywhere=True,
    measured_as=_measured_as,
)
