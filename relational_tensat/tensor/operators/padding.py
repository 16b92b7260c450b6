"""Padding and output sizes of windows that slide: convolutions and pools.

One list entry per spatial dimension throughout. A window of ``kernel`` taps, ``dilation`` apart,
covers ``(kernel - 1) * dilation + 1`` elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.hints import Hints
from relational_tensat.tensor.operators.onnx_form import OnnxNode
from relational_tensat.tensor.operators.onnx_read import attr_ints, attr_str
from relational_tensat.tensor.operators.sampling import PartialApplication
from relational_tensat.tensor.operators.shapes import check_length
from relational_tensat.tensor.types import AttrValue

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
