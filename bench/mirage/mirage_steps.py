"""μGraphs as Mirage's operators need them, and each step as one of these, or why it cannot be.

They have no thread graphs, one variable a sum, accumulators to store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dims, Window
from relational_tensat.mugraph.graph.mirage_levels import BINARY, FUNCTIONS
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockStep,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
    RunningMax,
)
from relational_tensat.mugraph.graph.rewrites import flat_steps
from relational_tensat.mugraph.graph.validity import (
    BlockStage,
    BlockTensors,
    block_tensors,
    kernel_tensors,
)


def plain(graph: MuGraph) -> MuGraph:
    """Return a μGraph that computes the same, nearer to Mirage's operators.

    It has no thread graphs; each sum and each maximum is over one variable; what the loop does not change
    is accumulated before a store, or a step after the loop, reads it; and maxima of it are running ones.

    Raises:
        InputError: the graph is not well-formed.
    """
    device = kernel_tensors(graph)
    steps = (one for step in graph.steps for one in _plain_steps(step, device))
    return replace(graph, steps=tuple(steps))


def _plain_steps(step: KernelStep, device: Mapping[str, Dims]) -> Iterator[KernelStep]:
    if isinstance(step, Operation):
        yield from _over_single_variables(step)
        return
    steps: list[BlockStep] = []
    for inner in flat_steps(step.block.steps):
        if isinstance(inner, Operation):
            steps += _over_single_variables(inner)
        else:
            steps += _single_maxima(inner) if isinstance(inner, RunningMax) else [inner]
    yield _accumulated(replace(step, block=replace(step.block, steps=tuple(steps))), device)


def _over_single_variables(step: Operation) -> Iterator[Operation]:
    over = names(step.attrs, "over") if step.op in ("sum", "max") else ()
    operands = step.operands
    for place, variable in enumerate(over[:-1]):
        part = f"{step.output} part {place}"
        yield Operation(step.op, operands, part, {"over": (variable,)})
        operands = (part,)
    yield replace(step, operands=operands, attrs={"over": over[-1:]}) if over else step


def _single_maxima(step: RunningMax) -> Iterator[RunningMax]:
    """Yield running maxima of running maxima: they are those of all elements so far, too."""
    operand = step.operand
    for place, variable in enumerate(step.over[:-1]):
        part = f"{step.output} part {place}"
        yield RunningMax(operand, part, (variable,))
        operand = part
    yield replace(step, operand=operand, over=step.over[-1:])


def _accumulated(kernel: Kernel, device: Mapping[str, Dims]) -> Kernel:
    """Return a kernel that accumulates what is read after the loop and the loop does not change.

    The sum of one iteration is what was added, the largest of equal elements each of them.
    """
    block, stages = kernel.block, block_tensors(kernel, device).stages
    kind = "sum" if block.loop == 1 else "max"
    kept: dict[str, str] = {}
    steps: list[BlockStep] = []

    def after(name: str) -> str:
        if stages[name] is not BlockStage.INVARIANT:
            return name
        if name not in kept:
            kept[name] = f"{name} kept"
            steps.append(Accumulate(name, kept[name], kind))
        return kept[name]

    for step in block.steps:
        if not isinstance(step, Operation):
            steps.append(step)
        elif stages[step.output] is BlockStage.AFTER:
            operands = tuple(map(after, step.operands))
            steps.append(replace(step, operands=operands))
        elif step.op == "max" and stages[step.output] is BlockStage.INVARIANT:
            steps.append(RunningMax(step.operands[0], step.output, names(step.attrs, "over")))
        else:
            steps.append(step)
    savers = tuple(replace(saver, tile=after(saver.tile)) for saver in block.savers)
    return replace(kernel, block=replace(block, steps=tuple(steps), savers=savers))


#: Functions of one element, which Mirage has at both levels, and functions of two.


@dataclass(frozen=True, slots=True)
class MirageStep:
    """One of Mirage's operators, or ``rename``, which it needs none for.

    Attributes:
        op: its name without level and suffix; ``reduction`` without its position.
        operands, output: tensors by name.
        over: the variables that a sum or a mean is over; of a concatenation each operand's.
        into: the new name of ``over``, or what a sum in strides leaves of it.
        pieces: of a split: each with the name of ``over`` there; of a maximum itself, and by how much the
            last step moved it.
        number: what ``scale`` multiplies by.
    """

    op: str
    operands: tuple[str, ...]
    output: str
    over: tuple[str, ...] = ()
    into: str = ""
    pieces: tuple[tuple[str, str], ...] = ()
    number: float = 1.0

    @property
    def outputs(self) -> tuple[str, ...]:
        """What it gives."""
        return tuple(name for name, _ in self.pieces) or (self.output,)


def moved_of(running_max: str) -> str:
    """Return the name of by how much a running maximum's last step moved it, before minus now."""
    return f"{running_max} moved"


