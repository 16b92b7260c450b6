"""Exponentials of differences from a maximum: no μGraph ships without them, as exp(s) alone overflows.

Where the rows of exp(s) may be scaled by anything without a change of the result, they may be scaled by
exp(-m), m the largest s of the row so far: the online maximum. Finite fields show where that is so
(``random_tests``); the rest is bookkeeping. Results of scaled tensors are scaled. A sum over a loop is
rescaled where the maximum grew. Blocks that have a maximum each store it, so that the next kernel brings
their results to one scale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.graph.dims import Dim, variables
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    BlockStep,
    InputIterator,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
)
from relational_tensat.mugraph.graph.rewrites import flat_steps
from relational_tensat.mugraph.graph.validity import (
    BlockStage,
    BlockTensors,
    block_tensors,
    kernel_tensors,
    saved_dims,
)
from relational_tensat.mugraph.verify.random_tests import (
    has_exponentials,
    rows_of,
    scaling_difference,
)

#: Results are linear in their first operand where the others are not scaled.
_LINEAR = frozenset({"sum", "scale", "neg", "rename", "repeat"})


def stabilized(graph: MuGraph) -> MuGraph:
    """Return a graph whose exponentials are of differences from maxima; the graph itself if it has none.

    Args:
        graph: a μGraph, or a program.

    Raises:
        VerificationError: rows may not be scaled, or what is computed of them cannot be rescaled.
    """
    if not has_exponentials(graph):
        return graph
    difference = scaling_difference(graph, 0)
    if difference is not None:
        raise VerificationError(
            f"{graph.name} cannot be made stable: when rows of exp are scaled, {difference}"
        )
    return _Stabilizer(graph).result()


def stable_if_possible(program: MuGraph) -> MuGraph:
    """Return a program that does not overflow in float64, if it can be made stable; else itself."""
    try:
        return stabilized(program)
    except VerificationError:
        return program


@dataclass(frozen=True, slots=True)
class _Scaled:
    """How a tensor in device memory is scaled.

    Attributes:
        maximum: the tensor that has the maxima of blocks; empty where all parts have the same.
        parts: the variables that count these blocks.
    """

    maximum: str = ""
    parts: tuple[str, ...] = ()


class _Stabilizer:
    def __init__(self, graph: MuGraph) -> None:
        self._graph = graph
        self._rows = rows_of(graph)
        self.device = dict(graph.inputs)
        self._scaled: dict[str, _Scaled] = {}
        self._steps: list[KernelStep] = []

    def result(self) -> MuGraph:
        for step in self._graph.steps:
            if isinstance(step, Kernel):
                self._add(self._kernel(step))
            else:
                for operation in self._library(step):
                    self._add(operation)
        for name in self._graph.outputs:
            if name in self._scaled:
                raise self.refusal(f"{name} would be scaled")
        return replace(self._graph, steps=tuple(self._steps))

    def _add(self, step: KernelStep) -> None:
        self._steps.append(step)
        inner = replace(self._graph, steps=tuple(self._steps), outputs=())
        self.device = kernel_tensors(inner)

    def _library(self, step: Operation) -> Iterator[Operation]:
        """Yield a library's operation, an exponential with its maximum before it."""
        if any(self._scaled.get(name, _Scaled()).maximum for name in step.operands):
            raise self.refusal(f"{step.output} reads what blocks have scaled")
        scaled = {name: name for name in step.operands if name in self._scaled}
        if step.op == "exp":
            over = self.over(variables(self.device[step.operands[0]]), step.output)
            yield from _shifted(step, over)
            self._scaled[step.output] = _Scaled()
            return
        yield step
        if self.is_scaled(step, scaled):
            self._scaled[step.output] = _Scaled()

    def _kernel(self, kernel: Kernel) -> Kernel:
        """Return a kernel with maxima, whose scaled results are noted."""
        block = replace(kernel.block, steps=flat_steps(kernel.block.steps))
        tensors = block_tensors(replace(kernel, block=block), self.device)
        builder = _Block(self, block, tensors)
        for iterator in block.iterators:
            builder.load(iterator, self._scaled.get(iterator.tensor))
        for step in block.steps:
            builder.step(step)
        savers = list(block.savers)
        made = replace(block, iterators=tuple(builder.iterators), steps=tuple(builder.steps))
        for saver in block.savers:
            maximum = builder.scales.get(saver.tile)
            if maximum is not None:
                self._scaled[saver.output] = self._stored(saver, maximum, builder, made, savers)
        return replace(
            kernel, block=replace(made, steps=tuple(builder.steps), savers=tuple(savers))
        )

    def _stored(
        self, saver: Saver, maximum: str, builder: _Block, block: BlockGraph, savers: list[Saver]
    ) -> _Scaled:
        """Return how a stored tensor is scaled; where blocks differ in it, let them store their maxima."""
        if maximum not in builder.per_block:
            return _Scaled()
        tile = builder.final(maximum)
        made = replace(block, steps=tuple(builder.steps), savers=())
        dims = block_tensors(Kernel("", made), self.device).dims[tile]
        mine = variables(dims)
        omap = tuple(
            name if name in mine or name not in self._known() else f"{name}'" for name in saver.omap
        )
        parts = tuple(dict.fromkeys(name for name in omap if name not in mine))
        if not set(parts) & set(variables(saver.dims)):
            raise self.refusal(f"{saver.output} has no parts that their maxima belong to")
        if maximum not in builder.stored:
            builder.stored[maximum] = f"{saver.output}_max"
            bare = Saver(tile, builder.stored[maximum], (), omap, is_wide=True)
            sizes = saved_dims(bare, dims, block.grid)
            savers.append(replace(bare, dims=tuple(Dim(v, sizes[v]) for v in (*parts, *mine))))
        return _Scaled(builder.stored[maximum], parts)

    def _known(self) -> set[str]:
        return {dim.variable for dims in self._graph.inputs.values() for dim in dims}

    def over(self, of: Sequence[str], name: str) -> tuple[str, ...]:
        """Return what a row's maximum is over."""
        over = tuple(variable for variable in of if variable not in self._rows)
        if not over:
            raise self.refusal(f"{name} is an exponential whose row is one element")
        return over

    def is_scaled(self, step: Operation, scaled: Mapping[str, str]) -> bool:
        """Whether a result is scaled, as its operands are.

        Raises:
            VerificationError: it would be no multiple of what it was.
        """
        which = [name in scaled for name in step.operands]
        match step.op, which:
            case _, _ if not any(which):
                return False
            case "div" | "div_or_zero", [True, True]:
                return False
            case (("matmul" | "mul"), [True, False] | [False, True]):
                return True
            case "div" | "div_or_zero", [True, False]:
                return True
            case (("add" | "sub"), [True, True]):
                return True
            case op, [True] if op in _LINEAR:
                return True
        raise self.refusal(
            f"{step.output} = {step.op} of scaled rows is no multiple of what it was"
        )

    def refusal(self, reason: str) -> VerificationError:
        return VerificationError(f"{self._graph.name} cannot be made stable: {reason}")


