"""Which parts of a graph may be kernels."""

from __future__ import annotations

import pytest

from bench.models.builder import GraphBuilder
from relational_tensat.custom_ops.part_candidates import candidates_of, is_slow


@pytest.mark.parametrize(
    ("channels", "window", "stride", "is_turned", "expected"),
    [
        (32, 3, 1, False, False),
        (32, 3, 2, False, True),
        (32, 3, 2, True, False),
        (32, 5, 1, False, True),
        (20, 5, 1, False, False),  # fits into no blocks of onnxruntime's
        (32, 5, 1, True, False),
    ],
)
def test_onnxruntime_convolves_some_plain_images_faster(
    channels: int, window: int, stride: int, is_turned: bool, expected: bool
) -> None:
    b = GraphBuilder("image")
    x = b.input("x", *((1, 8, 8, channels) if is_turned else (1, channels, 8, 8)))
    read = b.op("transpose", x, perm=(0, 3, 1, 2)) if is_turned else x
    attrs = {"stride": (stride,) * 2, "pad": (window // 2,) * 4, "dilation": (), "act": "none"}
    image = b.op("conv", read, b.input("w", channels, 1, window, window), **attrs)
    graph = b.build(b.op("relu", image))
    parts = [part for part in candidates_of(graph) if any(n.op == "conv" for n in part.nodes)]
    assert parts and all(is_slow(part) is expected for part in parts)
