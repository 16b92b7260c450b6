"""Placing buffers in one piece of memory, reused as soon as nothing needs what is in it.

Greedy by size: the largest buffers first, each at the lowest address at which no buffer that lives
at the same time lies (Pisarchyk and Lee, "Efficient memory management for deep neural net
inference", 2020, section 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Where buffers begin; libraries ask for 256 at most.
ALIGNMENT_BYTES = 256


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A buffer, and the first and last step in which its content is needed."""

    name: str
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Where each buffer begins, and how many bytes they take together."""

    offsets: dict[str, int]
    total_bytes: int


def place(lifetimes: Sequence[Lifetime]) -> Placement:
    """Place buffers so that no two that live at the same time overlap."""
    placed: list[tuple[Lifetime, int]] = []
    for lifetime in sorted(lifetimes, key=lambda life: (-life.nbytes, life.first, life.name)):
        placed.append((lifetime, _lowest(lifetime, placed)))
    offsets = {life.name: offset for life, offset in placed}
    total = max((offset + aligned(life.nbytes) for life, offset in placed), default=0)
    return Placement(offsets, total)


def aligned(nbytes: int) -> int:
    """Return the bytes that a buffer occupies: up to where the next one may begin."""
    return -(-nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def least_bytes(lifetimes: Sequence[Lifetime]) -> int:
    """Return the most bytes that live in one step: no placement takes fewer."""
    starts = {life.first for life in lifetimes}
    return max(
        (sum(aligned(x.nbytes) for x in lifetimes if x.first <= s <= x.last) for s in starts),
        default=0,
    )


def _lowest(buffer: Lifetime, placed: Sequence[tuple[Lifetime, int]]) -> int:
    """Return the lowest offset at which a buffer meets none that lives when it does."""
    occupied = sorted(
        (offset, offset + aligned(other.nbytes))
        for other, offset in placed
        if other.first <= buffer.last and buffer.first <= other.last
    )
    offset = 0
    for start, end in occupied:
        if start - offset >= aligned(buffer.nbytes):
            break
        offset = max(offset, end)
    return offset
