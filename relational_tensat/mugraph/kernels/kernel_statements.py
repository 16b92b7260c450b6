"""A kernel's block graph as statements: which tensors are stored, and which are formulas.

Stored are: tiles, products, sums over the loop, reductions, and the parts of a formula that a product
needs. Functions of a product's elements stay in its registers, in a thread graph or not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dims, count, variables, without
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    Kernel,
    Operation,
    RunningMax,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.operators import mu_operator
from relational_tensat.mugraph.graph.validity import BlockStage, block_tensors
from relational_tensat.mugraph.kernels.statements import (
    MAXIMA,
    Compute,
    KernelFrame,
    Load,
    Multiply,
    Program,
    Reduce,
    Save,
    Statement,
    StoredTensor,
    fade_of,
    is_row_sum,
)
from relational_tensat.tensor.spellings import SPELLINGS

_PRODUCTS = ("matmul", "concat_matmul")
_REDUCTIONS = {"sum": "sum", "max": "max", "reduce_max": "reduce_max", "rms": "squares"}
_VIEWS = ("rename", "split", "merge", "repeat")


def lower(
    kernel: Kernel,
    device: Mapping[str, Dims],
    keeps_repeated: bool = False,
    wide: Collection[str] = (),
) -> Program:
    """Return a kernel as statements.

    Args:
        device: the dims of tensors in device memory.
        keeps_repeated: whether any formula that is read several times is stored; otherwise costly ones are.
        wide: the operands that are float32 in kernels of all types.

    Raises:
        InputError: it is not well-formed, or accumulates in a way that has no statement.
    """
    return _BlockLowering(kernel, device, keeps_repeated, frozenset(wide)).program()


class _BlockLowering:
    def __init__(
        self,
        kernel: Kernel,
        device: Mapping[str, Dims],
        keeps_repeated: bool,
        wide: frozenset[str],
    ) -> None:
        self._kernel, self._device = kernel, device
        self._keeps_repeated = keeps_repeated
        self._wide = wide
        tensors = block_tensors(kernel, device)
        self._dims, self._stages = dict(tensors.dims), dict(tensors.stages)
        self._partial = tensors.partial
        self._statements: dict[BlockStage, list[Statement]] = {stage: [] for stage in BlockStage}
        self._stored: dict[str, StoredTensor] = {}
        self._formulas: dict[str, Operation] = {}
        self._frames: dict[str, KernelFrame] = {}
        self._steps = tuple(self._flat())
        self._uses = Counter(name for step in self._steps for name in step.operands)
        self._uses.update(saver.tile for saver in kernel.block.savers)
        self._fused: dict[str, Operation] = {}

    def program(self) -> Program:
        block = self._kernel.block
        for iterator in block.iterators:
            is_wide = iterator.tensor in self._wide
            self._store(iterator.output, self._dims[iterator.output], is_wide)
            self._emit(self._stages[iterator.output], Load(iterator))
        for step in self._steps:
            match step:
                case Operation() if step.op in _PRODUCTS:
                    self._product(step)
                case Operation() if step.op in _REDUCTIONS:
                    self._reduction(step)
                case Operation():
                    self._formula(step)
                case RunningMax():
                    self._running_max(step)
                case Accumulate():
                    self._accumulate(step)
        for saver in block.savers:
            self._emit(BlockStage.AFTER, Save(saver))
        return Program(
            self._kernel,
            {name: self._device[name] for name in self._kernel.operands},
            {stage: tuple(statements) for stage, statements in self._statements.items()},
            self._stored,
            self._formulas,
            self._dims,
            self._partial,
        )

    def _flat(self) -> Iterator[Operation | Accumulate | RunningMax]:
        for step in self._kernel.block.steps:
            if not isinstance(step, ThreadGraph):
                yield step
                continue
            stage = self._stages[step.outputs[0]]
            for inner in step.steps:
                operands = [self._dims[name] for name in inner.operands]
                self._dims[inner.output] = mu_operator(inner.op).infer(operands, inner.attrs)
                self._stages[inner.output] = stage
                yield inner

    def _product(self, step: Operation) -> None:
        """Store a product, unless the loop's sum of it is all that is used: then that is."""
        if self._uses[step.output] == 1 and self._accumulator(step.output) is not None:
            self._fused[step.output] = step
            return
        self._multiply(step, step.output)

    def _accumulator(self, name: str) -> Accumulate | None:
        """Return the sum over the loop that reads a tensor of it."""
        if self._stages[name] is not BlockStage.LOOP:
            return None
        return next(
            (
                step
                for step in self._steps
                if isinstance(step, Accumulate) and step.operand == name and step.kind == "sum"
            ),
            None,
        )

    def _multiply(
        self, step: Operation, output: str, adds: bool = False, rescale: str = ""
    ) -> None:
        over = names(step.attrs, "over")
        pairs: list[tuple[str, str, tuple[str, ...]]]
        if step.op == "matmul":
            pairs = [(step.operands[0], step.operands[1], over)]
        else:
            w, x, y, z = step.operands
            pairs = [(w, y, over[:1]), (x, z, over[1:])]
        frame = frame_of(self._dims[pairs[0][0]], self._dims[pairs[0][1]], pairs[0][2])
        stage = BlockStage.LOOP if adds else self._stages[output]
        tiles = [(self._tile(a), self._tile(b), summed) for a, b, summed in pairs]
        self._store(output, frame.dims, is_wide=True, frame=frame, initial=0.0 if adds else None)
        self._emit(stage, Multiply(output, tuple(tiles), adds, rescale))

    def _reduction(self, step: Operation) -> None:
        if self._uses[step.output] == 1 and step.op == "sum" and self._accumulator(step.output):
            self._fused[step.output] = step
            return
        over = names(step.attrs, "over")
        output = step.output if step.op != "rms" else f"{step.output}_squares"
        self._reduce(Reduce(output, step.operands[0], over, _REDUCTIONS[step.op]), step.output)
        if step.op == "rms":
            size = _size(self._dims[step.operands[0]], over)
            self._root(output, step.output, size, float(str(step.attrs["epsilon"])))

    def _reduce(self, statement: Reduce, like: str, initial: float | None = None) -> None:
        """Emit a reduction, of registers if its rows lie there.

        Args:
            statement: the reduced value.
            like: the tensor whose dims and stage the result has.
            initial: its value before the loop, if the loop adds to it.
        """
        operand = statement.operand
        frame = self._frames.get(operand)
        if frame is not None and not is_row_sum(frame, statement.over):
            operand = self._shared(operand)
        self._store(statement.output, self._dims[like], is_wide=True, initial=initial)
        if statement.fade:
            self._store(statement.fade, self._dims[like], is_wide=True, initial=1.0)
        stage = BlockStage.LOOP if initial is not None else self._stages[like]
        changed = Reduce(
            statement.output, operand, statement.over, statement.kind,
            initial is not None, statement.rescale, statement.fade,
        )  # fmt: skip
        self._emit(stage, changed)

    def _root(self, squares: str, output: str, size: int, epsilon: float) -> None:
        """Store the root mean square, whose squares have been added up."""
        formula = f"{output}_root"
        self._formulas[formula] = Operation(
            "root", (squares,), formula, {"value": 1.0 / size, "epsilon": epsilon}
        )
        self._dims[formula] = self._dims[output]
        self._store(output, self._dims[output], is_wide=True)
        self._emit(self._stages[output], Compute(output, formula))

    def _formula(self, step: Operation) -> None:
        """Note a formula; store it at once where it is costly and read several times."""
        frame = self._frame(step)
        operands = step.operands
        if frame is None:
            operands = tuple(self._shared(name) for name in operands)
        operation = Operation(step.op, operands, step.output, step.attrs)
        if frame is not None:
            self._frames[step.output] = frame
        is_costly = step.op in SPELLINGS and SPELLINGS[step.op].is_costly
        is_worth = is_costly or (self._keeps_repeated and step.op not in _VIEWS)
        is_kept = is_worth and self._uses[step.output] > 1
        formula = f"{step.output}_formula" if is_kept else step.output
        self._formulas[formula] = operation
        self._dims[formula] = self._dims[step.output]
        if is_kept:
            dims = self._dims[step.output] if frame is None else frame.dims
            self._store(step.output, dims, is_wide=True, frame=frame)
            self._emit(self._stages[step.output], Compute(step.output, formula))

    def _frame(self, step: Operation) -> KernelFrame | None:
        """Return the frame that a function of registers has, if there is one for all its elements."""
        frames = {self._frames[name] for name in step.operands if name in self._frames}
        if len(frames) != 1 or step.op in (*_VIEWS, "window"):
            return None
        (frame,) = frames
        dims = self._dims[step.output]
        return frame if set(variables(frame.dims)) == set(variables(dims)) else None

    def _running_max(self, step: RunningMax) -> None:
        self._stages[fade_of(step.output)] = BlockStage.LOOP
        self._dims[fade_of(step.output)] = self._dims[step.output]
        statement = Reduce(step.output, step.operand, step.over, "max", fade=fade_of(step.output))
        self._reduce(statement, step.output, MAXIMA["max"])

    def _accumulate(self, step: Accumulate) -> None:
        varies = self._stages[step.operand] is BlockStage.LOOP
        match step.kind:
            case "sum" if varies:
                self._add_up(step)
            case "sum" if not step.rescale:
                times = {"value": float(self._kernel.block.loop)}
                self._formula(Operation("scale", (step.operand,), step.output, times))
            case "concat" if not step.rescale:
                self._store(step.output, self._dims[step.output], is_wide=True)
                self._emit(BlockStage.LOOP, Compute(step.output, step.operand, along=step.along[0]))
            case "max" if not varies or step.output in self._kernel.block.final_maxima:
                self._formula(Operation("same", (step.operand,), step.output))
            case "max":
                statement = Reduce(step.output, step.operand, (), "max")
                self._reduce(statement, step.output, MAXIMA["max"])
            case "reduce_max" if not step.rescale:
                statement = Reduce(step.output, step.operand, step.along, "reduce_max")
                self._reduce(statement, step.output, MAXIMA["reduce_max"] if varies else None)
            case "rms" if not step.rescale:
                squares = f"{step.output}_squares"
                statement = Reduce(squares, step.operand, step.along, "squares")
                dims = self._dims[step.operand]
                size = _size(dims, step.along)
                if varies:
                    self._reduce(statement, step.output, 0.0)
                    size = size_in_loop(dims, step.along, self._kernel.block.loop)
                else:
                    self._reduce(statement, step.output)
                self._root(squares, step.output, size, step.epsilon)
            case _:
                raise InputError(
                    f"{self._kernel.name}: {step.output}: no statement accumulates a {step.kind} "
                    f"of {step.operand} rescaled by {step.rescale or 'nothing'}"
                )

    def _add_up(self, step: Accumulate) -> None:
        """Emit the sum over the loop: of a product, of a reduction, or of a formula."""
        fused = self._fused.get(step.operand)
        if fused is not None and fused.op in _PRODUCTS:
            self._multiply(fused, step.output, True, step.rescale)
        elif fused is not None:
            over = names(fused.attrs, "over")
            statement = Reduce(step.output, fused.operands[0], over, "sum", rescale=step.rescale)
            self._reduce(statement, step.output, 0.0)
        else:
            frame = self._frames.get(step.operand)
            self._store(step.output, self._dims[step.output], True, frame, 0.0)
            self._emit(BlockStage.LOOP, Compute(step.output, step.operand, True, step.rescale))

    def _tile(self, name: str) -> str:
        """Return a tensor that a product can read: a tile in shared memory, or a view of one."""
        viewed = name
        while viewed in self._formulas and self._formulas[viewed].op in _VIEWS:
            (viewed,) = self._formulas[viewed].operands
        if viewed in self._stored and not self._stored[viewed].is_wide:
            return name
        return self._copy(name, "tile", is_wide=False)

    def _shared(self, name: str) -> str:
        """Return a tensor that any thread can read: itself, or a copy of registers."""
        return self._copy(name, "shared", is_wide=True) if name in self._frames else name

    def _copy(self, name: str, suffix: str, is_wide: bool) -> str:
        copy = f"{name}_{suffix}"
        if copy not in self._stored:
            self._store(copy, self._dims[name], is_wide)
            self._dims[copy], self._stages[copy] = self._dims[name], self._stages[name]
            self._emit(self._stages[name], Compute(copy, name))
        return copy

    def _store(
        self, name: str, dims: Dims, is_wide: bool, frame: KernelFrame | None = None,
        initial: float | None = None,
    ) -> None:  # fmt: skip
        self._stored[name] = StoredTensor(dims, is_wide, frame, initial)
        self._dims.setdefault(name, dims)
        if frame is not None:
            self._frames[name] = frame

    def _emit(self, stage: BlockStage, statement: Statement) -> None:
        self._statements[stage].append(statement)


def frame_of(first: Dims, second: Dims, over: tuple[str, ...]) -> KernelFrame:
    """Return the frame of a product: variables that both operands have are its batch."""
    shared = (set(variables(first)) & set(variables(second))) - set(over)
    batch = tuple(dim for dim in first if dim.variable in shared)
    rows, columns = (without(dims, {*over, *shared}) for dims in (first, second))
    return KernelFrame(batch, rows, columns)


def size_in_loop(dims: Dims, over: tuple[str, ...], loop: int) -> int:
    """Return how many elements of a tensor all iterations have together over some variables.

    Of what the loop splits into tiles the last of which is smaller, there are as many as in device memory.
    """
    wholes = [dim.whole for dim in dims if dim.variable in over and dim.whole]
    others = tuple(dim for dim in dims if dim.variable in over and not dim.whole)
    return count(others) * (math.prod(wholes) if wholes else loop)


def _size(dims: Dims, over: tuple[str, ...]) -> int:
    return count(tuple(dim for dim in dims if dim.variable in over))
