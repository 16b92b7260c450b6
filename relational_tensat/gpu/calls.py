"""The calls of a plan: kernels, in terms of buffers that have no address yet.

A lowering adds calls through a ``CallEmitter``; a ``KernelLibrary``, of a device or of its double, runs
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.catalogue import FLOAT_TYPES
from relational_tensat.gpu.memory import contiguous
from relational_tensat.tensor import Array, Attrs, TensorType

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
class DeviceTensor:
    """A tensor in memory, at an address that 16 divides.

    Attributes:
        strides: elements from one to the next along each axis; None where it is row-major, in one piece.
    """

    type: TensorType
    ref: Ref
    strides: tuple[int, ...] | None = None


def strides_of(x: DeviceTensor) -> tuple[int, ...]:
    """Return how far a tensor's elements are apart along its axes."""
    return contiguous(x.type.shape) if x.strides is None else x.strides


#: The argument that a kernel is given for one parameter. An address of None is 0: the operand is absent.
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
class ProductCall:
    """act(alpha A B + addend + bias): row-major A [m, k], B [k, n], C [m, n], for each of a batch.

    Attributes:
        addend: as C in type and strides.
        dtype: of all operands; sums are float32.
        math: one of ``MATH_MODES``.
        batches: sizes of three batch axes; C has them all.
        a_strides, b_strides: elements from one matrix to the next along each; 0 where repeated.
        a_pitch, b_pitch: elements from one row of a factor, as it lies there, to the next.
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
    a_pitch: int
    b_pitch: int
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

    def anywhere(self) -> ProductCall:
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


Call: TypeAlias = Launch | ProductCall | Convolution | Pooling


#: Gives the address at which a place in a buffer lies.
Resolve: TypeAlias = Callable[[Ref], int]


class BoundCall(Protocol):
    """A call with addresses in place of buffers, ready to be started any number of times."""

    @property
    def implementation(self) -> str:
        """Which library's kernel runs it: ``kernels`` for ours, else ``cublasLt`` or ``cudnn``."""

    @property
    def workspace_bytes(self) -> int:
        """Memory that it needs while it runs."""

    def start(self, workspace: int) -> None:
        """Enqueue it, behind what was enqueued before; ``workspace`` is an address."""

    def close(self) -> None:
        """Give back what it holds beside memory; it is not started again."""


class KernelLibrary(Protocol):
    """Memory and kernels of one device."""

    def allocate(self, nbytes: int) -> int:
        """Return the address of new memory, at a multiple of 256; its content is undefined."""

    def free(self, address: int) -> None:
        """Give back what ``allocate`` returned."""

    def clear(self, address: int, nbytes: int) -> None:
        """Fill memory with zeros."""

    def write(self, address: int, data: Array) -> None:
        """Copy bytes to the device."""

    def read(self, address: int, nbytes: int) -> Array:
        """Copy bytes from the device, once all that was enqueued is done."""

    def bind(self, call: Call, resolve: Resolve) -> BoundCall:
        """Prepare a call.

        Raises:
            InputError: no kernel of this library does what it asks for.
        """

    def synchronize(self) -> None:
        """Wait for all that was enqueued."""


#: Threads of a block where nothing asks for another number.
THREADS = 256
#: More blocks than this queue up: kernels step through the rest. A GPU has 100 to 200
#: multiprocessors, of 8 such blocks each.
_MOST_BLOCKS = 4096
#: Kernels count elements in 32 bits.
_MOST_ELEMENTS = 2**31 - 1


@dataclass(slots=True)
class CallEmitter:
    """Collects the calls of one plan.

    Attributes:
        math: how float32 is multiplied, one of ``MATH_MODES``.
        calls: so far, in the order in which they run.
        sizes_bytes: of every buffer that was made here, by name.
    """

    math: str = "fp32"
    calls: list[Call] = field(default_factory=list)
    sizes_bytes: dict[str, int] = field(default_factory=dict)

    def tensor(self, kind: TensorType) -> DeviceTensor:
        """Return a tensor in a buffer of its own, with nothing in it yet.

        Raises:
            InputError: it has more elements than kernels count.
        """
        check_size(kind)
        name = f"t{len(self.sizes_bytes)}"
        self.sizes_bytes[name] = kind.nbytes
        return DeviceTensor(kind, Ref(name))

    def launch(self, kernel: str, grid: Triple, block: Triple, /, **arguments: Argument) -> None:
        """Add a launch of one of our kernels."""
        self.calls.append(Launch(kernel, grid, block, arguments))

    def launch_over(self, kernel: str, count: int, /, **arguments: Argument) -> None:
        """Add a launch of a kernel in which a thread takes one of ``count`` things after another."""
        self.launch(kernel, blocks_for(count), (THREADS, 1, 1), **arguments)


class LoweredNode(NamedTuple):
    """A node of a graph, and who takes the calls that it is lowered to.

    Attributes:
        inputs: the operands' tensors; a tuple operand as its parts.
        output: the result's type, of several results the types.
        attrs: canonical.
    """

    emitter: CallEmitter
    op: str
    inputs: tuple[DeviceTensor, ...]
    output: Any
    attrs: Attrs


def check_size(kind: TensorType) -> None:
    """Refuse a tensor of more elements than kernels count.

    Raises:
        InputError: it is one.
    """
    if kind.size > _MOST_ELEMENTS:
        raise InputError(f"GPU kernels take tensors of under 2^31 elements, not {kind}")


def blocks_for(count: int, per_block: int = THREADS) -> Triple:
    """Return a grid of so many blocks that each has about ``per_block`` things to do."""
    return max(1, min(math.ceil(count / per_block), _MOST_BLOCKS)), 1, 1


def float_type(op: str, kind: TensorType) -> str:
    """Return what kernels call a tensor's element type.

    Raises:
        InputError: there are no kernels for it.
    """
    if kind.dtype not in FLOAT_TYPES:
        known = ", ".join(FLOAT_TYPES)
        raise InputError(f"no GPU kernel for {op} of {kind.dtype}, only of {known}")
    return FLOAT_TYPES[kind.dtype]
