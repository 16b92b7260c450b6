"""Graphs of one model at several sizes of its dynamic dims, and files of their kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.models.builder import GraphBuilder
from relational_tensat.custom_ops.calls import ops_of_file
from relational_tensat.custom_ops.library import KernelOp
from relational_tensat.custom_ops.part_calls import graph_of
from relational_tensat.custom_ops.part_candidates import candidates_of
from relational_tensat.custom_ops.sized_parts import SizedParts
from relational_tensat.custom_ops.timed_part import node_of
from relational_tensat.formats import save_model
from relational_tensat.mugraph.fusion.candidates import KernelCandidate
from relational_tensat.tensor import Graph

OPSET = 20
#: Of a batch and a sequence: the first is what parts are timed at, 1 among the others.
SIZES = ((2, 16), (3, 5), (5, 7), (2, 11), (7, 3), (1, 5), (3, 1), (1, 1))
Made = Callable[[int, int], Graph]


def normed(batch: int, sequence: int, width: int = 16) -> Graph:
    """A norm of a sum whose second part all of a batch have, scaled by what all rows have."""
    b = GraphBuilder("normed")
    x, y = b.input("x", batch, sequence, width), b.input("y", sequence, width)
    added = b.op("add", b.op("tanh", x), y)
    mean = b.op("reduce_mean", added, axes=(2,), keepdims=True)
    return b.build(b.op("mul", b.op("sub", added, mean), b.input("gain", width)))


def turned(batch: int, sequence: int, heads: int = 3, width: int = 8) -> Graph:
    """Heads outside of rows, of what has them within."""
    b = GraphBuilder("turned")
    x = b.op("transpose", b.input("x", batch, sequence, heads, width), perm=(0, 2, 1, 3))
    scaled = b.op("mul", x, b.input("angles", sequence, width))
    return b.build(b.op("tanh", scaled))


def windowed(batch: int, sequence: int, side: int = 6, width: int = 8) -> Graph:
    """Windows of images, all of one dim, that are normalized; a sequence is left out."""
    b = GraphBuilder(f"windowed{0 * sequence}")
    x = b.op(
        "reshape",
        b.input("x", batch, side, side, width),
        shape=(batch, 2, side // 2, 2, side // 2, width),
    )
    x = b.op("transpose", x, perm=(0, 1, 3, 2, 4, 5))
    x = b.op("reshape", x, shape=(batch * 4, side * side // 4, width))
    mean = b.op("reduce_mean", x, axes=(2,), keepdims=True)
    return b.build(b.op("mul", b.op("sub", x, mean), b.input("gain", width)))


def convolved(batch: int, sequence: int, side: int = 6, width: int = 24, stride: int = 1) -> Graph:
    """Tokens of images, of which each channel is convolved; a sequence is left out."""
    b = GraphBuilder(f"convolved{0 * sequence}")
    x = b.op("transpose", b.input("x", batch, side, side, width), perm=(0, 3, 1, 2))
    attrs = {"stride": (stride,) * 2, "pad": (1, 0, 1, 2), "dilation": (), "act": "relu"}
    x = b.op("conv", x, b.input("w", width, 1, 3, 3), b.input("b", width), **attrs)
    return b.build(b.op("sigmoid", b.op("transpose", x, perm=(0, 2, 3, 1))))


def unwindowed(batch: int, sequence: int, side: int = 6, width: int = 8) -> Graph:
    """Images of windows, and a sum."""
    b = GraphBuilder(f"unwindowed{0 * sequence}")
    x = b.input("x", batch * 4, side * side // 4, width)
    x = b.op("reshape", x, shape=(batch, 2, 2, side // 2, side // 2, width))
    x = b.op(
        "reshape", b.op("transpose", x, perm=(0, 1, 3, 2, 4, 5)), shape=(batch, side * side, width)
    )
    return b.build(b.op("tanh", b.op("add", x, b.input("y", batch, side * side, width))))


def parted(batch: int, sequence: int, heads: int = 3, width: int = 8) -> Graph:
    """Heads outside of rows, of what has one dim of both."""
    b = GraphBuilder("parted")
    x = b.op("add", b.input("x", batch, sequence, heads * width), b.input("bias", heads * width))
    x = b.op("reshape", x, shape=(batch, sequence, heads, width))
    return b.build(b.op("tanh", b.op("transpose", x, perm=(0, 2, 1, 3))))


def joined(batch: int, sequence: int, heads: int = 3, width: int = 8) -> Graph:
    """Rows of heads that were outside of them."""
    b = GraphBuilder("joined")
    x = b.op("transpose", b.input("x", batch, heads, sequence, width), perm=(0, 2, 1, 3))
    x = b.op("reshape", x, shape=(batch, sequence, heads * width))
    return b.build(b.op("mul", b.op("tanh", x), b.input("gain", heads * width)))


def gated(batch: int, sequence: int, width: int = 3) -> Graph:
    """A function of elements, the innermost dim of which is dynamic, and of one number."""
    b = GraphBuilder("gated")
    x, y = (b.input(name, batch, width, sequence) for name in ("x", "y"))
    return b.build(b.op("mul", b.op("gelu", x), b.op("add", y, b.input("one", 1, 1, 1))))


def parts_of(made: Made, sizes: Sequence[tuple[int, int]] = SIZES) -> SizedParts:
    """Return the parts of a model."""
    return SizedParts([made(*each) for each in sizes], OPSET)


def largest(parts: SizedParts) -> KernelCandidate:
    """Return the part of the most nodes, at the first sizes."""
    return parts.at_base(max(candidates_of(parts.searched), key=lambda each: len(each.nodes)))


def fused_file(parts: SizedParts, file: Path) -> KernelOp:
    """Write the largest part as one call of its kernel; return the custom op."""
    base = largest(parts)
    kernel = parts.make(base)
    call = graph_of(base, [node_of(base, kernel.key)])
    save_model(call, file, OPSET)
    (op,) = ops_of_file(file, call, [kernel])
    return op
