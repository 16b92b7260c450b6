"""Calls of NVIDIA's libraries, in their own terms, and launches of our own kernels for the rest.

NVIDIA's libraries are faster. Our kernels need no more than the driver. They take cases that the libraries
refuse (padding that differs at the two ends, pools over partial windows), and libraries can be compared
with them. All of this is arithmetic on calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from relational_tensat.gpu.calls import (
    THREADS,
    Argument,
    Call,
    Convolution,
    Launch,
    Pooling,
    ProductCall,
    Ref,
    Triple,
    Windows,
    blocks_for,
)
from relational_tensat.gpu.catalogue import (
    ACTIVATION_CODES,
    BINARY_CODES,
    FLOAT_TYPES,
    MOVED_TYPES,
    PAD_MODE_CODES,
    POOL_CODES,
    UNARY_CODES,
)
from relational_tensat.gpu.memory import collapse, contiguous, item_bytes, padded

_TILE = 64
_SIMT_THREADS, _MMA_THREADS = 256, 128
#: CUDA's limit along y and z of a grid; kernels step on along z, not along y.
_MOST_BLOCKS = 65_535


def own_launch(call: Call) -> Launch:
    """Return the launch of our kernel that does what a call asks for; a launch as it is."""
    if isinstance(call, ProductCall):
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


def _product(call: ProductCall) -> Launch:
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
            "a_strides": (*call.a_strides, call.a_pitch),
            "b_strides": (*call.b_strides, call.b_pitch),
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


#: Functions that cuBLASLt applies on its way out; its GELU is the approximation by tanh.
BLAS_ACTIVATIONS = ("none", "relu", "gelu_tanh")


@dataclass(frozen=True, slots=True)
class BlasProduct:
    """A product as cuBLAS sees it: column-major, so transposed, C' = B' A'.

    Attributes:
        rows, columns, depth: of C' [n, m]; B' is [n, k], A' is [k, m].
        a_pitch, b_pitch: elements from one column of a factor, as it lies there, to the next: its leading
            dimension.
        count: products in the batch.
        a_stride, b_stride, c_stride: elements from one to the next.
        bias: whether cuBLAS adds it, a number per row of C'.
        act: the activation that cuBLAS applies.
        rest: the part of bias and activation left for our kernel; None if cuBLAS does it all.
    """

    rows: int
    columns: int
    depth: int
    count: int
    a_stride: int
    b_stride: int
    c_stride: int
    a_pitch: int
    b_pitch: int
    bias: bool
    act: str
    rest: Launch | None


def blas_product(call: ProductCall, *, fuses: bool = True) -> BlasProduct | None:
    """Return a product in cuBLAS's terms, None where its batch has several axes of strides.

    Args:
        fuses: whether cuBLAS is asked for bias and activation, where it has them.
    """
    sizes, a, b, _ = collapse(call.batches, call.a_strides, call.b_strides, call.bias_strides[:3])
    if len(sizes) > 1:
        return None
    per_column = call.bias is not None and call.bias_strides == (0, 0, 0, 0, 1)
    fused = fuses and (call.bias is None or per_column) and call.act in BLAS_ACTIVATIONS
    has_epilogue = call.bias is not None or call.act != "none"
    rest = _product_epilogue(call) if has_epilogue and not fused else None
    return BlasProduct(
        rows=call.n,
        columns=call.m,
        depth=call.k,
        count=math.prod(call.batches),
        a_stride=a[0] if a else 0,
        b_stride=b[0] if b else 0,
        c_stride=call.m * call.n,
        a_pitch=call.a_pitch,
        b_pitch=call.b_pitch,
        bias=fused and call.bias is not None,
        act=call.act if fused else "none",
        rest=rest,
    )


def _product_epilogue(call: ProductCall) -> Launch:
    """Return the launch that adds a product's bias and applies its activation, in place."""
    sizes = (*call.batches, call.m, call.n)
    return _epilogue(call.dtype, call.c, call.bias, sizes, call.bias_strides, call.act)


def cudnn_fuses(call: Convolution) -> bool:
    """Whether cuDNN does all of a convolution's way out in its own call: addend, bias, relu or nothing."""
    adds = call.addend is not None or call.bias is not None
    return call.act == "relu" or (adds and call.act == "none")


