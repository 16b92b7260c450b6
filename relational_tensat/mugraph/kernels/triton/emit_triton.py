"""Triton of one kernel: a line for each step of its block, in the order of its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.mugraph.graph.dims import Dims, without
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    Kernel,
    Operation,
    RunningMax,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.mugraph import Iterator as TileIterator
from relational_tensat.mugraph.graph.operators import names
from relational_tensat.mugraph.graph.well_formed import BlockTensors, Stage, block_tensors
from relational_tensat.mugraph.kernels.lowering.indices import (
    ITERATION,
    result_start,
    tile_start,
)
from relational_tensat.mugraph.kernels.lowering.layouts import row_major
from relational_tensat.mugraph.kernels.lowering.names import identifier
from relational_tensat.mugraph.kernels.lowering.statements import fade_of
from relational_tensat.mugraph.kernels.lowering.text import Text
from relational_tensat.mugraph.kernels.triton.fitting import fitted, warps_of
from relational_tensat.mugraph.kernels.triton.padding import flat, multiplied
from relational_tensat.mugraph.kernels.triton.tensors import (
    Axes,
    Value,
    count_of,
    real,
    renamed,
    union,
)

_TYPES = {"float32": "tl.float32", "float16": "tl.float16", "bfloat16": "tl.bfloat16"}
#: Of shared memory that a block may have on an A100; later devices have more.
_SHARED_BYTES = 163 << 10
#: After a kernel's name: the module's variable that has its ``num_warps``.
WARPS_SUFFIX = "_num_warps"
_BLOCKS = ("tl.program_id(0)", "tl.program_id(1)", "tl.program_id(2)")
_PRODUCTS = ("matmul", "concat_matmul")
_SPELLED: Mapping[str, str] = {
    "add": "{} + {}",
    "div": "{} / {}",
    "erf": "tl.erf({})",
    "exp": "tl.exp({})",
    "gelu": "0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476))",
    "log": "tl.log({})",
    "mul": "{} * {}",
    "neg": "-{}",
    "reciprocal": "1.0 / {}",
    "relu": "tl.where({0} < 0.0, 0.0, {0})",
    "sigmoid": "1.0 / (1.0 + tl.exp(-{}))",
    "silu": "{0} / (1.0 + tl.exp(-{0}))",
    "sqrt": "tl.sqrt({})",
    "square": "{0} * {0}",
    "sub": "{} - {}",
    "tanh": "2.0 / (1.0 + tl.exp(-2.0 * {})) - 1.0",
}


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
    """

    name: str
    source: str
    parameters: tuple[str, ...]
    dtype: str
    grid: tuple[int, int, int]
    warps: int
    wide: frozenset[str] = frozenset()


def emit_triton(
    kernel: Kernel,
    device: Mapping[str, Dims],
    dtype: str = "float16",
    wide: Collection[str] = (),
    lying: Mapping[str, Dims] | None = None,
) -> TritonKernel:
    """Return a kernel as a module that imports Triton.

    Args:
        kernel: the kernel.
        device: the dims of its operands.
        dtype: of operands and results; sums are float32.
        wide: the operands that are float32, too.
        lying: dims of operands and results in their order in device memory, where that is another.

    Raises:
        UsageError: no kernels are made for that element type.
        InputError: the kernel is not well-formed, or Triton cannot say it: tensors in its registers
            have no parts that one could write to or reshape where there is padding.
    """
    if dtype not in _TYPES:
        raise UsageError(f"no kernels for elements {dtype!r}, expected {', '.join(_TYPES)}")
    wide = kernel.operands if dtype == "float32" else wide
    results = {saver.output: saver.dims for saver in kernel.block.savers}
    kernel = fitted(kernel, device)
    tensors, lying = block_tensors(kernel, device), {**device, **results, **(lying or {})}
    emission = _Emission(kernel, tensors, lying, dtype, wide)
    return emission.kernel(warps_of(kernel, device))


