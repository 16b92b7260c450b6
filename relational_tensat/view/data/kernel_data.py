"""Kernels, as a page draws them: μGraphs, level by level, and the operators that they replace.

A tensor is called by its name within its level. Dims are texts such as ``h=2 q=256``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MuNode:
    """A box of a level.

    Attributes:
        id: the tensor that it makes, or stores; unique within the level.
        kind: ``tensor`` (in device memory), ``library``, ``kernel``, ``load``, ``store``, ``operator``,
            ``accumulator`` or ``thread``.
        title: the operator, or the tensor.
        about: attributes, maps; a line each.
        dims: of what it makes.
        inputs: ids of boxes of the same level.
        stage: of a block's: ``before``, ``loop`` or ``after``; "" where there is no loop.
        kernel: index of the kernel in ``MuDrawing.kernels``; None for other nodes.
        inner: the nodes within it, of a thread graph.
    """

    id: str
    kind: str
    title: str
    about: tuple[str, ...]
    dims: str
    inputs: tuple[str, ...]
    stage: str
    kernel: int | None
    inner: tuple[MuNode, ...]


@dataclass(frozen=True, slots=True)
class MuTransfer:
    """The bytes that all blocks load or store of a tensor; see ``mugraph.sizing.transfers``.

    Attributes:
        maps: which variable each axis of the grid splits (of a result: makes longer), and which one the
            loop traverses; φ for none.
        tile: dims of what a block moves at a time.
    """

    tensor: str
    is_load: bool
    maps: str
    tile: str
    moved_bytes: int
    tensor_bytes: int


@dataclass(frozen=True, slots=True)
class MuKernel:
    """A kernel: its grid and loop, its transfers, and the work of one block.

    Attributes:
        grid: the extents of the axes x, y, z that there are.
        shared_bytes: of shared memory of a block, as the CUDA code places it; None where that cannot say
            this kernel.
    """

    name: str
    grid: tuple[int, ...]
    loop: int
    shared_bytes: int | None
    transfers: tuple[MuTransfer, ...]
    block: tuple[MuNode, ...]


@dataclass(frozen=True, slots=True)
class MuDrawing:
    """A μGraph: its kernel graph, and in it the kernels.

    Attributes:
        element: type of the elements, which bytes are of.
        text: as ``kernels show`` prints it.
    """

    name: str
    element: str
    graph: tuple[MuNode, ...]
    kernels: tuple[MuKernel, ...]
    text: str


@dataclass(frozen=True, slots=True)
class ReplacedOperator:
    """An operator that a kernel replaces.

    Attributes:
        id: its number: the kernel's operands have the first ones.
        op, type: its operator, and its result's type.
        inputs: numbers of what it takes.
        cost_us: of one application under the run's costs; None where these have none.
        moved_bytes: of its operands and its result.
    """

    id: str
    op: str
    type: str
    inputs: tuple[str, ...]
    cost_us: float | None
    moved_bytes: int


@dataclass(frozen=True, slots=True)
class FusedUse:
    """A kernel that rules brought into the e-graph, as one of its e-nodes uses it.

    Attributes:
        key: of the table ``fused_kernel``.
        eclass, enode: where it is; the extracted graph's, if it has any.
        uses: e-nodes with this kernel in the extracted graph, and in all.
        cost_us: of one application under the run's costs; None where these have none.
        operands: its operands: names of the model, or e-classes.
    """

    key: str
    eclass: int
    enode: int
    chosen_uses: int
    uses: int
    cost_us: float | None
    operands: tuple[str, ...]
    replaced: tuple[ReplacedOperator, ...]
    drawing: MuDrawing


@dataclass(frozen=True, slots=True)
class RunningUse:
    """A kernel that onnxruntime runs in the written file.

    Attributes:
        name: of its op and local function.
        operators: of its program.
        places: how many calls the file has.
        kernel_us, plain_us: timed: a call with the kernel, and what onnxruntime makes of the operators.
        code: its C.
    """

    name: str
    operators: tuple[str, ...]
    places: int
    kernel_us: float
    plain_us: float
    code: str


@dataclass(frozen=True, slots=True)
class KernelPage:
    """A page of μGraphs alone."""

    title: str
    drawings: tuple[MuDrawing, ...]
