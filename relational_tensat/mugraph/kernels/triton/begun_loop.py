"""A loop for a kernel that has none: what it sums over a variable is added up in steps instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.described import names
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockStep,
    Iterator,
    Kernel,
    Operation,
)
from relational_tensat.mugraph.graph.thread_graphs import flat_steps
from relational_tensat.mugraph.graph.well_formed import block_tensors
from relational_tensat.mugraph.kernels.triton.padding import MOVES

#: What is added up over a loop if what it sums is split.
_SUMS = ("matmul", "sum")


def with_loop(kernel: Kernel, device: Mapping[str, Dims]) -> Kernel | None:
    """Return a kernel without a loop with one of two iterations, which computes the same.

    It is over a variable that sums, products or root mean squares run over; None where it can be over none.

    Args:
        kernel: the kernel; its loop is of one iteration.
        device: the dims of its operands.
    """
    if kernel.block.loop > 1:
        return None
    tiles = block_tensors(kernel, device).dims
    steps = flat_steps(kernel.block.steps)
    kernel = replace(kernel, block=replace(kernel.block, steps=steps))
    for variable in _summed(kernel):
        begun = _over(kernel, variable, tiles)
        if begun is None:
            continue
        try:
            block_tensors(begun, device)
        except (
            InputError
        ):  # what comes after the loop is read within it, or an iteration's is stored
            continue
        return begun
    return None


def _summed(kernel: Kernel) -> list[str]:
    found = [
        name
        for step in kernel.block.steps
        if isinstance(step, Operation) and "over" in step.attrs
        for name in names(step.attrs, "over")
    ]
    return list(dict.fromkeys(found))


def _over(kernel: Kernel, variable: str, tiles: Mapping[str, Dims]) -> Kernel | None:
    """Return the kernel with a loop over a variable, or None: then two iterations give no such sum."""
    iterators = [_split(iterator, variable, tiles) for iterator in kernel.block.iterators]
    along = {iterator.output for iterator in iterators if iterator.fmap}
    steps: list[BlockStep] = []
    for step in kernel.block.steps:
        if along.isdisjoint(step.operands):
            steps.append(step)
            continue
        made = _added_up(step, variable)
        if made is None:
            return None
        steps += made
        if made == [step]:
            along.update(step.outputs)
    sizes = [d.size for name in along for d in tiles.get(name, ()) if d.variable == variable]
    if not sizes or any(size % 2 for size in sizes):
        return None
    block = replace(kernel.block, loop=2, iterators=tuple(iterators), steps=tuple(steps))
    return replace(kernel, block=block)


def _split(iterator: Iterator, variable: str, tiles: Mapping[str, Dims]) -> Iterator:
    has_it = any(dim.variable == variable for dim in tiles[iterator.output])
    return replace(iterator, fmap=variable if has_it else "")


def _added_up(step: BlockStep, variable: str) -> list[BlockStep] | None:
    """Return a step that reads a part of the variable in each iteration; None where it cannot."""
    if not isinstance(step, Operation) or step.op in MOVES:
        return None
    over = names(step.attrs, "over") if "over" in step.attrs else ()
    if variable not in over:
        return [step] if not over or step.op in (*_SUMS, "max", "rms") else None
    if step.op == "rms":
        epsilon = cast(float, step.attrs["epsilon"])
        return [Accumulate(step.operands[0], step.output, "rms", over, epsilon=epsilon)]
    if step.op not in _SUMS:
        return None
    part = f"{step.output}_part"
    return [replace(step, output=part), Accumulate(part, step.output)]
