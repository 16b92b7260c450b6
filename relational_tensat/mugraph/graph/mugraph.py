"""The three levels: a kernel graph of operators and kernels, block graphs in these, thread graphs in those.

Grid, loop and maps are those of the paper (section 2). An input map gives the index variable that each axis
of the grid splits. An output map gives the variable of the result that it makes longer, and the loop's map
the traversed variable. A tensor of a kernel lies in device memory, one of a block in shared memory, one of
a thread in registers. A graph that a search found knows the rows that it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from relational_tensat.mugraph.graph.dims import Dims, Window
from relational_tensat.tensor.types import Attrs


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A term of the search, and the derivation of it that was chosen, as a step of a kernel.

    Attributes:
        kernel, tensor: the step: its kernel, and the name of what it makes in the block.
        level: of kernels: 1 for those that load inputs.
        config: the configuration's number: which variables the grid splits and the loop traverses.
        term: the number of the row of ``term``, the first of its e-class.
        operators: how many operators it takes to compute.
        stage: ``loop``, ``after`` or ``before``.
        op: ``load``, or the operator of the derivation; of accumulators, their kind, too.
        function: of an opaque function, with its parameters; else empty.
        variable: the reduced variable, or empty.
        a, b: the terms of its operands; 0 for none.
        abstract_class: of its abstract expression in the e-graph that prunes.
        fingerprint: of its value in two finite fields: terms that share it are one e-class.
        derivations: how many the e-class has.
    """

    kernel: str
    tensor: str
    level: int
    config: int
    term: int
    operators: int
    stage: str
    op: str
    function: str
    variable: str
    a: int
    b: int
    abstract_class: int
    fingerprint: int
    derivations: int

    def content(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


#: The axes of a grid, in order.
AXES = ("x", "y", "z")
#: Of an element of float32, as results of reductions and sums of parts are in models of all types.
WIDE_BYTES = 4
#: Of a bool, 1 or 0, in device memory.
CONDITION_BYTES = 1


@dataclass(frozen=True, slots=True)
class Operation:
    """One application of a pre-defined operator, at any level; tensors by name."""

    op: str
    operands: tuple[str, ...]
    output: str
    attrs: Attrs = field(default_factory=dict)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Its only output, in a tuple."""
        return (self.output,)


@dataclass(frozen=True, slots=True)
class ThreadGraph:
    """Operators of one element in a thread's registers: they take one step of shared memory.

    Attributes:
        steps: in order; tensors that no other level reads stay in registers.
        outputs: the tensors that go back to shared memory.
    """

    steps: tuple[Operation, ...]
    outputs: tuple[str, ...]

    @property
    def operands(self) -> tuple[str, ...]:
        """The tensors that come from shared memory."""
        made = {step.output for step in self.steps}
        used = [name for step in self.steps for name in step.operands if name not in made]
        return tuple(dict.fromkeys(used))


@dataclass(frozen=True, slots=True)
class Accumulate:
    """The value that a block keeps of all iterations of its loop.

    Attributes:
        kind: ``sum`` adds them up; ``concat`` puts them one after the other along ``along``, the variable
            that the loop traverses; ``max`` is the largest; ``reduce_max`` and ``rms`` are the largest as
            a model has it, and the root mean square, over them and over ``along``.
        rescale: with ``sum``: a running maximum m; the summand of an iteration is multiplied by exp(m then
            - m in the end), so that exp(s - m) adds up to sum exp(s) / exp(m).
        epsilon: with ``rms``: added to the mean.
    """

    operand: str
    output: str
    kind: str = "sum"
    along: tuple[str, ...] = ()
    rescale: str = ""
    epsilon: float = 0.0

    @property
    def operands(self) -> tuple[str, ...]:
        """The tensors that it reads."""
        return (self.operand, self.rescale) if self.rescale else (self.operand,)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Its only output, in a tuple."""
        return (self.output,)


@dataclass(frozen=True, slots=True)
class RunningMax:
    """The largest element over ``over`` in all iterations so far."""

    operand: str
    output: str
    over: tuple[str, ...]

    @property
    def operands(self) -> tuple[str, ...]:
        """The tensor that it reads, in a tuple."""
        return (self.operand,)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Its only output, in a tuple."""
        return (self.output,)


BlockStep: TypeAlias = Operation | ThreadGraph | Accumulate | RunningMax


@dataclass(frozen=True, slots=True)
class InputIterator:
    """The part of a tensor in device memory that a block loads.

    Attributes:
        tensor: the kernel's operand.
        output: the tile.
        imap: per axis of the grid: the index variable that it splits; empty where all blocks have the same.
        fmap: the variable that the loop traverses; empty where all iterations have the same.
        windows: the parts of the tensor that all blocks together load, each window of the one before; maps
            are of the last one's variables. All of the tensor without windows.
        is_condition: whether elements of the tensor are bools; the tile's are 1 and 0 of the kernel's type.
    """

    tensor: str
    output: str
    imap: tuple[str, ...] = ()
    fmap: str = ""
    windows: tuple[Window, ...] = ()
    is_condition: bool = False


@dataclass(frozen=True, slots=True)
class Saver:
    """The part of a tensor in device memory that a block stores.

    Attributes:
        tile: the block's tensor.
        output: the kernel's result.
        dims: of the result.
        omap: per axis of the grid: the variable of the result that blocks are concatenated along.
        is_wide: whether elements are float32 in models of all types: of tensors between kernels that the
            model does not have, as sums of a part, which may be larger than all of the model's.
    """

    tile: str
    output: str
    dims: Dims
    omap: tuple[str, ...]
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class BlockGraph:
    """The work of each block of a kernel.

    Attributes:
        grid: the extents of the axes x, y, z that there are.
        loop: the number of iterations; 1 for no loop.
        iterators, steps, savers: loads, computation in order, stores. Each step belongs to the loop, or
            comes after it, or, where it depends on no iteration, before it: see ``well_formed.BlockStage``.
    """

    grid: tuple[int, ...]
    loop: int
    iterators: tuple[InputIterator, ...]
    steps: tuple[BlockStep, ...]
    savers: tuple[Saver, ...]

    @property
    def final_maxima(self) -> Mapping[str, str]:
        """The running maxima that are used after the loop: by the tensor that is their last value."""
        running = {step.output for step in self.steps if isinstance(step, RunningMax)}
        return {
            step.output: step.operand
            for step in self.steps
            if isinstance(step, Accumulate) and step.kind == "max" and step.operand in running
        }


@dataclass(frozen=True, slots=True)
class Kernel:
    """A graph-defined kernel operator."""

    name: str
    block: BlockGraph

    @property
    def operands(self) -> tuple[str, ...]:
        """The tensors that it reads, each once."""
        return tuple(dict.fromkeys(iterator.tensor for iterator in self.block.iterators))

    @property
    def outputs(self) -> tuple[str, ...]:
        """The tensors that it writes."""
        return tuple(saver.output for saver in self.block.savers)


KernelStep: TypeAlias = Operation | Kernel


@dataclass(frozen=True, slots=True)
class MuGraph:
    """A kernel graph. One of pre-defined operators only is a *program*: the meaning that a μGraph shall
    have.

    Attributes:
        name: of the program.
        inputs: by name, in order.
        steps: operators of libraries and graph-defined kernels, in order.
        outputs: the names of the results.
        rows: those of a search that its kernels came from; they do not count when graphs are compared.
        conditions: the inputs whose elements are bools: 1 or 0 where they are computed with.
    """

    name: str
    inputs: Mapping[str, Dims]
    steps: tuple[KernelStep, ...]
    outputs: tuple[str, ...]
    rows: tuple[FoundRow, ...] = field(default=(), compare=False)
    conditions: frozenset[str] = frozenset()

    @property
    def operators(self) -> tuple[Operation, ...]:
        """The operators of libraries, in order; windows of inputs are not among them."""
        operations = (step for step in self.steps if isinstance(step, Operation))
        return tuple(step for step in operations if step.op != "window")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The graph-defined kernels, in order."""
        return tuple(step for step in self.steps if isinstance(step, Kernel))

    @property
    def wide(self) -> frozenset[str]:
        """The tensors in device memory that are float32 in models of all types."""
        savers = (saver for kernel in self.kernels for saver in kernel.block.savers)
        return frozenset(saver.output for saver in savers if saver.is_wide)
