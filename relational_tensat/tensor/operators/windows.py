"""Padding and output sizes of windows that slide: convolutions and pools.

One list entry per spatial dimension throughout. A window of ``kernel`` taps, ``dilation`` apart, covers
``(kernel - 1) * dilation + 1`` elements.

``windows`` gives the windows over a NumPy array all at once, ``taps`` one kernel tap at a time: neither
loops over positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.operators.onnx_form import OnnxNode, attr_ints, attr_str
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.shapes import check_length
from relational_tensat.tensor.types import AttrValue


def pad_spatial(x: Any, begins: Sequence[int], ends: Sequence[int], value: float) -> Any:
    """Pad the spatial dimensions of ``[N, C, s1, ..]`` with a number; no copy for no padding."""
    if not any((*begins, *ends)):
        return x
    inner = [slice(b, b + size) for b, size in zip(begins, x.shape[2:], strict=True)]
    sizes = [at.stop + end for at, end in zip(inner, ends, strict=True)]
    # As np.pad does, with a third of its overhead: verification pads many small tensors.
    padded: Any = np.empty((*x.shape[:2], *sizes), x.dtype, order="F" if x.flags.fnc else "C")
    padded[(..., *inner)] = x
    for axis, at in enumerate(inner, start=2):
        before: tuple[slice, ...] = (slice(None),) * axis
        padded[(*before, slice(0, at.start))] = value
        padded[(*before, slice(at.stop, None))] = value
    return padded


def taps(
    padded: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int],
    out_sizes: Sequence[int],
) -> Iterator[tuple[tuple[int, ...], Any]]:  # fmt: skip
    """Yield each kernel position with the view ``[.., *out_sizes]`` of the elements it meets.

    ``padded`` is ``[.., s1, ..]``: its last dimensions are the spatial ones.
    """
    for tap in np.ndindex(*kernel):
        slices = tuple(
            slice(t * d, t * d + (out - 1) * s + 1, s)
            for t, d, s, out in zip(tap, dilation, stride, out_sizes, strict=True)
        )
        yield tap, padded[(..., *slices)]


def windows(
    padded: Any, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int],
    out_sizes: Sequence[int],
) -> Any:  # fmt: skip
    """Return the view ``[.., *kernel, *out_sizes]`` of the elements that each tap meets everywhere.

    ``padded`` is ``[.., s1, ..]``: its last dimensions are the spatial ones.
    """
    rank = len(kernel)
    sizes = padded.shape[-rank:]
    for size, k, d, s, n in zip(sizes, kernel, dilation, stride, out_sizes, strict=True):
        if (n - 1) * s + (k - 1) * d >= size:
            raise ValueError(f"{n} windows of {k} taps reach beyond {size} elements")
    steps = padded.strides[-rank:]
    taps_apart = [step * d for step, d in zip(steps, dilation, strict=True)]
    windows_apart = [step * s for step, s in zip(steps, stride, strict=True)]
    return np.lib.stride_tricks.as_strided(
        padded,
        (*padded.shape[:-rank], *kernel, *out_sizes),
        (*padded.strides[:-rank], *taps_apart, *windows_apart),
        writeable=False,
    )


Padding: TypeAlias = str | tuple[int, ...]
Sizes: TypeAlias = Sequence[int]


def resolve_padding(
    pad: Padding, in_sizes: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the elements padded at the beginnings and at the ends.

    ``same`` is ONNX's SAME_UPPER: as many windows as strides fit, the odd element at the end.

    Raises:
        ShapeError: numbers are given, and not two non-negative ones per dimension, or there is not one
            positive number per dimension for the kernel, its strides and dilations.
    """
    rank = len(in_sizes)
    for label, values in (("kernel", kernel), ("strides", stride), ("dilations", dilation)):
        check_length("window", label, values, rank)
    if pad == "valid":
        return (0,) * rank, (0,) * rank
    if pad == "same":
        totals = [
            _same_total(*args) for args in zip(in_sizes, kernel, stride, dilation, strict=True)
        ]
        begins = tuple(total // 2 for total in totals)
        return begins, tuple(t - b for t, b in zip(totals, begins, strict=True))
    if len(pad) != 2 * rank or not all(isinstance(border, int) and border >= 0 for border in pad):
        raise ShapeError(f"pad {pad!r}, expected same, valid or {2 * rank} non-negative numbers")
    numbers = tuple(int(border) for border in pad)
    return numbers[:rank], numbers[rank:]


def _same_total(size: int, kernel: int, stride: int, dilation: int) -> int:
    windows = -(-size // stride)
    return max((windows - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)


def output_sizes(
    op: str, in_sizes: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes,
    pads: tuple[Sizes, Sizes], ceil_mode: bool = False,
) -> tuple[int, ...]:  # fmt: skip
    """Return how many windows fit.

    With ``ceil_mode``, a last window that reaches beyond the end counts if it starts inside.

    Raises:
        ShapeError: in some dimension not one window fits.
    """
    result = []
    for i, size in enumerate(in_sizes):
        reach = size + pads[0][i] + pads[1][i] - (kernel[i] - 1) * dilation[i] - 1
        if reach < 0:
            raise ShapeError(
                f"{op}: kernel {list(kernel)} does not fit into {list(in_sizes)}, padding included"
            )
        windows = reach // stride[i] + 1
        partial_start = windows * stride[i]
        if ceil_mode and reach % stride[i] and partial_start < size + pads[0][i]:
            windows += 1
        result.append(windows)
    return tuple(result)


def normalize_dilation(attrs: dict[str, AttrValue]) -> None:
    """Write dilations of 1 as ()."""
    dilation = attrs["dilation"]
    if isinstance(dilation, tuple) and all(step == 1 for step in dilation):
        attrs["dilation"] = ()


def normalize_padding(attrs: dict[str, AttrValue]) -> None:
    """Write a padding of zeros as ``valid``."""
    pad = attrs["pad"]
    if isinstance(pad, tuple) and not any(pad):
        attrs["pad"] = "valid"


def suggest_window(name: str, partial: PartialApplication, hints: Hints) -> AttrValue:
    """Suggest stride, kernel, dilation or padding for an operand ``[N, C, s1, ..]``, often a plain one."""
    choices, spatial = hints.choices, max(0, len(partial.shapes[0] or ()) - 2)
    plain = choices.below(4) == 0
    if name == "dilation":
        return () if plain else choices.choice([(), (), (2,) * spatial])
    if name in ("stride", "kernel"):
        if plain:
            return (1,) * spatial
        common = hints.stride if name == "stride" else hints.kernel
        return tuple(common[:spatial]) if choices.often() else hints.ints(spatial, 1, 3)
    match choices.weighted(2, 1, 1):
        case 0:
            return "same"
        case 1:
            return "valid"
    return hints.ints(2 * spatial, 0, 2)


def read_padding(
    node: OnnxNode, in_sizes: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes
) -> Padding:
    """Return the padding of an ONNX node by its most general name.

    Numbers that are what ``same`` gives here are named ``same`` (most rules use it; a 1x1
    kernel without padding is one), then zeros ``valid``.

    Raises:
        ShapeError: the padding is negative or of an unknown kind.
    """
    auto_pad = attr_str(node, "auto_pad", "NOTSET")
    same = resolve_padding("same", in_sizes, kernel, stride, dilation)
    match auto_pad:
        case "SAME_UPPER":
            return "same"
        case "SAME_LOWER":
            begins, ends = same[1], same[0]
        case "VALID":
            begins = ends = (0,) * len(in_sizes)
        case "NOTSET":
            numbers = attr_ints(node, "pads") or (0,) * (2 * len(in_sizes))
            begins, ends = resolve_padding(numbers, in_sizes, kernel, stride, dilation)
        case _:
            raise ShapeError(f"{node.op_type}: unknown auto_pad {auto_pad!r}")
    if (begins, ends) == same:
        return "same"
    return (*begins, *ends) if any((*begins, *ends)) else "valid"
