"""Tensors of a Triton program, and how long its loop is and how many warps it has so that they fit.

A tensor is an expression, and which index variable each of its axes runs over. Triton's sizes are powers of
2, so an axis may be longer than its variable: the elements beyond are *padding*, which holds zeros where it
was loaded and anything after a function of it. So is what a last tile lacks.

Sizes are chosen for CUDA, where a product reads shared memory as it goes. Triton has both operands of a
product in registers, and those of several iterations in shared memory, so its tiles are smaller. The loop
takes more and shorter steps, if that gives the same sum. A kernel without one gets one if its products'
operands do not fit. A kernel that is still larger gets more warps.

Triton's shared memory is estimated before it compiles: of the 45 kernels of the paper's benchmarks exactly
for half, and else within 0.6 and 1.8 times the compiler's figure. On some architectures an operand stays in
registers, or results change places among threads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims
from relational_tensat.mugraph.graph.mugraph import WIDE_BYTES, Kernel, Operation
from relational_tensat.mugraph.graph.rewrites import flat_steps
from relational_tensat.mugraph.graph.validity import BlockStage, BlockTensors, block_tensors
from relational_tensat.mugraph.kernels.indices import end_name
from relational_tensat.mugraph.kernels.loop_rewrites import (
    PAIRS,
    multiplied,
    with_loop,
    with_shorter_steps,
)
from relational_tensat.mugraph.kernels.statements import identifier

#: The least length of a product's sum in tensor cores, of any element type.
LEAST_PRODUCT = 16


@dataclass(frozen=True, slots=True)
class TritonValue:
    """A tensor in a Triton program.

    Attributes:
        text: an expression.
        axes: a variable and its size for each axis; sizes are those without padding.
        is_wide: whether elements are float32; otherwise they are of the kernel's element type.
    """

    text: str
    axes: Dims
    is_wide: bool

    @property
    def wide(self) -> str:
        """The expression with elements of float32."""
        return self.text if self.is_wide else f"{self.text}.to(tl.float32)"


class Axes:
    """Lengths of axes, and the names of the indices along them."""

    def __init__(self, multiplied: Collection[str], looped: Collection[str] = ()) -> None:
        """Begin.

        Args:
            multiplied: the variables no axis of which is shorter than tensor cores need.
            looped: those that the loop splits; its last iteration may have fewer elements.
        """
        self._multiplied = frozenset(multiplied)
        self.looped = frozenset(looped)
        self._indices: dict[Dim, str] = {}

    def length(self, dim: Dim) -> int:
        """Return a power of 2 that is at least as long."""
        least = LEAST_PRODUCT if dim.variable in self._multiplied else 1
        return max(1 << (dim.size - 1).bit_length(), least)

    def shape(self, axes: Sequence[Dim]) -> list[int]:
        """Return the lengths of axes."""
        return [self.length(dim) for dim in axes]

    def index(self, dim: Dim) -> str:
        """Return the name of the indices 0, 1, … along an axis."""
        if dim not in self._indices:
            plain = f"i_{identifier(dim.variable)}"
            taken = plain in self._indices.values()
            self._indices[dim] = f"{plain}_{dim.size}" if taken else plain
        return self._indices[dim]

    def declarations(self) -> list[str]:
        """Return a line for each index that was used."""
        return [f"{name} = tl.arange(0, {self.length(dim)})" for dim, name in self._indices.items()]

    def along(self, dim: Dim, axes: Sequence[Dim]) -> str:
        """Return the indices along one of several axes, to be broadcast over the others."""
        return f"{self.index(dim)}{_places([other == dim for other in axes])}"

    def mask(self, axes: Sequence[Dim], only: Sequence[str] = ()) -> str:
        """Return where elements are no padding, or "".

        Args:
            axes: of the tensor.
            only: the variables whose padding counts; all, if none is named.
        """
        parts = [
            f"({self.along(dim, axes)} < {end_name(dim.variable) if dim.whole else dim.size})"
            for dim in axes
            if self.is_padded(dim) and (not only or dim.variable in only)
        ]
        return " & ".join(parts)

    def is_padded(self, dim: Dim) -> bool:
        """Whether an axis is longer than its variable, in the last tile at least."""
        return dim.whole > 0 or self.length(dim) != dim.size

    def aligned(self, value: TritonValue, axes: Sequence[Dim], text: str) -> str:
        """Return an expression of a tensor's axes as one of these axes, which include them."""
        order = [dim for dim in axes if dim in value.axes]
        if order != list(value.axes):
            places = [value.axes.index(dim) for dim in order]
            text = f"tl.permute({text}, {places})"
        if len(order) < len(axes) and value.axes:
            text = f"{_atom(text)}{_places([dim in value.axes for dim in axes])}"
        return text

    def spread(self, value: TritonValue, axes: Sequence[Dim], text: str) -> str:
        """Return the same with axes that it lacks repeated, rather than of length 1."""
        aligned = self.aligned(value, axes, text)
        if set(value.axes) == set(axes) or not axes:
            return aligned
        return f"tl.broadcast_to({aligned}, {self.shape(axes)})"

    def matrix(self, value: TritonValue, groups: Sequence[Dims], text: str) -> str:
        """Return an expression with the axes of each group as one; the first group may be absent."""
        present = [group for place, group in enumerate(groups) if place or group]
        axes = [dim for group in present for dim in group]
        text = self.spread(value, axes, text)
        if all(len(group) == 1 for group in present):
            return text
        return f"tl.reshape({text}, {[count_of(self.shape(group)) for group in present]})"