def convolution_epilogue(call: Convolution) -> Launch | None:
    """Return the launch that adds a convolution's bias and applies its activation, in place."""
    if call.bias is None and call.act == "none":
        return None
    sizes = (call.batch, call.groups * call.filters, math.prod(call.windows.out))
    return _epilogue(call.dtype, call.y, call.bias, sizes, (0, 1, 0), call.act)


def _epilogue(
    dtype: str, y: Ref, bias: Ref | None, sizes: Sequence[int], strides: Sequence[int], act: str
) -> Launch:
    kind, count = FLOAT_TYPES[dtype], math.prod(sizes)
    grid = blocks_for(count * item_bytes(dtype) // 16 + 1)
    if bias is None:
        arguments: dict[str, Argument] = {
            "dst": y,
            "src": y,
            "op": UNARY_CODES[act],
            "n": count,
            "low": 0.0,
            "high": 0.0,
            "sizes": padded((count,), 5, 1),
            "src_strides": padded((1,), 5, 0),
        }
        return Launch(f"unary<{kind}>", grid, (THREADS, 1, 1), arguments)
    shape, left, right = collapse(sizes, contiguous(sizes), strides)
    return Launch(
        f"binary<{kind}>",
        grid if len(shape) <= 1 else blocks_for(count),
        (THREADS, 1, 1),
        {
            "dst": y,
            "a": y,
            "b": bias,
            "op": BINARY_CODES["add"],
            "act": ACTIVATION_CODES[act],
            "n": count,
            "sizes": padded(shape, 5, 1),
            "a_strides": padded(left, 5, 0),
            "b_strides": padded(right, 5, 0),
        },
    )


def even_padding(windows: Windows) -> bool:
    """Whether padding both ends by ``begins`` gives the windows that there are.

    cuDNN knows no other padding. Padding beyond the last window is never read, so the ends may differ as
    long as the number of windows does not.
    """
    return all(
        (size + 2 * begin - (kernel - 1) * dilation - 1) // stride + 1 == out
        for size, begin, kernel, dilation, stride, out in zip(
            windows.sizes, windows.begins, windows.kernel, windows.dilation, windows.stride,
            windows.out, strict=True,
        )
    )  # fmt: skip


def with_padded_operand(call: Convolution, padded_x: Ref) -> tuple[Launch, Convolution]:
    """Return the launch that pads the operand, and the convolution without padding that is left.

    Args:
        padded_x: where the padded operand goes; ``padded_bytes`` says how large it is.
    """
    windows = call.windows
    sizes = _padded_sizes(windows)
    planes = call.batch * call.groups * call.channels
    count = planes * math.prod(sizes)
    pad = Launch(
        f"pad<{MOVED_TYPES[item_bytes(call.dtype)]}>",
        blocks_for(count),
        (THREADS, 1, 1),
        {
            "dst": padded_x,
            "src": call.x,
            "mode": PAD_MODE_CODES["constant"],
            "value": 0,
            "n": count,
            "dst_sizes": padded((planes, *sizes), 6, 1),
            "src_sizes": padded((planes, *windows.sizes), 6, 1),
            "begins": padded(windows.begins, 6, 0),
        },
    )
    bare = replace(windows, sizes=sizes, begins=(0, 0, 0), ends=(0, 0, 0))
    return pad, replace(call, x=padded_x, windows=bare)


def padded_bytes(call: Convolution) -> int:
    """Return the bytes of a convolution's operand with its padding."""
    planes = call.batch * call.groups * call.channels
    return planes * math.prod(_padded_sizes(call.windows)) * item_bytes(call.dtype)


def _padded_sizes(windows: Windows) -> tuple[int, int, int]:
    columns = zip(windows.begins, windows.sizes, windows.ends, strict=True)
    a, b, c = (begin + size + end for begin, size, end in columns)
    return a, b, c


def cudnn_takes_pool(call: Pooling) -> bool:
    """Whether cuDNN has this pool: even padding that divides as it does, no dilation, no activation."""
    windows = call.windows
    plain = call.act == "none" and windows.dilation == (1, 1, 1)
    padded_evenly = windows.begins == windows.ends
    counts_alike = call.op == "max_pool" or not call.include_pad or padded_evenly
    return plain and counts_alike and even_padding(windows)
