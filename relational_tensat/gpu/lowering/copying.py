"""Moving elements between strided views, as large pieces as alignment allows."""

from __future__ import annotations

from collections.abc import Sequence

from relational_tensat.gpu.calls import Ref
from relational_tensat.gpu.codes import MOVED_TYPES
from relational_tensat.gpu.lowering.emitter import Emitter
from relational_tensat.gpu.strides import collapse, padded

#: Addresses of tensors are multiples of this, also of views.
ALIGNMENT_BYTES = 16
_RANK = 6


def widest(item_bytes: int, counts: Sequence[int]) -> int:
    """Return the bytes of the largest pieces of elements in which all of ``counts`` are whole."""
    width = item_bytes
    while width < ALIGNMENT_BYTES and all(n * item_bytes % (2 * width) == 0 for n in counts):
        width *= 2
    return width


def copy_strided(
    emitter: Emitter,
    item_bytes: int,
    sizes: Sequence[int],
    dst: tuple[Ref, Sequence[int]],
    src: tuple[Ref, Sequence[int]],
) -> None:
    """Copy between two views of the same sizes, each a place and strides.

    Raises:
        InputError: the views have more axes than the kernel walks through.
    """
    sizes, to, start = collapse(sizes, dst[1], src[1])
    if sizes and to[-1] == start[-1] == 1:  # whole runs: move them as larger elements
        places = [tensor.offset_bytes // item_bytes for tensor in (dst[0], src[0])]
        width = widest(item_bytes, [sizes[-1], *to[:-1], *start[:-1], *places])
        factor, item_bytes = width // item_bytes, width
        sizes = (*sizes[:-1], sizes[-1] // factor)
        to, start = ((*(s // factor for s in tensor[:-1]), 1) for tensor in (to, start))
    count = 1
    for size in sizes:
        count *= size
    emitter.launch_over(
        f"strided_copy<{MOVED_TYPES[item_bytes]}>",
        count,
        dst=dst[0],
        src=src[0],
        n=count,
        sizes=padded(sizes, _RANK, 1),
        dst_strides=padded(to, _RANK, 0),
        src_strides=padded(start, _RANK, 0),
    )
