"""Products, convolutions and pools as launches of our own kernels.

NVIDIA's libraries are faster; these need no more than the driver, take what the libraries refuse
(padding that differs at the two ends, pools over partial windows), and are what libraries can be
held against.
"""

from __future__ import annotations

import math

from relational_tensat.gpu.calls import Call, Convolution, Launch, Pooling, Product, Triple, Windows
from relational_tensat.gpu.codes import ACTIVATION_CODES, FLOAT_TYPES, POOL_CODES
from relational_tensat.gpu.lowering.emitter import THREADS, blocks_for

_TILE = 64
_SIMT_THREADS, _MMA_THREADS = 256, 128
#: What CUDA allows along y and z of a grid; kernels step on along z, not along y.
_MOST_BLOCKS = 65_535


def own_launch(call: Call) -> Launch:
    """Return the launch of our kernel that does what a call asks for; a launch as it is."""
    if isinstance(call, Product):
        return _product(call)
    if isinstance(call, Convolution):
        return _depthwise(call) if call.channels == 1 and call.filters < 8 else _convolution(call)
    if isinstance(call, Pooling):
        return _pooling(call)
    return call


def _cores(dtype: str, mode: str) -> str:
    """Return which kernel multiplies: float32 on CUDA cores unless tf32 is asked for."""
    return "simt" if dtype == "float32" and mode == "fp32" else "mma"


def _grid(rows: int, columns: int, depth: int) -> Triple:
    return math.ceil(columns / _TILE), math.ceil(rows / _TILE), min(depth, _MOST_BLOCKS)


def _block(cores: str) -> Triple:
    return (_SIMT_THREADS if cores == "simt" else _MMA_THREADS), 1, 1


def _product(call: Product) -> Launch:
    cores = _cores(call.dtype, call.math)
    return Launch(
        f"gemm_{cores}<{FLOAT_TYPES[call.dtype]}>",
        _grid(call.m, call.n, math.prod(call.batches)),
        _block(cores),
        {
            "c": call.c,
            "a": call.a,
            "b": call.b,
            "addend": call.addend,
            "bias": call.bias,
            "alpha": call.alpha,
            "act": ACTIVATION_CODES[call.act],
            "m": call.m,
            "n": call.n,
            "k": call.k,
            "batches": call.batches,
            "a_strides": call.a_strides,
            "b_strides": call.b_strides,
            "bias_strides": call.bias_strides,
            "transposes_a": int(call.transposes_a),
            "transposes_b": int(call.transposes_b),
        },
    )


def _convolution(call: Convolution) -> Launch:
    cores, windows = _cores(call.dtype, call.math), call.windows
    return Launch(
        f"conv_{cores}<{FLOAT_TYPES[call.dtype]}>",
        _grid(call.filters, call.batch * math.prod(windows.out), call.groups),
        _block(cores),
        {
            "dst": call.y,
            "x": call.x,
            "w": call.w,
            "addend": call.addend,
            "bias": call.bias,
            "act": ACTIVATION_CODES[call.act],
            "batch": call.batch,
            "groups": call.groups,
            "channels": call.channels,
            "filters": call.filters,
            **_walk(windows),
        },
    )


def _depthwise(call: Convolution) -> Launch:
    windows, filters = call.windows, call.groups * call.filters
    return Launch(
        f"depthwise<{FLOAT_TYPES[call.dtype]}>",
        blocks_for(call.batch * filters * math.prod(windows.out)),
        (THREADS, 1, 1),
        {
            "dst": call.y,
            "x": call.x,
            "w": call.w,
            "addend": call.addend,
            "bias": call.bias,
            "act": ACTIVATION_CODES[call.act],
            "batch": call.batch,
            "channels": call.groups,
            "filters": filters,
            **_walk(windows),
        },
    )


def _pooling(call: Pooling) -> Launch:
    windows, planes = call.windows, call.batch * call.channels
    return Launch(
        f"pool<{FLOAT_TYPES[call.dtype]}>",
        blocks_for(planes * math.prod(windows.out)),
        (THREADS, 1, 1),
        {
            "dst": call.y,
            "src": call.x,
            "kind": POOL_CODES[call.op],
            "act": ACTIVATION_CODES[call.act],
            "include_pad": int(call.include_pad),
            "planes": planes,
            **_walk(windows),
            "ends": windows.ends,
        },
    )


def _walk(windows: Windows) -> dict[str, Triple]:
    """Return how windows slide, as the kernels' arguments are called."""
    return {
        "in": windows.sizes,
        "out": windows.out,
        "kernel": windows.kernel,
        "stride": windows.stride,
        "dilation": windows.dilation,
        "begins": windows.begins,
    }
