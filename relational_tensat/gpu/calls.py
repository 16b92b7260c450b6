"""What a plan consists of: calls of kernels, in terms of buffers that have no address yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from relational_tensat.tensor import TensorType

#: Sizes along three axes; axes that a tensor lacks are of size 1, in front.
Triple: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Ref:
    """A place in a buffer: its name, and how many bytes from its start."""

    buffer: str
    offset_bytes: int = 0


#: Stands for any place.
_ANYWHERE = Ref("")


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in memory: row-major, contiguous, at an address that 16 divides."""

    type: TensorType
    ref: Ref


#: What a kernel is given for one parameter. An address of None is 0: no such operand.
Argument: TypeAlias = Ref | int | float | tuple[int, ...] | tuple[Ref | None, ...] | None


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel of ours.

    Attributes:
        kernel: its full name, e.g. ``unary<float>``.
        grid, block: how many blocks, and threads of a block, along x, y and z.
        arguments: by parameter name.
    """

    kernel: str
    grid: Triple
    block: Triple
    arguments: Mapping[str, Argument]

    def refs(self) -> Iterator[Ref]:
        """Yield the buffers that it reads or writes."""
        for value in self.arguments.values():
            for ref in value if isinstance(value, tuple) else (value,):
                if isinstance(ref, Ref):
                    yield ref


@dataclass(frozen=True, slots=True)
class Product:
    """act(alpha A B + addend + bias): row-major A [m, k], B [k, n], C [m, n], for each of a batch.

    Attributes:
        addend: as C in type and strides.
        dtype: of all operands; sums are float32.
        math: one of ``MATH_MODES``.
        batches: sizes of three batch axes; C has them all.
        a_strides, b_strides: elements from one matrix to the next along each; 0 where repeated.
        bias_strides: likewise, and then along rows and along columns.
        act: one of ``ACTIVATION_CODES``.
        transposes_a, transposes_b: whether the factor lies there transposed, A as [k, m], B as [n, k].
    """

    c: Ref
    a: Ref
    b: Ref
    bias: Ref | None
    dtype: str
    math: str
    m: int
    n: int
    k: int
    batches: Triple
    a_strides: Triple
    b_strides: Triple
    bias_strides: tuple[int, int, int, int, int]
    act: str
    addend: Ref | None = None
    alpha: float = 1.0
    transposes_a: bool = False
    transposes_b: bool = False

    def refs(self) -> Iterator[Ref]:
        """Yield the buffers that it reads or writes."""
        yield from (self.c, self.a, self.b)
        yield from (ref for ref in (self.bias, self.addend) if ref is not None)

    def anywhere(self) -> Product:
        """Return the same product of operands that lie anywhere."""
        bias, addend = self.bias and _ANYWHERE, self.addend and _ANYWHERE
        return replace(self, c=_ANYWHERE, a=_ANYWHERE, b=_ANYWHERE, bias=bias, addend=addend)


@dataclass(frozen=True, slots=True)
class Windows:
    """How windows slide over three spatial dimensions; see ``ops/padding.py`` for the words."""

    sizes: Triple
    out: Triple
    kernel: Triple
    stride: Triple
    dilation: Triple
    begins: Triple
    ends: Triple


@dataclass(frozen=True, slots=True)
class Convolution:
    """act(x * w + addend + bias).

    x is [batch, groups · channels, sizes], w [groups · filters, channels, kernel].

    Attributes:
        addend: as y in type.
        channels, filters: of one group.
        rank: how many spatial dimensions the tensors have; the windows always have three.
    """

    y: Ref
    x: Ref
    w: Ref
    bias: Ref | None
    dtype: str
    math: str
    batch: int
    groups: int
    channels: int
    filters: int
    windows: Windows
    rank: int
    act: str
    addend: Ref | None = None

    def refs(self) -> Iterator[Ref]:
        """Yield the buffers that it reads or writes."""
        yield from (self.y, self.x, self.w)
        yield from (ref for ref in (self.bias, self.addend) if ref is not None)

    def anywhere(self) -> Convolution:
        """Return the same convolution of operands that lie anywhere."""
        bias, addend = self.bias and _ANYWHERE, self.addend and _ANYWHERE
        return replace(self, y=_ANYWHERE, x=_ANYWHERE, w=_ANYWHERE, bias=bias, addend=addend)


@dataclass(frozen=True, slots=True)
class Pooling:
    """act of the largest or mean elements: x [batch, channels, sizes], y [batch, channels, out].

    Attributes:
        op: ``max_pool`` or ``avg_pool``.
        include_pad: whether padding counts in a mean.
        rank: how many spatial dimensions the tensors have; the windows always have three.
    """

    y: Ref
    x: Ref
    op: str
    dtype: str
    batch: int
    channels: int
    windows: Windows
    rank: int
    include_pad: bool
    act: str

    def refs(self) -> Iterator[Ref]:
        """Yield the buffers that it reads or writes."""
        yield from (self.y, self.x)


Call: TypeAlias = Launch | Product | Convolution | Pooling