class _Emission:
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
        self._stages.update(self._inner_stages())
        self._steps = flat(kernel.block.steps)
        self._axes = Axes(multiplied(self._steps, self._dims))
        self._values: dict[str, Value] = {}
        self._tiles = {identifier(iterator.output) for iterator in kernel.block.iterators}
        self._lines: dict[Stage, list[str]] = {stage: [] for stage in Stage}
        self._initial: list[str] = []
        uses = Counter(name for step in self._steps for name in step.operands)
        uses.update(saver.tile for saver in kernel.block.savers)
        self._sums = {
            step.operand: step
            for step in self._steps
            if isinstance(step, Accumulate) and step.kind == "sum" and uses[step.operand] == 1
        }

    def kernel(self, warps: int) -> TritonKernel:
        """Return it, for blocks of that many warps."""
        kernel, block = self._kernel, self._kernel.block
        for iterator in block.iterators:
            self._load(iterator)
        for step in self._steps:
            self._step(step)
        for saver in block.savers:
            tile, value = self._dims[saver.tile], self._values[saver.tile]
            result = self._device[saver.output]
            start = result_start(saver, result, tile, block, _BLOCKS)
            axes = real(tile)
            to = self._pointers(f"out_{identifier(saver.output)}", start, result, axes)
            text = self._axes.spread(value, axes, value.text)
            mask = self._axes.mask(axes)
            is_wide = self._dtype == "float32" or saver.is_wide
            stored = text if is_wide else f"{text}.to({_TYPES[self._dtype]})"
            self._lines[Stage.AFTER].append(f"tl.store({to}, {stored}{mask and f', mask={mask}'})")
        parameters = (
            *(f"in_{identifier(name)}" for name in kernel.operands),
            *(f"out_{identifier(name)}" for name in kernel.outputs),
        )
        grid = (*block.grid, 1, 1, 1)
        name = identifier(kernel.name)
        wide = {f"in_{identifier(operand)}" for operand in self._wide}
        wide |= {f"out_{identifier(saver.output)}" for saver in block.savers if saver.is_wide}
        return TritonKernel(
            name, self._module(name, parameters, warps), parameters, self._dtype,
            (grid[0], grid[1], grid[2]), warps, frozenset(wide),
        )  # fmt: skip

    def _module(self, name: str, parameters: Sequence[str], warps: int) -> str:
        block, text = self._kernel.block, Text(indent=4)
        grid = " x ".join(map(str, block.grid)) or "1"
        head = f"{self._kernel.name}: grid {grid}, loop {block.loop}, {warps} warps."
        text.line(f'"""{head}"""', "", "import triton", "import triton.language as tl", "", "")
        text.line("@triton.jit")
        with text.block(f"def {name}({', '.join(parameters)}):", ""):
            text.line(*self._axes.declarations(), *self._lines[Stage.INVARIANT], *self._initial)
            if self._lines[Stage.LOOP]:
                with text.block(f"for {ITERATION} in {self._iterations()}:", ""):
                    text.line(*self._lines[Stage.LOOP])
            text.line(*self._lines[Stage.AFTER])
        text.line("", "", f"{name}{WARPS_SUFFIX} = {warps}  # for the launch")
        return str(text)

    def _iterations(self) -> str:
        """Return the loop's range, with fewer stages than Triton's 3 where their tiles would not fit.

        Triton has all but one stage's tiles of a loop in shared memory.
        """
        loop, loaded_bytes = self._kernel.block.loop, 0
        for iterator in self._kernel.block.iterators:
            if self._stages[iterator.output] is Stage.LOOP:
                lengths = self._axes.shape(real(self._dims[iterator.output]))
                is_wide = iterator.tensor in self._wide or self._dtype == "float32"
                loaded_bytes += count_of(lengths) * (4 if is_wide else 2)
        if 2 * loaded_bytes <= _SHARED_BYTES:
            return f"range({loop})"
        stages = 2 if loaded_bytes <= _SHARED_BYTES else 1
        return f"tl.range(0, {loop}, num_stages={stages})"

    def _inner_stages(self) -> dict[str, Stage]:
        graphs = (step for step in self._kernel.block.steps if isinstance(step, ThreadGraph))
        return {
            inner.output: self._stages[graph.outputs[0]]
            for graph in graphs
            for inner in graph.steps
        }

    def _load(self, iterator: TileIterator) -> None:
        tensor, tile = self._device[iterator.tensor], self._dims[iterator.output]
        start = tile_start(iterator, tensor, tile, self._kernel.block, _BLOCKS)
        axes = real(tile)
        source = self._pointers(f"in_{identifier(iterator.tensor)}", start, tensor, axes)
        mask = self._axes.mask(axes)
        text = f"tl.load({source}{mask and f', mask={mask}, other=0.0'})"
        self._let(iterator.output, Value(text, axes, iterator.tensor in self._wide))

    def _pointers(self, pointer: str, start: str, dims: Dims, axes: Dims) -> str:
        strides = row_major(dims).strides
        parts = [pointer, *([start] if start != "0" else [])]
        for dim in axes:
            stride = strides[dim.variable]
            index = self._axes.along(dim, axes)
            parts.append(index if stride == 1 else f"{index} * {stride}")
        return " + ".join(parts)

    def _let(self, name: str, value: Value) -> None:
        """Add a line that gives a tensor its name."""
        variable = identifier(name)
        self._lines[self._stages[name]].append(f"{variable} = {value.text}")
        self._values[name] = Value(variable, value.axes, value.is_wide)

    def _step(self, step: Operation | Accumulate | RunningMax) -> None:
        match step:
            case Accumulate():
                self._accumulate(step)
            case RunningMax():
                self._running_max(step)
            case Operation() if step.output in self._sums and step.op in _PRODUCTS:
                pass  # its sum over the loop adds to itself
            case Operation() if step.op in _PRODUCTS:
                self._let(step.output, self._product(step))
            case Operation() if step.op == "sum":
                over = names(step.attrs, "over")
                self._let(step.output, self._reduced(self._values[step.operands[0]], over, "sum"))
            case Operation() if step.op == "max":
                over = names(step.attrs, "over")
                self._let(step.output, self._reduced(self._values[step.operands[0]], over, "max"))
            case Operation() if step.op == "rms":
                self._let(step.output, self._root_mean_square(step))
            case Operation():
                self._let(step.output, self._function(step))

    def _function(self, step: Operation) -> Value:
        values = [self._values[name] for name in step.operands]
        match step.op:
            case "scale":
                return Value(
                    f"{values[0].wide} * {_number(step.attrs['value'])}", values[0].axes, True
                )
            case "shift":
                text = f"{values[0].wide} + {_number(step.attrs['value'])}"
                return Value(text, values[0].axes, True)
            case "rename":
                return renamed(values[0], str(step.attrs["variable"]), str(step.attrs["into"]))
            case "repeat":
                return values[0]
            case "split" | "merge":
                return self._reshaped(step, values[0])
        axes = union(values)
        operands = [self._axes.aligned(value, axes, value.wide) for value in values]
        return Value(_SPELLED[step.op].format(*operands), axes, True)

    def _reshaped(self, step: Operation, value: Value) -> Value:
        """Return other variables of the same elements, which must be without padding."""
        before = self._dims[step.operands[0]]
        if step.op == "merge":
            merged = names(step.attrs, "variables")
            order = (
                *without(before, merged),
                *(d for n in merged for d in before if d.variable == n),
            )
        else:
            order = before
        axes = real(self._operation_dims(step, before))
        source = real(order)
        if any(self._axes.length(dim) != dim.size for dim in (*source, *axes)):
            raise InputError(
                f"{self._kernel.name}: {step.output}: Triton reshapes nothing that has padding"
            )
        text = self._axes.spread(value, source, value.text)
        return Value(f"tl.reshape({text}, {self._axes.shape(axes)})", axes, value.is_wide)

    def _operation_dims(self, step: Operation, before: Dims) -> Dims:
        if step.output in self._dims:
            return self._dims[step.output]
        return before

    def _product(self, step: Operation, total: str = "") -> Value:
        """Return a product, added to ``total``."""
        over = names(step.attrs, "over")
        if step.op == "matmul":
            return self._dot(step.operands[0], step.operands[1], over, total)
        w, x, y, z = step.operands
        first = self._dot(w, y, over[:1], total)
        return self._dot(x, z, over[1:], first.text)

    def _dot(self, a: str, b: str, over: Sequence[str], total: str) -> Value:
        left, right = self._values[a], self._values[b]
        left_dims, right_dims = self._full_axes(a, left), self._full_axes(b, right)
        summed = tuple(dim for dim in left_dims if dim.variable in over)
        shared = {dim for dim in left_dims if dim in right_dims and dim not in summed}
        batch = tuple(dim for dim in left_dims if dim in shared)
        rows = tuple(dim for dim in left_dims if dim not in shared and dim not in summed)
        columns = tuple(dim for dim in right_dims if dim not in shared and dim not in summed)
        if not summed:  # one element: the product is not a sum
            axes = batch + rows + columns
            x, y = (self._axes.aligned(v, axes, v.wide) for v in (left, right))
            return Value(f"{total} + {x} * {y}" if total else f"{x} * {y}", axes, True)
        operands = [
            self._axes.matrix(left, (batch, rows, summed), self._narrow(left, over)),
            self._axes.matrix(right, (batch, summed, columns), self._narrow(right, over)),
        ]
        axes = batch + rows + columns
        groups = [group for place, group in enumerate((batch, rows, columns)) if place or group]
        shape = [_product_of(self._axes.shape(group)) for group in groups]
        is_plain = all(len(group) == 1 for group in groups)
        arguments = ", ".join(operands)
        if total and is_plain:
            arguments += f", acc={total}"
        if self._dtype == "float32":
            arguments += ', input_precision="ieee"'
        text = f"tl.dot({arguments})"
        if not is_plain and axes:
            text = f"tl.reshape({text}, {self._axes.shape(axes)})"
        elif not is_plain:
            text = f"tl.sum(tl.reshape({text}, {[_product_of(shape)]}), axis=0)"
        if total and not is_plain:
            text = f"{total} + {text}"
        return Value(text, axes, True)

    def _full_axes(self, name: str, value: Value) -> Dims:
        return real(self._dims[name]) if name in self._dims else value.axes

    def _narrow(self, value: Value, over: Sequence[str]) -> str:
        """Return a product's operand as the kernel's elements, zero in the padding of what is summed."""
        if not value.is_wide or (self._dtype == "float32" and value.text in self._tiles):
            return value.text  # a tile, whose padding is zero
        text = value.text
        if mask := self._axes.mask(value.axes, over):
            text = f"tl.where({mask}, {text}, 0.0)"
        return text if self._dtype == "float32" else f"{text}.to({_TYPES[self._dtype]})"

    def _reduced(self, value: Value, over: Sequence[str], op: str, text: str = "") -> Value:
        """Return sums or maxima; ``text`` is an expression of the same axes instead of the tensor."""
        text = text or value.wide
        axes = value.axes
        present = [dim for dim in axes if dim.variable in over]
        if any(self._axes.length(dim) != dim.size for dim in present):
            none = 'float("-inf")' if op == "max" else "0.0"
            mask = self._axes.mask(axes, [dim.variable for dim in present])
            text = f"tl.where({mask}, {text}, {none})"
        for dim in present:
            text = f"tl.{op}({text}, axis={axes.index(dim)})"
            axes = tuple(other for other in axes if other != dim)
        return Value(text, axes, True)

    def _squares(self, value: Value, over: Sequence[str]) -> Value:
        return self._reduced(value, over, "sum", f"{value.wide} * {value.wide}")

    def _root_mean_square(self, step: Operation) -> Value:
        over = names(step.attrs, "over")
        value = self._values[step.operands[0]]
        return _root(self._squares(value, over), _size(value, over), step.attrs["epsilon"])

    def _running_max(self, step: RunningMax) -> None:
        value = self._reduced(self._values[step.operand], step.over, "max")
        name, fade = identifier(step.output), identifier(fade_of(step.output))
        self._begin(name, value.axes, 'float("-inf")')
        lines = self._lines[Stage.LOOP]
        lines.append(f"{name}_now = tl.maximum({name}, {value.text})")
        lines.append(f"{fade} = tl.where({name} == {name}_now, 1.0, tl.exp({name} - {name}_now))")
        lines.append(f"{name} = {name}_now")
        self._values[step.output] = Value(name, value.axes, True)
        self._values[fade_of(step.output)] = Value(fade, value.axes, True)

    def _begin(self, name: str, axes: Dims, initial: str) -> None:
        """Give something a value before the loop."""
        self._initial.append(f"{name} = tl.full({self._axes.shape(axes)}, {initial}, tl.float32)")

    def _accumulate(self, step: Accumulate) -> None:
        varies = self._stages[step.operand] is Stage.LOOP
        match step.kind:
            case "sum" if varies:
                self._add_up(step)
            case "sum" if not step.rescale:
                value = self._values[step.operand]
                self._let(
                    step.output,
                    Value(f"{value.wide} * {self._kernel.block.loop}.0", value.axes, True),
                )
            case "rms" if not step.rescale:
                self._accumulate_squares(step, varies)
            case "max" if step.output in self._kernel.block.final_maxima:
                self._let(step.output, self._values[step.operand])
            case _:
                raise InputError(
                    f"{self._kernel.name}: {step.output}: Triton has no {step.kind} of iterations"
                )

    def _add_up(self, step: Accumulate) -> None:
        name = identifier(step.output)
        producer = next((s for s in self._steps if step.operand in s.outputs), None)
        is_product = isinstance(producer, Operation) and producer.op in _PRODUCTS
        if is_product and step.operand in self._sums:
            product = self._product(cast(Operation, producer), name)
        else:
            product = self._values[step.operand]
        target = Value(name, product.axes, True)
        if step.rescale:
            fade = self._values[fade_of(step.rescale)]
            factor = self._axes.aligned(fade, product.axes, fade.text)
            self._lines[Stage.LOOP].append(f"{name} = {name} * {factor}")
        self._begin(name, product.axes, "0.0")
        is_added = is_product and step.operand in self._sums
        text = product.text if is_added else f"{name} + {product.wide}"
        self._lines[Stage.LOOP].append(f"{name} = {text}")
        self._values[step.output] = target

    def _accumulate_squares(self, step: Accumulate, varies: bool) -> None:
        value = self._values[step.operand]
        squares, size = self._squares(value, step.along), _size(value, step.along)
        if varies:
            name = identifier(f"{step.output}_squares")
            self._begin(name, squares.axes, "0.0")
            self._lines[Stage.LOOP].append(f"{name} = {name} + {squares.text}")
            squares, size = Value(name, squares.axes, True), size * self._kernel.block.loop
        self._let(step.output, _root(squares, size, step.epsilon))


def _root(squares: Value, size: int, epsilon: object) -> Value:
    text = f"tl.sqrt({squares.text} * {_number(1.0 / size)} + {_number(epsilon)})"
    return Value(text, squares.axes, True)


def _size(value: Value, over: Sequence[str]) -> int:
    return _product_of([dim.size for dim in value.axes if dim.variable in over])


def _number(value: object) -> str:
    return repr(float(cast(float, value)))


def _product_of(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result
