"""What kernels cost with several threads, by a profile of one.

onnxruntime shares the work of most kernels out to all threads, however small they are: products,
convolutions, pools, norms, what reorders. Those that go through elements one by one, or copy them, it
leaves to one thread until there is enough of it. Arithmetic and activations are nearly as much quicker as
there are threads; weights that come from main memory hardly, since one thread reads about as fast as all.
To share out costs something each time, and so does waking the threads, which sleep a while after a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from relational_tensat.cost.device import Configuration
from relational_tensat.cost.profile import Profile
from relational_tensat.cost.source import Prices

#: What is left to one thread while there is little of it.
_ALONE = frozenset({
    "abs", "add", "cast", "clip", "concat", "dequantize", "div", "dynamic_quantize", "equal", "erf",
    "exp", "expand", "floor", "gather", "greater", "greater_equal", "hard_sigmoid", "hard_swish",
    "is_nan", "less", "less_equal", "log", "logical_and", "logical_not", "logical_or", "maximum",
    "minimum", "mul", "neg", "opaque", "ort_blocked_activation", "ort_blocked_concat",
    "ort_blocked_mul", "ort_blocked_spread", "ort_from_channels_last", "ort_heads_rotary",
    "ort_quantized_add", "ort_sum", "ort_to_channels_last", "pad", "pow", "quantize", "reciprocal",
    "relu", "sigmoid", "slice", "split", "sqrt", "sub", "tanh", "where",
})  # fmt: skip


def in_threads(prices: Prices) -> Prices:
    """Return prices of kernels by a profile whose ``n_threads`` they may be shared out to."""

    def price_us(profile: Profile, configuration: Configuration) -> float:
        alone_us = prices(profile, configuration)
        if profile.n_threads == 1 or not _is_shared_out(profile, configuration.op, alone_us):
            return alone_us
        return prices(_shared_out(profile), configuration)

    return price_us


def _is_shared_out(profile: Profile, op: str, alone_us: float) -> bool:
    if op in profile.free or alone_us == 0:
        return False
    return op not in _ALONE or alone_us >= profile.threads.alone_us


def _shared_out(profile: Profile) -> Profile:
    """Return a profile's rates where all threads work on a kernel."""
    threads, more = profile.threads, profile.n_threads - 1
    faster, weights_faster = 1 + more * threads.speedup, 1 + more * threads.weight_speedup
    peaks = profile.peak_flops_per_s
    return replace(
        profile,
        peak_flops_per_s=_times(peaks, faster) if isinstance(peaks, Mapping) else peaks * faster,
        elements_per_s=_times(profile.elements_per_s, faster),
        cache_bandwidth_bytes_per_s=profile.cache_bandwidth_bytes_per_s * faster,
        weight_cache_bandwidth_bytes_per_s=profile.weight_cache_bandwidth_bytes_per_s * faster,
        weight_bandwidth_bytes_per_s=profile.weight_bandwidth_bytes_per_s * weights_faster,
        bandwidth_bytes_per_s=profile.bandwidth_bytes_per_s * weights_faster,
        launch_us=profile.launch_us + threads.share_us,
    )


def _times(rates: Mapping[str, float], factor: float) -> Mapping[str, float]:
    return {name: rate * factor for name, rate in rates.items()}
