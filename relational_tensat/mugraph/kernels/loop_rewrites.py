"""Loops of more and shorter steps, or new loops, where that gives the same sum.

A kernel without a loop gets one: its sum over a variable is added up in steps instead. No step is
shorter than tensor cores need: 16 elements of some variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dims, variables
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockStep,
    InputIterator,
    Kernel,
    Operation,
    RunningMax,
)
from relational_tensat.mugraph.graph.rewrites import flat_steps
from relational_tensat.mugraph.graph.validity import block_tensors

#: The operands of each matrix product within an operator.
PAIRS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "matmul": ((0, 1),),
    "concat_matmul": ((0, 2), (1, 3)),
}
#: Operators that give the elements of an axis to another variable, which needs the same length then.
RENAMES = ("rename", "split", "merge")
#: Operators that give elements of an axis to other indices, so that a tile of it is not one of the
#: result's.
MOVES = (*RENAMES, "window")


def multiplied(
    steps: Sequence[Operation | Accumulate | RunningMax], dims: Mapping[str, Dims]
) -> frozenset[str]:
    """Return the variables of rows, columns or sums of a product; not those of its batches only.

    Args:
        steps: a block's, those within thread graphs, too.
        dims: of a block's tensors.
    """
    operations = [step for step in steps if isinstance(step, Operation)]
    products = [step for step in operations if step.op in PAIRS]
    if products and any(step.op in RENAMES for step in operations):
        return frozenset(dim.variable for tensor in dims.values() for dim in tensor)
    found: set[str] = set()
    for step in products:
        over = set(names(step.attrs, "over"))
        for left, right in PAIRS[step.op]:
            x, y = (set(variables(dims[step.operands[place]])) for place in (left, right))
            found |= (x ^ y) | ((x & y) & over)
    return frozenset(found)


#: Operators that are sums: a loop adds up their parts.
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
    """Return the kernel with a loop over a variable, or None if two iterations give no such sum."""
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


def _split(iterator: InputIterator, variable: str, tiles: Mapping[str, Dims]) -> InputIterator:
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


#: Operators proportional to one operand, if the others stay; of div the first.
_PROPORTIONAL = ("div", "div_or_zero", "matmul", "mul", "neg", "scale", "sum")


def with_shorter_steps(kernel: Kernel, device: Mapping[str, Dims], shortest: int) -> Kernel | None:
    """Return a kernel whose loop has twice the iterations and computes the same; None where it cannot.

    Args:
        device: the dims of its operands.
        shortest: of the variable that the loop traverses an iteration has no fewer values.
    """
    variable = divisible_loop(kernel)
    if not variable:
        return None
    tiles = block_tensors(kernel, device).dims
    tile = next(
        dim.size
        for iterator in kernel.block.iterators
        for dim in tiles[iterator.output]
        if iterator.fmap and dim.variable == variable
    )
    if tile % 2 or tile < 2 * shortest:
        return None
    longer = replace(kernel, block=replace(kernel.block, loop=2 * kernel.block.loop))
    try:
        block_tensors(longer, device)
    except InputError:  # a last tile, smaller than others, would have no element
        return None
    return longer


def divisible_loop(kernel: Kernel) -> str:
    """Return the variable that the loop traverses, if shorter steps give the same; else nothing.

    They do if all values that are added up are sums over that variable: every tensor of the loop either
    carries it, or is its sum, or is a running maximum over it, by which that sum is rescaled.
    """
    block = kernel.block
    traversed = {iterator.fmap for iterator in block.iterators if iterator.fmap}
    if block.loop == 1 or len(traversed) != 1:
        return ""
    (variable,) = traversed
    known = _Loop(variable, block.iterators)
    return variable if all(map(known.accepts, flat_steps(block.steps))) else ""


class _Loop:
    """The known facts of a loop's tensors, one step after the other.

    Each carries the variable, or is a sum over it, or a running maximum. Of those that carry it, or are
    sums, some are proportional to the exponential of minus a running maximum.
    """

    def __init__(self, variable: str, iterators: Iterable[InputIterator]) -> None:
        self._variable = variable
        self._along = {iterator.output for iterator in iterators if iterator.fmap}
        self._sums: set[str] = set()
        self._maxima: set[str] = set()
        self._below: dict[str, str] = {}  # differences to a maximum
        self._faded: dict[str, str] = {}  # proportional to exp(-maximum)

    def accepts(self, step: Operation | Accumulate | RunningMax) -> bool:
        """Whether a step, after all before it, means the same where steps of the loop are shorter."""
        match step:
            case Accumulate(kind="max"):  # the last value of a running maximum
                return step.operand in self._maxima
            case Accumulate(kind="rms"):
                is_plain = step.operand in self._along and step.operand not in self._below
                return is_plain and step.operand not in self._faded and self._variable in step.along
            case Accumulate():
                is_faded_so = self._faded.get(step.operand, "") == step.rescale
                return step.kind == "sum" and step.operand in self._sums and is_faded_so
            case RunningMax():
                self._maxima.add(step.output)
                is_plain = step.operand in self._along and step.operand not in self._below
                return is_plain and step.operand not in self._faded and self._variable in step.over
        known = self._along | self._sums | self._maxima
        return known.isdisjoint(step.operands) or self._is_local(step)

    def _is_local(self, step: Operation) -> bool:
        """Whether elements depend on those of the same place only, or are a sum over the variable."""
        carried = self._along.intersection(step.operands)
        if not carried or not self._sums.isdisjoint(step.operands) or step.op in MOVES:
            return False
        over = names(step.attrs, "over") if "over" in step.attrs else ()
        if self._variable in over:
            self._sums.add(step.output)
        else:
            self._along.add(step.output)
        is_sum = step.op in ("sum", "matmul")
        return (is_sum or self._variable not in over) and self._is_faded_right(step)

    def _is_faded_right(self, step: Operation) -> bool:
        """Whether what depends on a running maximum m is x - m, exp of that, or proportional to it."""
        if not self._maxima.isdisjoint(step.operands):
            self._below[step.output] = step.operands[-1]
            is_difference = step.op == "sub" and step.operands[1] in self._maxima
            others = (self._maxima, self._below, self._faded)
            return is_difference and not any(step.operands[0] in other for other in others)
        if not self._below.keys().isdisjoint(step.operands):
            self._faded[step.output] = self._below.get(step.operands[0], "")
            return step.op == "exp"
        faded = [name for name in step.operands if name in self._faded]
        if not faded:
            return True
        self._faded[step.output] = self._faded[faded[0]]
        is_numerator = step.op not in ("div", "div_or_zero") or faded == [step.operands[0]]
        return len(faded) == 1 and step.op in _PROPORTIONAL and is_numerator
