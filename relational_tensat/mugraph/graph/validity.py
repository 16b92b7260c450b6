"""Whether a μGraph is one: every tensor's dims, and which step of a block belongs to its loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.mugraph.graph.dims import (
    Dim,
    Dims,
    checked,
    text_of,
    variables,
    windowed,
    without,
)
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import (
    AXES,
    Accumulate,
    BlockGraph,
    BlockStep,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.operators import mu_operator
from relational_tensat.mugraph.graph.partial_tiles import (
    TileSplit,
    partial_splits,
    sized_tile,
    splits_of,
)

#: Operators that have no meaning if a variable's last tile is smaller, by the attribute that names such
#: variables: relabellings, and means, whose number of elements would differ.
_WHOLE_ONLY = {
    "rename": "variable", "split": "variable", "merge": "variables", "window": "variables", "rms": "over",
}  # fmt: skip


class BlockStage(Enum):
    """When a block computes a tensor: once before the loop, in each iteration, once after it."""

    INVARIANT = "before"
    LOOP = "loop"
    AFTER = "after"


@dataclass(slots=True)
class BlockTensors:
    """The tensors of a block: dims of tiles and stages; and the splits whose last tile is smaller.

    Attributes:
        running: those that are running maxima.
    """

    dims: dict[str, Dims] = field(default_factory=dict)
    stages: dict[str, BlockStage] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    partial: dict[str, TileSplit] = field(default_factory=dict)


def kernel_tensors(graph: MuGraph) -> dict[str, Dims]:
    """Return the dims of all tensors in device memory.

    Raises:
        InputError: the graph is not well-formed; says which step, and why.
    """
    dims: dict[str, Dims] = dict(graph.inputs)
    for name in graph.conditions - dims.keys():
        raise InputError(f"{graph.name}: there is no input {name!r}, whose elements would be bools")
    for step in graph.steps:
        if isinstance(step, Kernel):
            for iterator in step.block.iterators:
                if iterator.is_condition != (iterator.tensor in graph.conditions):
                    kinds = ("numbers", "bools") if iterator.is_condition else ("bools", "numbers")
                    raise InputError(
                        f"{step.name}: {iterator.output}: elements of {iterator.tensor!r} are {kinds[0]}, "
                        f"and are loaded as {kinds[1]}"
                    )
            block_tensors(step, dims)
            made = {saver.output: saver.dims for saver in step.block.savers}
        else:
            made = {step.output: _infer(graph.name, step, dims, "kernel")}
        _add_new(dims, made, graph.name)
    for name in graph.outputs:
        if name not in dims:
            raise InputError(f"{graph.name}: no step computes the output {name!r}")
        if name in graph.wide:
            raise InputError(
                f"{graph.name}: the output {name!r} is wide, as only tensors between kernels may be"
            )
    return dims


def block_tensors(kernel: Kernel, device: Mapping[str, Dims]) -> BlockTensors:
    """Return the dims and stages of a block's tensors.

    Args:
        device: the dims of tensors in device memory.

    Raises:
        InputError: it is not well-formed; says which step, and why.
    """
    block, where = kernel.block, kernel.name
    if len(block.grid) > len(AXES) or min((*block.grid, block.loop)) < 1:
        raise InputError(f"{where}: grid {block.grid}, loop {block.loop}: at most 3 axes, all ≥ 1")
    tensors = BlockTensors()
    for iterator in block.iterators:
        if iterator.tensor not in device:
            raise InputError(f"{where}: there is no tensor {iterator.tensor!r}")
        dims = loaded_dims(iterator, device, where)
        tile = sized_tile(dims, splits_of(iterator, dims, block, where))
        _add_new(tensors.dims, {iterator.output: tile}, where)
        tensors.stages[iterator.output] = BlockStage.LOOP if iterator.fmap else BlockStage.INVARIANT
    tensors.partial = partial_splits(block, device, where)
    for iterator in block.iterators:
        _check_not_mixed(where, iterator.output, tensors.dims[iterator.output], tensors)
    for step in block.steps:
        made = _step_dims(where, step, tensors, block.loop)
        if isinstance(step, Operation):
            known = {dim.variable for name in step.operands for dim in tensors.dims[name]}
            new = without(made[step.output], known)
            _check_not_mixed(where, step.output, new, tensors)
        stage = _stage(where, step, tensors.stages)
        _add_new(tensors.dims, made, where)
        tensors.stages.update(dict.fromkeys(made, stage))
        if isinstance(step, RunningMax):
            tensors.running.add(step.output)
    for saver in block.savers:
        _check_saver(where, saver, block, tensors)
    return tensors


def loaded_dims(iterator: InputIterator, device: Mapping[str, Dims], where: str = "") -> Dims:
    """Return the dims of what all blocks together load.

    Args:
        iterator: the load.
        device: the dims of tensors in device memory.
        where: the kernel's name.

    Raises:
        InputError: the tensor has no such windows.
    """
    try:
        return windowed(device[iterator.tensor], iterator.windows)
    except RelationalTensatError as error:
        raise InputError(f"{where}: {iterator.output}: {error}") from error


def saved_dims(saver: Saver, tile: Dims, grid: Sequence[int]) -> dict[str, int]:
    """Return the sizes of a result's variables, as the tiles of all blocks give them."""
    sizes = {dim.variable: dim.size for dim in tile}
    wholes = {dim.variable: dim.whole for dim in tile if dim.whole}
    for variable, extent in zip(saver.omap, grid, strict=True):
        if variable:
            sizes[variable] = sizes.get(variable, 1) * extent
    return sizes | wholes