def real(dims: Dims) -> Dims:
    """Return the dims that an axis stands for: those of more than one element."""
    return tuple(dim for dim in dims if dim.size > 1)


def union(values: Sequence[TritonValue]) -> Dims:
    """Return the axes of several tensors together, those of the one that has most first."""
    most = max(values, key=lambda value: len(value.axes)).axes
    more = (dim for value in values for dim in value.axes)
    return tuple(dict.fromkeys([*most, *more]))


def renamed(value: TritonValue, old: str, new: str) -> TritonValue:
    """Return a tensor with another name of a variable."""
    axes = (Dim(new, dim.size) if dim.variable == old else dim for dim in value.axes)
    return replace(value, axes=tuple(axes))


def count_of(sizes: Sequence[int]) -> int:
    """Return the product of lengths."""
    result = 1
    for size in sizes:
        result *= size
    return result


def _atom(text: str) -> str:
    """Return an expression that a subscript may follow."""
    is_call = text.endswith(")") and text.startswith(("tl.", "("))
    return text if text.isidentifier() or is_call else f"({text})"


def _places(present: Sequence[bool]) -> str:
    """Return a subscript that has an axis of length 1 where one is absent; empty where none is."""
    if all(present):
        return ""
    return f"[{', '.join(':' if here else 'None' for here in present)}]"


#: Of shared memory that a block may have on an A100; later devices have more.
LEAST_SHARED_BYTES = 163 << 10
#: The most that any device has.
MOST_SHARED_BYTES = 227 << 10
#: Iterations whose tiles are on their way at once: Triton's own number, where they fit.
MOST_STAGES = 3


def operand_bytes(
    kernel: Kernel,
    device: Mapping[str, Dims],
    dtype: str = "float16",
    wide: Collection[str] = (),
    stages: int = MOST_STAGES,
    only_tiles: bool = False,
) -> int:
    """Return the bytes of the tensors that products read, of tiles of a loop for all stages but one.

    Args:
        kernel: with the loop that it is emitted with.
        device: the dims of its operands.
        dtype: of elements, which products read.
        wide: the operands in device memory that are float32.
        stages: of the loop.
        only_tiles: whether what is computed, which may stay in registers, is left out.
    """
    tensors, steps = block_tensors(kernel, device), flat_steps(kernel.block.steps)
    axes = Axes(multiplied(steps, tensors.dims))
    iterators = {iterator.output: iterator for iterator in kernel.block.iterators}
    products = [step for step in steps if isinstance(step, Operation) and step.op in PAIRS]
    total = 0
    for name in {operand for step in products for operand in step.operands} & tensors.dims.keys():
        is_tile = name in iterators
        if only_tiles and not is_tile:
            continue
        is_wide = dtype == "float32" or (is_tile and iterators[name].tensor in wide)
        item_bytes = WIDE_BYTES if is_wide else 2
        copies = max(stages - 1, 1) if is_tile and tensors.stages[name] is BlockStage.LOOP else 1
        total += count_of(axes.shape(real(tensors.dims[name]))) * item_bytes * copies
    return total


