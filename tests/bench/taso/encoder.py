"""Rules as protocol buffers, written as TASO writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MATMUL, CONCAT, SPLIT, ADD, RELU = 18, 12, 13, 16, 8
ACT, NDIM, AXIS = 9, 10, 11


def varint(value: int) -> bytes:
    """Return an integer as 7 bits a byte; a negative one as 64 bits."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def integer(field: int, value: int) -> bytes:
    """Return an integer field."""
    return varint(field << 3) + varint(value)


def part(field: int, content: bytes) -> bytes:
    """Return a field that holds a message."""
    return varint(field << 3 | 2) + varint(len(content)) + content


@dataclass(frozen=True)
class Op:
    """An operator of a list; inputs are (operator, output), operators below 0 are inputs."""

    type: int
    inputs: Sequence[tuple[int, int]]
    params: Mapping[int, int]

    def encoded(self) -> bytes:
        """Return its message."""
        content = integer(1, self.type)
        for operator, output in self.inputs:
            content += part(2, integer(1, operator) + integer(2, output))
        for key, value in self.params.items():
            content += part(3, integer(1, key) + integer(2, value))
        return content


def rule(
    sources: Sequence[Op], targets: Sequence[Op], outputs: Sequence[tuple[int, int, int, int]]
) -> bytes:
    """Return a file of one rule; outputs are source and target operator, then their outputs."""
    content = b"".join(part(1, op.encoded()) for op in sources)
    content += b"".join(part(2, op.encoded()) for op in targets)
    for numbers in outputs:
        content += part(3, b"".join(integer(i, n) for i, n in enumerate(numbers, start=1)))
    return part(1, content)


def matmul(a: int, b: int) -> Op:
    """Return a product of outputs 0 of operators or inputs."""
    return Op(MATMUL, [(a, 0), (b, 0)], {ACT: 0})


def reassociation() -> bytes:
    """Return (a·b)·c = a·(b·c)."""
    return rule([matmul(-1, -4), matmul(0, -5)], [matmul(-4, -5), matmul(-1, 0)], [(1, 1, 0, 0)])