def _infer(where: str, step: Operation, dims: Mapping[str, Dims], level: str) -> Dims:
    operator = mu_operator(step.op)
    if level not in operator.levels:
        raise InputError(f"{where}: {step.op} is no operator of the {level} level")
    if len(step.operands) != operator.arity:
        raise InputError(
            f"{where}: {step.op} takes {operator.arity} operands, not {len(step.operands)}"
        )
    if set(step.attrs) - set(operator.optional) != set(operator.attrs):
        expected = ", ".join(operator.attrs) or "none"
        raise InputError(
            f"{where}: {step.op} has attributes {list(step.attrs)}, expected {expected}"
        )
    for name in step.operands:
        if name not in dims:
            raise InputError(
                f"{where}: {step.output} reads {name!r}, which nothing before computes"
            )
    _check_whole(where, step, dims)
    try:
        return operator.infer([dims[name] for name in step.operands], step.attrs)
    except RelationalTensatError as error:
        raise InputError(f"{where}: {step.output}: {error}") from error


def _check_not_mixed(where: str, name: str, dims: Dims, tensors: BlockTensors) -> None:
    """Check that a variable whose last tile is smaller comes into a block by its tiles only."""
    for dim in dims:
        if dim.variable in tensors.partial and not dim.whole:
            raise InputError(
                f"{where}: {name} has all of {dim.variable}, of which others are tiles, the last one "
                "smaller"
            )


def _check_whole(where: str, step: Operation, dims: Mapping[str, Dims]) -> None:
    """Check that no relabelling or mean is of a variable whose last tile is smaller."""
    attr = _WHOLE_ONLY.get(step.op, "")
    value = step.attrs.get(attr, ())
    named = {value} if isinstance(value, str) else set(names(step.attrs, attr)) if value else set()
    for dim in (dim for name in step.operands for dim in dims[name]):
        if dim.whole and dim.variable in named:
            raise InputError(
                f"{where}: no {step.op} of {dim.variable}, as its last tile is smaller"
            )


def _step_dims(where: str, step: BlockStep, tensors: BlockTensors, loop: int) -> dict[str, Dims]:
    dims = tensors.dims
    if isinstance(step, Operation):
        return {step.output: _infer(where, step, dims, "block")}
    if isinstance(step, ThreadGraph):
        inner = dict(dims)
        for operation in step.steps:
            _add_new(inner, {operation.output: _infer(where, operation, inner, "thread")}, where)
        return {name: inner[name] for name in step.outputs}
    for name in step.operands:
        if name not in dims:
            raise InputError(
                f"{where}: {step.output} reads {name!r}, which nothing before computes"
            )
    operand = dims[step.operand]
    looped = _looped(where, step, operand, tensors.partial)
    if isinstance(step, RunningMax):
        _check_has(where, step.output, step.over, operand)
        return {step.output: without(operand, step.over)}
    _check_rescale(where, step, tensors)
    return {step.output: _accumulated(where, step, operand, loop, looped)}


def _check_rescale(where: str, step: Accumulate, tensors: BlockTensors) -> None:
    """Check that what rescales an accumulator is a running maximum of its elements' rows."""
    if not step.rescale:
        return
    if step.kind != "sum" or step.rescale not in tensors.running:
        raise InputError(
            f"{where}: {step.output}: a {step.kind} rescaled by {step.rescale}, expected a sum by a "
            "running maximum"
        )
    others = without(tensors.dims[step.rescale], variables(tensors.dims[step.operand]))
    if others:
        raise InputError(
            f"{where}: {step.output}: {step.rescale} has the dim {others[0].variable}, which "
            f"{step.operand} has not"
        )


