"""Sliding windows over NumPy arrays: all at once, or one kernel tap at a time (no loop over positions)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


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