class _Block:
    """The steps of a block with maxima.

    Attributes:
        iterators, steps: so far.
        scales: the maximum that a tensor is scaled by.
        per_block: maxima that differ from block to block of a row.
        stored: where they are stored, by their names in the block.
    """

    def __init__(self, owner: _Stabilizer, block: BlockGraph, tensors: BlockTensors) -> None:
        self.iterators: list[InputIterator] = []
        self.steps: list[BlockStep] = []
        self.scales: dict[str, str] = {}
        self.per_block: set[str] = set()
        self.stored: dict[str, str] = {}
        self._factors: dict[tuple[str, tuple[str, ...]], str] = {}
        self._owner = owner
        self._block = block
        self._tensors = tensors
        self._running: set[str] = set()

    def load(self, iterator: InputIterator, scaled: _Scaled | None) -> None:
        """Load a tensor; bring parts that blocks have scaled to one scale."""
        if scaled is None:
            self.iterators.append(iterator)
            return
        if not scaled.maximum:
            self.iterators.append(iterator)
            self.scales[iterator.output] = "of its rows"
            return
        if set(scaled.parts) & {*iterator.imap, iterator.fmap}:
            raise self._owner.refusal(
                f"{iterator.tensor} is loaded in parts, and their scales differ"
            )
        raw = f"{iterator.output}_part"
        self.iterators.append(replace(iterator, output=raw))
        own = variables(self._tensors.dims[iterator.output])
        factor = self._factor(scaled, iterator, tuple(v for v in scaled.parts if v in own))
        self.steps.append(Operation("mul", (raw, factor), iterator.output))
        self.scales[iterator.output] = "of its rows"

    def _factor(self, scaled: _Scaled, iterator: InputIterator, parts: tuple[str, ...]) -> str:
        """Return the tensor that brings parts to one scale, by the maxima that their blocks stored."""
        if (scaled.maximum, parts) in self._factors:
            return self._factors[scaled.maximum, parts]
        loaded = f"{scaled.maximum}_{len(self._factors)}"
        mine = variables(self._owner.device[scaled.maximum])
        imap = tuple(name if name in mine else "" for name in iterator.imap)
        fmap = iterator.fmap if iterator.fmap in mine else ""
        self.iterators.append(InputIterator(scaled.maximum, loaded, imap, fmap))
        same = tuple(name for name in scaled.parts if name not in parts)
        if same:  # blocks that had the same rows had the same maxima
            self.steps.append(Operation("max", (loaded,), f"{loaded}_own", {"over": same}))
            loaded = f"{loaded}_own"
        self.steps += [
            Operation("max", (loaded,), f"{loaded}_top", {"over": parts}),
            Operation("sub", (loaded, f"{loaded}_top"), f"{loaded}_below"),
            Operation("exp", (f"{loaded}_below",), f"{loaded}_factor"),
        ]
        self._factors[scaled.maximum, parts] = f"{loaded}_factor"
        return f"{loaded}_factor"

    def step(self, step: BlockStep) -> None:
        """Add a step; an exponential becomes one of a difference."""
        if isinstance(step, Operation) and step.op == "exp":
            self._exponential(step)
        elif isinstance(step, Operation):
            self.steps.append(step)
            scaled = {name: self.scales[name] for name in step.operands if name in self.scales}
            if len(set(scaled.values())) > 1:
                raise self._owner.refusal(f"{step.output} is of rows with two maxima")
            if self._owner.is_scaled(step, scaled):
                self.scales[step.output] = next(iter(scaled.values()))
        elif isinstance(step, Accumulate):
            self._accumulate(step)
        else:
            raise self._owner.refusal("it has maxima already")

    def final(self, maximum: str) -> str:
        """Return the tensor that has a maximum over all iterations."""
        if maximum not in self._running:
            return maximum
        name = f"{maximum}_final"
        if not any(name in step.outputs for step in self.steps):
            self.steps.append(Accumulate(maximum, name, "max"))
        return name

    def _exponential(self, step: Operation) -> None:
        (operand,) = step.operands
        dims, stage = variables(self._tensors.dims[operand]), self._tensors.stages[operand]
        over = self._owner.over(dims, step.output)
        loops = {iterator.fmap for iterator in self._block.iterators} - {""}
        *first, difference, exponential = _shifted(step, over)
        (largest,) = first
        if stage is BlockStage.LOOP and loops <= set(over):
            self.steps.append(RunningMax(operand, largest.output, over))
            self._running.add(largest.output)
        else:
            self.steps.append(largest)
        self.steps += [difference, exponential]
        self.scales[step.output] = largest.output
        split = {name for iterator in self._block.iterators for name in iterator.imap}
        if split & set(over):
            self.per_block.add(largest.output)

    def _accumulate(self, step: Accumulate) -> None:
        maximum = self.scales.get(step.operand)
        if maximum is None:
            self.steps.append(step)
            return
        if step.kind not in ("sum", "concat") or (
            step.kind == "concat" and maximum in self._running
        ):
            raise self._owner.refusal(f"{step.output} accumulates rows of different scales")
        self.steps.append(replace(step, rescale=maximum) if maximum in self._running else step)
        self.scales[step.output] = maximum


def _shifted(step: Operation, over: tuple[str, ...]) -> list[Operation]:
    """Return the maximum, the difference from it, and its exponential."""
    (operand,) = step.operands
    largest, difference = f"{step.output}_max", f"{step.output}_below"
    return [
        Operation("max", (operand,), largest, {"over": over}),
        Operation("sub", (operand, largest), difference),
        replace(step, operands=(difference,)),
    ]
