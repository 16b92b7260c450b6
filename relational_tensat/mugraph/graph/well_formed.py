"""Whether a μGraph is one: every tensor's dims, and which step of a block belongs to its loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from relational_tensat.base.errors import InputError, RelationalTensatError
from relational_tensat.mugraph.graph.dims import Dim, Dims, checked, variables, without
from relational_tensat.mugraph.graph.input_windows import windowed
from relational_tensat.mugraph.graph.mugraph import (
    AXES,
    Accumulate,
    BlockGraph,
    BlockStep,
    Iterator,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.operators import mu_operator


class Stage(Enum):
    """When a block computes a tensor: once before the loop, in each iteration, once after it."""

    INVARIANT = "before"
    LOOP = "loop"
    AFTER = "after"


@dataclass(slots=True)
class BlockTensors:
    """The tensors of a block: dims of tiles and stages."""

    dims: dict[str, Dims] = field(default_factory=dict)
    stages: dict[str, Stage] = field(default_factory=dict)


def kernel_tensors(graph: MuGraph) -> dict[str, Dims]:
    """Return the dims of all tensors in device memory.

    Raises:
        InputError: the graph is not well-formed; says which step, and why.
    """
    dims: dict[str, Dims] = dict(graph.inputs)
    for step in graph.steps:
        if isinstance(step, Kernel):
            block_tensors(step, dims)
            made = {saver.output: saver.dims for saver in step.block.savers}
        else:
            made = {step.output: _infer(graph.name, step, dims, "kernel")}
        _add_new(dims, made, graph.name)
    for name in graph.outputs:
        if name not in dims:
            raise InputError(f"{graph.name}: no step computes the output {name!r}")
        if name in graph.wide:
            raise InputError(f"{graph.name}: the output {name!r} is wide, as only what is between")
    return dims


def block_tensors(kernel: Kernel, device: Mapping[str, Dims]) -> BlockTensors:
    """Return the dims and stages of a block's tensors.

    Args:
        kernel: the kernel.
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
        tile = tile_dims(iterator, loaded_dims(iterator, device, where), block, where)
        _add_new(tensors.dims, {iterator.output: tile}, where)
        tensors.stages[iterator.output] = Stage.LOOP if iterator.fmap else Stage.INVARIANT
    for step in block.steps:
        made = _step_dims(where, step, tensors.dims, block.loop)
        stage = _stage(where, step, tensors.stages)
        _add_new(tensors.dims, made, where)
        tensors.stages.update(dict.fromkeys(made, stage))
    for saver in block.savers:
        _check_saver(where, saver, block, tensors)
    return tensors


def loaded_dims(iterator: Iterator, device: Mapping[str, Dims], where: str = "") -> Dims:
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


def tile_dims(iterator: Iterator, dims: Dims, block: BlockGraph, where: str) -> Dims:
    """Return what one block loads in one iteration of dims that all together load.

    Raises:
        InputError: a map names no variable of the tensor, or does not divide it.
    """
    maps = list(zip(iterator.imap, block.grid, strict=False))
    if len(iterator.imap) != len(block.grid):
        raise InputError(
            f"{where}: {iterator.tensor} has {len(iterator.imap)} maps for {block.grid}"
        )
    if iterator.fmap:
        maps.append((iterator.fmap, block.loop))
    sizes = {dim.variable: dim.size for dim in dims}
    for variable, parts in maps:
        if variable and variable not in sizes:
            raise InputError(f"{where}: {iterator.tensor} has no dim {variable!r}")
        if variable and sizes[variable] % parts:
            raise InputError(
                f"{where}: {iterator.tensor}: {parts} parts do not divide {variable}={sizes[variable]}"
            )
        if variable:
            sizes[variable] //= parts
    return tuple(Dim(dim.variable, sizes[dim.variable]) for dim in dims)


def saved_dims(saver: Saver, tile: Dims, grid: Sequence[int]) -> dict[str, int]:
    """Return the sizes of a result's variables, as the tiles of all blocks give them."""
    sizes = {dim.variable: dim.size for dim in tile}
    for variable, extent in zip(saver.omap, grid, strict=True):
        if variable:
            sizes[variable] = sizes.get(variable, 1) * extent
    return sizes


