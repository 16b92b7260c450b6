"""Sliding windows over NumPy arrays: all at once, or one kernel tap at a time (no loop over positions)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def pad_spatial(x: Any, begins: Sequence[int], ends: Sequence[int], value: float) -> Any:
    """Pad the spatial dimensions of ``[N, C, s1, ..]`` with a number; no copy for no padding."""
    if not any((*begins, *ends)):
        return x
    return np.pad(x, [(0, 0), (0, 0), *zip(begins, ends, strict=True)], constant_values=value)


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
    axes = range(-rank, 0)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    all_windows: Any = np.lib.stride_tricks.sliding_window_view(padded, spans, tuple(axes))
    positions = (slice(0, (n - 1) * s + 1, s) for n, s in zip(out_sizes, stride, strict=True))
    patches = all_windows[(..., *positions, *(slice(None, None, d) for d in dilation))]
    return np.moveaxis(patches, axes, range(padded.ndim - rank, padded.ndim))