def factor_of(running_max: str) -> str:
    """Return the name of the exponential of that."""
    return f"{running_max} factor"


def mirage_steps(
    where: str, steps: Sequence[BlockStep | KernelStep], read: Sequence[str]
) -> Iterator[MirageStep | Kernel]:
    """Yield the steps of one level as Mirage's.

    Args:
        where: named in errors.
        steps: of a plain μGraph.
        read: what others read of them.

    Raises:
        InputError: Mirage has no such step; says which.
    """
    readers = Counter([*read, *(name for step in steps for name in step.operands)])
    place = 0
    while place < len(steps):
        step = steps[place]
        taken = 1
        if isinstance(step, Kernel):
            yield step
        else:
            made, taken = (
                _joined(steps[place:], readers)
                or _split(steps[place:])
                or _several(steps[place : place + 3], readers)
                or (_one(where, step), 1)
            )
            yield made
            if made.op == "reduction_max" and _rescales(made.output, steps):
                yield MirageStep("exp", (moved_of(made.output),), factor_of(made.output))
        place += taken


def _rescales(running_max: str, steps: Sequence[BlockStep | KernelStep]) -> bool:
    return any(isinstance(step, Accumulate) and step.rescale == running_max for step in steps)


def _several(
    steps: Sequence[BlockStep | KernelStep], readers: Mapping[str, int]
) -> tuple[MirageStep, int] | None:
    """Return several steps that are one operator of Mirage's, and how many they are."""
    match steps:
        case [
            Operation(op="split") as split,
            Operation(op="sum") as total,
            Accumulate(kind="sum", rescale="") as kept,
        ] if _is_chain((split, total, kept), readers):
            into = names(split.attrs, "into")
            if len(into) == 2 and names(total.attrs, "over") == into[:1]:
                split_over = (str(split.attrs["variable"]),)
                step = "accum_redtox_ld_sum"
                return MirageStep(step, split.operands, kept.output, split_over, into[1]), 3
        case [Operation(op="rms") as mean, Operation(op="div") as quotient, *_] if (
            quotient.operands == (*mean.operands, mean.output)
            and readers[mean.output] == 1
            and not mean.attrs["epsilon"]
            and len(names(mean.attrs, "over")) <= 1
        ):
            over = names(mean.attrs, "over")
            return MirageStep("rms_norm", mean.operands, quotient.output, over), 2
    return None


def _split(steps: Sequence[BlockStep | KernelStep]) -> tuple[MirageStep, int] | None:
    """Return windows of one tensor, each beginning where the one before ends, as a split of it."""
    pieces: list[tuple[str, str]] = []
    first = _window(steps[0])
    end = 0
    for step in steps:
        window = _window(step)
        if (
            first is None or window is None or window.is_bounded or window.step != 1
            or step.operands != steps[0].operands or window.offset != end
            or window.variables != first.variables or len(window.variables) != 1
            or len(window.into) > 1
        ):  # fmt: skip
            break
        pieces.append((step.outputs[0], "".join(window.into)))
        end += window.size
    if first is None or not pieces:
        return None
    whole, (output, _) = steps[0].operands, pieces[0]
    made = MirageStep("split", whole, output, first.variables, pieces=tuple(pieces))
    return made, len(pieces)


def _joined(
    steps: Sequence[BlockStep | KernelStep], readers: Mapping[str, int]
) -> tuple[MirageStep, int] | None:
    """Return windows with zeros beside them, and their sum, as a concatenation."""
    operands: list[str] = []
    over: list[str] = []
    end, total, pending = 0, "", ""
    first = _window(steps[0])
    if first is None or len(first.into) != 1:
        return None
    for place, step in enumerate(steps):
        window = _window(step)
        if window is not None:
            is_next = (window.first, window.offset, window.step) == (end, -end, 1)
            if not is_next or window.into != first.into or readers[step.outputs[0]] != 1:
                return None
            operands += step.operands
            over.append("".join(window.variables))
            end = window.last
            pending = step.outputs[0]
            total = total or pending
            continue
        if not isinstance(step, Operation) or step.op != "add":
            return None
        if step.operands != (total, pending):
            return None
        total = step.output
        if end == first.size:
            made = MirageStep("concat", tuple(operands), total, tuple(over), first.into[0])
            return made, place + 1
        if readers[total] != 1:
            return None
    return None


def _window(step: BlockStep | KernelStep) -> Window | None:
    if not isinstance(step, Operation) or step.op != "window":
        return None
    return Window.of(step.attrs)


def _is_chain(steps: Sequence[Operation | Accumulate], readers: Mapping[str, int]) -> bool:
    return all(
        after.operands == before.outputs and readers[before.outputs[0]] == 1
        for before, after in pairwise(steps)
    )


