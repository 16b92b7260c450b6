"""Sliding windows over NumPy arrays, one kernel tap at a time (no loop over positions)."""

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