def _infer(where: str, step: Operation, dims: Mapping[str, Dims], level: str) -> Dims:
    operator = mu_operator(step.op)
    if level not in operator.levels:
        raise InputError(f"{where}: {step.op} is no operator of the {level} level")
    if len(step.operands) != operator.arity:
        raise InputError(
            f"{where}: {step.op} takes {operator.arity} operands, not {len(step.operands)}"
        )
    if set(step.attrs) != set(operator.attrs):
        expected = ", ".join(operator.attrs) or "none"
        raise InputError(
            f"{where}: {step.op} has attributes {list(step.attrs)}, expected {expected}"
        )
    for name in step.operands:
        if name not in dims:
            raise InputError(
                f"{where}: {step.output} reads {name!r}, which nothing before computes"
            )
    try:
        return operator.infer([dims[name] for name in step.operands], step.attrs)
    except RelationalTensatError as error:
        raise InputError(f"{where}: {step.output}: {error}") from error


def _step_dims(where: str, step: BlockStep, dims: Mapping[str, Dims], loop: int) -> dict[str, Dims]:
    """Return the dims of what a step of a block makes."""
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
    if isinstance(step, RunningMax):
        return {step.output: without(operand, step.over)}
    return {step.output: _accumulated(where, step, operand, loop)}


def _accumulated(where: str, step: Accumulate, operand: Dims, loop: int) -> Dims:
    """Return the dims of an accumulator."""
    missing = set(step.along) - set(variables(operand))
    if missing:
        raise InputError(f"{where}: {step.output}: {step.operand} has no dim {min(missing)!r}")
    match step.kind, step.along:
        case (("sum" | "max"), ()):
            return operand
        case "concat", (variable,):
            return tuple(
                Dim(d.variable, d.size * (loop if d.variable == variable else 1)) for d in operand
            )
        case "rms", _:
            return without(operand, step.along)
    raise InputError(f"{where}: {step.output}: no accumulation {step.kind!r} along {step.along}")


def _stage(where: str, step: BlockStep, stages: Mapping[str, Stage]) -> Stage:
    """Return when a step is computed."""
    operands = {stages[name] for name in step.operands}
    if isinstance(step, Accumulate):
        if Stage.AFTER in operands:
            raise InputError(f"{where}: {step.output} accumulates what comes after the loop")
        return Stage.AFTER
    if {Stage.LOOP, Stage.AFTER} <= operands:
        raise InputError(
            f"{where}: {step.outputs[0]} reads one tensor of the loop and one after it"
        )
    for stage in (Stage.LOOP, Stage.AFTER):
        if stage in operands:
            return stage
    return Stage.LOOP if isinstance(step, RunningMax) else Stage.INVARIANT


def _check_saver(where: str, saver: Saver, block: BlockGraph, tensors: BlockTensors) -> None:
    checked(saver.dims, saver.output)
    if saver.tile not in tensors.dims:
        raise InputError(f"{where}: {saver.output} stores {saver.tile!r}, which nothing computes")
    if tensors.stages[saver.tile] is Stage.LOOP:
        raise InputError(f"{where}: {saver.output} stores {saver.tile!r} of one iteration only")
    if len(saver.omap) != len(block.grid):
        raise InputError(
            f"{where}: {saver.output} has {len(saver.omap)} maps for grid {block.grid}"
        )
    for variable, extent in zip(saver.omap, block.grid, strict=True):
        if not variable and extent > 1:
            raise InputError(f"{where}: {extent} blocks store to the same part of {saver.output}")
    sizes = saved_dims(saver, tensors.dims[saver.tile], block.grid)
    if sizes != {dim.variable: dim.size for dim in saver.dims}:
        raise InputError(f"{where}: {saver.output} is {saver.dims}, but blocks store {sizes}")


def _add_new(dims: dict[str, Dims], made: Mapping[str, Dims], where: str) -> None:
    for name, of_name in made.items():
        if name in dims:
            raise InputError(f"{where}: two steps compute {name!r}")
        dims[name] = of_name