def _one(where: str, step: BlockStep) -> MirageStep:
    match step:
        case Operation(op="rename"):
            over = (str(step.attrs["variable"]),)
            return MirageStep("rename", step.operands, step.output, over, str(step.attrs["into"]))
        case Operation(op="sum"):
            return MirageStep("reduction", step.operands, step.output, names(step.attrs, "over"))
        case Operation(op="matmul") if len(names(step.attrs, "over")) == 1:
            return MirageStep("matmul", step.operands, step.output, names(step.attrs, "over"))
        case Operation(op="concat_matmul"):
            summed = names(step.attrs, "over")
            return MirageStep("concat_then_matmul", step.operands, step.output, summed)
        case Operation() if step.op in FUNCTIONS | BINARY:
            return MirageStep(step.op, step.operands, step.output)
        case Operation(op="scale"):
            number = float(cast(float, step.attrs["value"]))
            return MirageStep("scale", step.operands, step.output, number=number)
        case Accumulate(kind="sum", rescale=""):
            return MirageStep("accum_nored", step.operands, step.output)
        case Accumulate(kind="sum"):
            operands = (step.operand, factor_of(step.rescale))
            return MirageStep("accum_nored_rescale", operands, step.output)
        case Accumulate(kind="max"):
            return MirageStep("accum_max", step.operands, step.output)
        case RunningMax():
            pieces = tuple((name, "") for name in (step.output, moved_of(step.output)))
            return MirageStep("reduction_max", step.operands, step.output, step.over, "", pieces)
        case Accumulate(kind="rms", epsilon=0.0) if len(step.along) <= 1:
            return MirageStep("accum_red_ld_rms", step.operands, step.output, step.along)
    raise InputError(f"{where}: {step.outputs[0]} = {_named(step)} has no form in Mirage's JSON")


def _named(step: BlockStep) -> str:
    match step:
        case Operation():
            given = ", ".join(f"{name}={value}" for name, value in step.attrs.items())
            return f"{step.op} ({given})" if given else step.op
        case Accumulate(kind=kind):
            return f"{kind} over the loop"
    return "a thread graph"


def check_stages(where: str, step: MirageStep, stages: Mapping[str, BlockStage]) -> None:
    """Check that operands all are of before the loop's sums, or all of after them.

    Raises:
        InputError: they are not; Mirage's operators must be.
    """
    given = {stages[name] is BlockStage.AFTER for name in step.operands}
    if len(given) > 1:
        raise InputError(
            f"{where}: {step.output} reads what the loop adds up and what it does not, "
            "which Mirage's JSON has no form for"
        )


def with_last_sums(
    given: Sequence[MirageStep],
    stored: Collection[str],
    is_last: Callable[[str, str], bool],
    mean: Callable[[MirageStep], float | None],
) -> list[MirageStep]:
    """Return a block's steps, sums over the last dim together with the accumulator right after them.

    So are their products with what makes them means.

    Args:
        stored: what the block stores.
        is_last: whether a tensor has a variable last.
        mean: what makes an accumulator a mean; None for nothing.
    """
    result: list[MirageStep] = []
    uses = [name for step in given for name in step.operands]
    for step in given:
        before = result[-1] if result else None
        is_next = (
            before is not None and step.operands[:1] == (before.output,)
            and uses.count(before.output) == 1 and before.output not in stored
        )  # fmt: skip
        if not is_next or before is None:
            result.append(step)
        elif (
            step.op in ("accum_nored", "accum_nored_rescale") and before.op == "reduction"
            and is_last(before.operands[0], before.over[0])
        ):  # fmt: skip
            op = step.op.replace("nored", "red_ld_sum")
            operands = (*before.operands, *step.operands[1:])
            result[-1] = MirageStep(op, operands, step.output, before.over)
        elif step.op == "scale" and step.number == mean(before):
            result[-1] = replace(before, op="accum_red_ld_mean", output=step.output)
        else:
            result.append(step)
    return result


#: What is left of a dim that is summed in strides, where a block has no such sum.
_REDUCTION = 64


def left_of_strided(where: str, steps: Sequence[MirageStep], tensors: BlockTensors) -> int:
    """Return what a block's sums in strides leave of a dim.

    Raises:
        InputError: they leave different numbers; Mirage's JSON has one a block.
    """
    left = {
        dim.size
        for step in steps
        if step.op == "accum_redtox_ld_sum"
        for dim in tensors.dims[step.output]
        if dim.variable == step.into
    }
    if len(left) > 1:
        raise InputError(
            f"{where}: sums in strides leave {sorted(left)}, Mirage's JSON has one number"
        )
    return next(iter(left), _REDUCTION)