def check_tiles(
    kernel: Kernel, device: Mapping[str, Dims], dtype: str, wide: Collection[str]
) -> None:
    """Check that the tiles that products read, of one iteration, fit shared memory of some device.

    Raises:
        InputError: they do not.
    """
    needed = operand_bytes(kernel, device, dtype, wide, stages=1, only_tiles=True)
    if needed > MOST_SHARED_BYTES:
        raise InputError(
            f"{kernel.name}: Triton needs some {needed:,} bytes of shared memory for a block's tiles, "
            f"more than the {MOST_SHARED_BYTES:,} of any device"
        )


def stages_of(kernel: Kernel, device: Mapping[str, Dims], dtype: str, wide: Collection[str]) -> int:
    """Return how many iterations' tiles are on their way at once: fewer than 3 where these do not fit."""
    for stages in range(MOST_STAGES, 1, -1):
        if operand_bytes(kernel, device, dtype, wide, stages) <= LEAST_SHARED_BYTES:
            return stages
    return 1


#: Elements of a tile that 4 warps have room for beside the rest: 64 x 128, 32 registers a thread.
_MOST_ELEMENTS = 8192
_LEAST_WARPS, _MOST_WARPS = 4, 8
#: A step of the loop is no shorter: of 32 elements a tensor core's products have two instructions.
_SHORTEST = 32


def fitted(
    kernel: Kernel,
    device: Mapping[str, Dims],
    dtype: str = "float16",
    wide: Collection[str] = (),
) -> Kernel:
    """Return a kernel with the fewest iterations whose tiles 4 warps have room for.

    It is the same where the loop cannot be longer, or no tile of it is too large.

    Args:
        device: the dims of its operands.
        dtype: of elements.
        wide: the operands that are float32.
    """
    if operand_bytes(kernel, device, dtype, wide) > LEAST_SHARED_BYTES:
        kernel = with_loop(kernel, device) or kernel
    while _largest(kernel, device, in_loop=True) > _MOST_ELEMENTS:
        shorter = with_shorter_steps(kernel, device, _SHORTEST)
        if shorter is None:
            break
        kernel = shorter
    return kernel


def warps_of(kernel: Kernel, device: Mapping[str, Dims]) -> int:
    """Return how many warps a block has, so that a thread's share of the largest tensor is small.

    Beside it, a thread has its share of the loop's tiles that functions read: no product takes these
    from shared memory.
    """
    warps = _LEAST_WARPS
    elements = _largest(kernel, device, in_loop=False) + _read_by_functions(kernel, device)
    while warps < _MOST_WARPS and elements * _LEAST_WARPS > _MOST_ELEMENTS * warps:
        warps *= 2
    return warps


def _largest(kernel: Kernel, device: Mapping[str, Dims], in_loop: bool) -> int:
    """Return the elements of a block's largest tensor, with padding; of its loop's only, or of all."""
    tensors = block_tensors(kernel, device)
    found = (
        elements
        for name, elements in _elements(kernel, tensors).items()
        if not in_loop or tensors.stages[name] is BlockStage.LOOP
    )
    return max(found, default=1)


def _read_by_functions(kernel: Kernel, device: Mapping[str, Dims]) -> int:
    """Return the elements of the loop's tiles that something but a product reads."""
    tensors = block_tensors(kernel, device)
    elements, steps = _elements(kernel, tensors), flat_steps(kernel.block.steps)
    functions = [s for s in steps if not (isinstance(s, Operation) and s.op in PAIRS)]
    read = {name for step in functions for name in step.operands}
    tiles = {iterator.output for iterator in kernel.block.iterators if iterator.fmap}
    return sum(elements[name] for name in tiles & read)


def _elements(kernel: Kernel, tensors: BlockTensors) -> dict[str, int]:
    axes = Axes(multiplied(flat_steps(kernel.block.steps), tensors.dims))
    return {name: count_of(axes.shape(real(dims))) for name, dims in tensors.dims.items()}