def _accumulated(where: str, step: Accumulate, operand: Dims, loop: int, looped: set[str]) -> Dims:
    """Return the dims of an accumulator.

    Args:
        where: the kernel, for errors.
        step: the accumulator.
        operand: dims of what it accumulates.
        loop: how often.
        looped: the variables of the operand whose last tile, in the loop's last iteration, is smaller.
    """
    _check_has(where, step.output, step.along, operand)
    match step.kind, step.along:
        case (("sum" | "max"), ()):  # of the other iterations, all elements exist
            return tuple(Dim(d.variable, d.size) if d.variable in looped else d for d in operand)
        case "concat", (variable,):
            return tuple(
                Dim(d.variable, d.whole or d.size * loop) if d.variable == variable else d
                for d in operand
            )
        case (("rms" | "reduce_max"), _):
            return without(operand, step.along)
    raise InputError(f"{where}: {step.output}: no accumulation {step.kind!r} along {step.along}")


def _check_has(where: str, output: str, needed: Sequence[str], operand: Dims) -> None:
    missing = set(needed) - set(variables(operand))
    if missing:
        raise InputError(f"{where}: {output}: its operand has no dim {min(missing)!r}")


def _looped(
    where: str, step: Accumulate | RunningMax, operand: Dims, partial: Mapping[str, TileSplit]
) -> set[str]:
    """Return the variables of an operand whose last tile, in the loop's last iteration, is smaller.

    Raises:
        InputError: then the step has no meaning.
    """
    mine = {dim.variable: partial[dim.variable] for dim in operand if dim.whole}
    looped = {name for name, split in mine.items() if split.is_in_loop}
    kind = "max" if isinstance(step, RunningMax) else step.kind
    over = set(step.over) if isinstance(step, RunningMax) else set(step.along)
    others = set() if kind == "sum" else looped - over
    of_blocks = {name for name in over if name in mine and (mine[name].axes or name not in looped)}
    if kind in ("concat", "rms"):
        others |= of_blocks
    if others:
        raise InputError(
            f"{where}: {step.output}: no {kind} of {step.operand}, as the last tile of "
            f"{min(others)} is smaller"
        )
    return looped


def _stage(where: str, step: BlockStep, stages: Mapping[str, BlockStage]) -> BlockStage:
    """Return when a step is computed."""
    operands = {stages[name] for name in step.operands}
    if isinstance(step, Accumulate):
        if BlockStage.AFTER in operands:
            raise InputError(f"{where}: {step.output} accumulates what comes after the loop")
        return BlockStage.AFTER
    if isinstance(step, RunningMax):
        if BlockStage.AFTER in operands:
            raise InputError(
                f"{where}: {step.output} is a running maximum of what comes after the loop"
            )
        return BlockStage.LOOP
    if {BlockStage.LOOP, BlockStage.AFTER} <= operands:
        raise InputError(
            f"{where}: {step.outputs[0]} reads one tensor of the loop and one after it"
        )
    for stage in (BlockStage.LOOP, BlockStage.AFTER):
        if stage in operands:
            return stage
    return BlockStage.INVARIANT


def _check_saver(where: str, saver: Saver, block: BlockGraph, tensors: BlockTensors) -> None:
    checked(saver.dims, saver.output)
    if saver.tile not in tensors.dims:
        raise InputError(f"{where}: {saver.output} stores {saver.tile!r}, which nothing computes")
    if tensors.stages[saver.tile] is BlockStage.LOOP:
        raise InputError(f"{where}: {saver.output} stores {saver.tile!r} of one iteration only")
    if len(saver.omap) != len(block.grid):
        raise InputError(
            f"{where}: {saver.output} has {len(saver.omap)} maps for grid {block.grid}"
        )
    for variable, extent in zip(saver.omap, block.grid, strict=True):
        if not variable and extent > 1:
            raise InputError(f"{where}: {extent} blocks store to the same part of {saver.output}")
    for dim in tensors.dims[saver.tile]:
        axes = tuple(axis for axis, name in enumerate(saver.omap) if name == dim.variable)
        axes = tuple(axis for axis in axes if block.grid[axis] > 1)
        if dim.whole and axes != tensors.partial[dim.variable].axes:
            raise InputError(
                f"{where}: {saver.output}: the last tile of {dim.variable} is smaller, and other "
                "axes of the grid put it together than split it"
            )
    sizes = saved_dims(saver, tensors.dims[saver.tile], block.grid)
    if sizes != {dim.variable: dim.size for dim in saver.dims}:
        stored = " ".join(f"{variable}={size}" for variable, size in sizes.items())
        raise InputError(
            f"{where}: {saver.output} is [{text_of(saver.dims)}], but blocks store [{stored}]"
        )


def _add_new(dims: dict[str, Dims], made: Mapping[str, Dims], where: str) -> None:
    for name, of_name in made.items():
        if name in dims:
            raise InputError(f"{where}: two steps compute {name!r}")
        dims[name] = of_name
