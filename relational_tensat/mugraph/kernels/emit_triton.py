"""Triton of one kernel: a line for each step of its block, in the order of its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.base.shown_text import escaped_in_code
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    InputIterator,
    Kernel,
    Operation,
    RunningMax,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.rewrites import flat_steps
from relational_tensat.mugraph.graph.validity import BlockStage, BlockTensors, block_tensors
from relational_tensat.mugraph.kernels.indices import (
    ITERATION,
    end_name,
    ends,
    inside,
    result_start,
    source_layout,
    tile_start,
)
from relational_tensat.mugraph.kernels.kernel_statements import size_in_loop
from relational_tensat.mugraph.kernels.layouts import row_major
from relational_tensat.mugraph.kernels.loop_rewrites import multiplied
from relational_tensat.mugraph.kernels.statements import Text, fade_of, identifier
from relational_tensat.mugraph.kernels.triton_expressions import (
    LOWEST,
    POWER,
    POWERS,
    PRODUCTS,
    TYPES,
    Expressions,
    root_of,
    size_of,
)
from relational_tensat.mugraph.kernels.triton_tensors import (
    MOST_STAGES,
    Axes,
    TritonValue,
    check_tiles,
    fitted,
    real,
    stages_of,
    warps_of,
)

#: After a kernel's name: the module's variable that has its ``num_warps``.
WARPS_SUFFIX = "_num_warps"
_BLOCKS = ("tl.program_id(0)", "tl.program_id(1)", "tl.program_id(2)")


@dataclass(frozen=True, slots=True)
class TritonKernel:
    """One kernel as Triton.

    Attributes:
        name: of the function; parameters are the operands, then the results.
        source: a module of its own.
        parameters: their names.
        dtype: of all of them but the wide ones.
        grid: blocks along x, y and z.
        warps: of a block, to be stated at the launch.
        wide: parameters that are float32.
        conditions: parameters that are bytes, 1 or 0.
    """

    name: str
    source: str
    parameters: tuple[str, ...]
    dtype: str
    grid: tuple[int, int, int]
    warps: int
    wide: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()


def emit_triton(
    kernel: Kernel,
    device: Mapping[str, Dims],
    dtype: str = "float16",
    wide: Collection[str] = (),
    lying: Mapping[str, Dims] | None = None,
) -> TritonKernel:
    """Return a kernel as a module that imports Triton.

    Args:
        device: the dims of its operands.
        dtype: of operands and results; sums are float32.
        wide: the operands that are float32, too.
        lying: dims of operands and results in their order in device memory, where that is another.

    Raises:
        UsageError: no kernels are made for that element type.
        InputError: the kernel is not well-formed, or Triton cannot say it: tensors in its registers
            have no parts that one could write to or reshape where there is padding.
    """
    if dtype not in TYPES:
        raise UsageError(f"no kernels for elements {dtype!r}, expected {', '.join(TYPES)}")
    wide = kernel.operands if dtype == "float32" else wide
    results = {saver.output: saver.dims for saver in kernel.block.savers}
    kernel = fitted(kernel, device, dtype, wide)
    check_tiles(kernel, device, dtype, wide)
    tensors, lying = block_tensors(kernel, device), {**device, **results, **(lying or {})}
    stages = stages_of(kernel, device, dtype, wide)
    return _TritonEmission(kernel, tensors, lying, dtype, wide).kernel(
        warps_of(kernel, device), stages
    )


class _TritonEmission:
    def __init__(
        self,
        kernel: Kernel,
        tensors: BlockTensors,
        lying: Mapping[str, Dims],
        dtype: str,
        wide: Collection[str],
    ) -> None:
        self._kernel, self._device, self._dtype = kernel, lying, dtype
        self._wide = frozenset(wide)
        self._dims, self._stages = dict(tensors.dims), dict(tensors.stages)
        self._partial = tensors.partial
        self._stages.update(self._inner_stages())
        self._steps = flat_steps(kernel.block.steps)
        looped = [name for name, split in tensors.partial.items() if split.is_in_loop]
        self._axes = Axes(multiplied(self._steps, self._dims), looped)
        tiles = {identifier(iterator.output) for iterator in kernel.block.iterators}
        self._expressions = Expressions(kernel.name, self._dims, self._axes, dtype, tiles)
        self._lines: dict[BlockStage, list[str]] = {stage: [] for stage in BlockStage}
        self._initial: list[str] = []
        uses = Counter(name for step in self._steps for name in step.operands)
        uses.update(saver.tile for saver in kernel.block.savers)
        self._sums = {
            step.operand: step
            for step in self._steps
            if isinstance(step, Accumulate) and step.kind == "sum" and uses[step.operand] == 1
        }

    def kernel(self, warps: int, stages: int) -> TritonKernel:
        """Return it, for blocks of that many warps, and loops of that many stages."""
        kernel, block = self._kernel, self._kernel.block
        for iterator in block.iterators:
            self._load(iterator)
        for step in self._steps:
            self._step(step)
        for saver in block.savers:
            tile, value = self._dims[saver.tile], self._expressions.values[saver.tile]
            result = self._device[saver.output]
            start = result_start(saver, result, tile, block, _BLOCKS)
            axes = real(tile)
            to = self._pointers(
                f"out_{identifier(saver.output)}", start, row_major(result).strides, axes
            )
            text = self._axes.spread(value, axes, value.text)
            mask = self._axes.mask(axes)
            is_wide = self._dtype == "float32" or saver.is_wide
            stored = text if is_wide else f"{text}.to({TYPES[self._dtype]})"
            self._lines[BlockStage.AFTER].append(
                f"tl.store({to}, {stored}{mask and f', mask={mask}'})"
            )
        parameters = (
            *(f"in_{identifier(name)}" for name in kernel.operands),
            *(f"out_{identifier(name)}" for name in kernel.outputs),
        )
        grid = (*block.grid, 1, 1, 1)
        name = identifier(kernel.name)
        conditions = {f"in_{identifier(it.tensor)}" for it in block.iterators if it.is_condition}
        wide = {f"in_{identifier(operand)}" for operand in self._wide}
        wide |= {f"out_{identifier(saver.output)}" for saver in block.savers if saver.is_wide}
        return TritonKernel(
            name, self._module(name, parameters, warps, stages), parameters, self._dtype,
            (grid[0], grid[1], grid[2]), warps, frozenset(wide), frozenset(conditions),
        )  # fmt: skip

    def _module(self, name: str, parameters: Sequence[str], warps: int, stages: int) -> str:
        block, text = self._kernel.block, Text(indent=4)
        grid = " x ".join(map(str, block.grid)) or "1"
        head = (
            f"{escaped_in_code(self._kernel.name)}: grid {grid}, loop {block.loop}, {warps} warps."
        )
        text.line(f'"""{head}"""', "", "import triton", "import triton.language as tl", "", "")
        if any(isinstance(step, Operation) and step.op in POWERS for step in self._steps):
            text.line(*POWER.splitlines(), "", "")
        text.line("@triton.jit")
        with text.block(f"def {name}({', '.join(parameters)}):", ""):
            text.line(*self._axes.declarations(), *self._ends(in_loop=False))
            text.line(*self._lines[BlockStage.INVARIANT], *self._initial)
            if self._lines[BlockStage.LOOP]:
                with text.block(f"for {ITERATION} in {self._iterations(stages)}:", ""):
                    text.line(*self._ends(in_loop=True), *self._lines[BlockStage.LOOP])
            text.line(*self._lines[BlockStage.AFTER])
        text.line("", "", f"{name}{WARPS_SUFFIX} = {warps}  # for the launch")
        return str(text)

    def _ends(self, in_loop: bool) -> list[str]:
        """Return lines: how many elements a tile has of the variables whose last tile is smaller."""
        found = ends(self._partial, self._kernel.block, _BLOCKS, in_loop)
        return [
            f"{end_name(name)} = tl.minimum({self._partial[name].tile}, {rest})"
            for name, rest in found.items()
        ]

    def _iterations(self, stages: int) -> str:
        """Return the loop's range, with fewer stages than Triton's own where their tiles would not fit."""
        loop = self._kernel.block.loop
        if stages == MOST_STAGES:
            return f"range({loop})"
        return f"tl.range(0, {loop}, num_stages={stages})"

    def _inner_stages(self) -> dict[str, BlockStage]:
        graphs = (step for step in self._kernel.block.steps if isinstance(step, ThreadGraph))
        return {
            inner.output: self._stages[graph.outputs[0]]
            for graph in graphs
            for inner in graph.steps
        }

    def _load(self, iterator: InputIterator) -> None:
        tensor, tile = self._device[iterator.tensor], self._dims[iterator.output]
        start = tile_start(iterator, tensor, tile, self._kernel.block, _BLOCKS)
        axes = real(tile)
        strides = source_layout(iterator, tensor).strides
        source = self._pointers(f"in_{identifier(iterator.tensor)}", start, strides, axes)
        at = {dim.variable: self._axes.along(dim, axes) for dim in axes}
        at |= {dim.variable: "0" for dim in tile if dim not in axes}
        is_there = inside(iterator, tile, self._kernel.block, _BLOCKS, at)
        own = [f"({part})" for part in is_there.split(" && ")] if is_there else []
        mask = " & ".join([*filter(None, [self._axes.mask(axes)]), *own])
        is_wide, other = iterator.tensor in self._wide, "0" if iterator.is_condition else "0.0"
        text = f"tl.load({source}{mask and f', mask={mask}, other={other}'})"
        if iterator.is_condition:
            text += ".to(tl.float32)" if is_wide else f".to({TYPES[self._dtype]})"
        self._let(iterator.output, TritonValue(text, axes, is_wide))

    def _pointers(self, pointer: str, start: str, strides: Mapping[str, int], axes: Dims) -> str:
        parts = [pointer, *([start] if start != "0" else [])]
        for dim in axes:
            stride = strides[dim.variable]
            index = self._axes.along(dim, axes)
            parts.append(index if stride == 1 else f"{index} * {stride}")
        return " + ".join(parts)

    def _let(self, name: str, value: TritonValue) -> None:
        variable = identifier(name)
        self._lines[self._stages[name]].append(f"{variable} = {value.text}")
        self._expressions.values[name] = TritonValue(variable, value.axes, value.is_wide)

    def _step(self, step: Operation | Accumulate | RunningMax) -> None:
        match step:
            case Accumulate():
                self._accumulate(step)
            case RunningMax():
                self._running_max(step)
            case Operation() if step.output in self._sums and step.op in PRODUCTS:
                pass  # its sum over the loop adds to itself
            case Operation():
                self._let(step.output, self._expressions.of(step))

    def _running_max(self, step: RunningMax) -> None:
        value = self._expressions.reduced(self._expressions.values[step.operand], step.over, "max")
        name, fade = identifier(step.output), identifier(fade_of(step.output))
        self._begin(name, value.axes, LOWEST)
        lines = self._lines[BlockStage.LOOP]
        lines.append(f"{name}_now = tl.maximum({name}, {value.text})")
        lines.append(f"{fade} = tl.where({name} == {name}_now, 1.0, tl.exp({name} - {name}_now))")
        lines.append(f"{name} = {name}_now")
        self._expressions.values[step.output] = TritonValue(name, value.axes, True)
        self._expressions.values[fade_of(step.output)] = TritonValue(fade, value.axes, True)

    def _begin(self, name: str, axes: Dims, initial: str) -> None:
        """Give something a value before the loop."""
        self._initial.append(f"{name} = tl.full({self._axes.shape(axes)}, {initial}, tl.float32)")

    def _accumulate(self, step: Accumulate) -> None:
        varies = self._stages[step.operand] is BlockStage.LOOP
        match step.kind:
            case "sum" if varies:
                self._add_up(step)
            case "sum" if not step.rescale:
                value = self._expressions.values[step.operand]
                self._let(
                    step.output,
                    TritonValue(f"{value.wide} * {self._kernel.block.loop}.0", value.axes, True),
                )
            case "rms" if not step.rescale:
                self._accumulate_squares(step, varies)
            case "reduce_max" if not step.rescale:
                self._accumulate_largest(step, varies)
            case "max" if not varies or step.output in self._kernel.block.final_maxima:
                self._let(step.output, self._expressions.values[step.operand])
            case "max":
                value, name = self._expressions.values[step.operand], identifier(step.output)
                self._begin(name, value.axes, LOWEST)
                self._lines[BlockStage.LOOP].append(f"{name} = tl.maximum({name}, {value.wide})")
                self._expressions.values[step.output] = TritonValue(name, value.axes, True)
            case _:
                raise InputError(
                    f"{self._kernel.name}: {step.output}: Triton has no {step.kind} of iterations"
                )

    def _add_up(self, step: Accumulate) -> None:
        name = identifier(step.output)
        producer = next((s for s in self._steps if step.operand in s.outputs), None)
        is_product = isinstance(producer, Operation) and producer.op in PRODUCTS
        if is_product and step.operand in self._sums:
            product = self._expressions.product(cast(Operation, producer), name)
        else:
            product = self._expressions.values[step.operand]
        own = {dim.variable: dim for dim in self._dims[step.output]}
        target = TritonValue(name, tuple(own[dim.variable] for dim in product.axes), True)
        if step.rescale:
            fade = self._expressions.values[fade_of(step.rescale)]
            factor = self._axes.aligned(fade, product.axes, fade.text)
            self._lines[BlockStage.LOOP].append(f"{name} = {name} * {factor}")
        self._begin(name, product.axes, "0.0")
        is_added = is_product and step.operand in self._sums
        added = self._expressions.existing(product.wide, product.axes)
        text = product.text if is_added else f"{name} + {added}"
        self._lines[BlockStage.LOOP].append(f"{name} = {text}")
        self._expressions.values[step.output] = target

    def _accumulate_largest(self, step: Accumulate, varies: bool) -> None:
        largest = self._expressions.reduce_max(self._expressions.values[step.operand], step.along)
        if not varies:
            self._let(step.output, largest)
            return
        name, now = identifier(step.output), f"{identifier(step.output)}_now"
        self._begin(name, largest.axes, 'float("-inf")')
        lines = self._lines[BlockStage.LOOP]
        lines.append(f"{now} = {largest.text}")
        lines.append(f"{name} = tl.where(({now} > {name}) | ({now} != {now}), {now}, {name})")
        self._expressions.values[step.output] = TritonValue(name, largest.axes, True)

    def _accumulate_squares(self, step: Accumulate, varies: bool) -> None:
        value = self._expressions.values[step.operand]
        squares, size = self._expressions.squares(value, step.along), size_of(value, step.along)
        if varies:
            name = identifier(f"{step.output}_squares")
            self._begin(name, squares.axes, "0.0")
            self._lines[BlockStage.LOOP].append(f"{name} = {name} + {squares.text}")
            squares = TritonValue(name, squares.axes, True)
            size = size_in_loop(value.axes, step.along, self._kernel.block.loop)
        self._let(step.output, root_of(squares, size, step.epsilon))
