"""Products of tensors that are joined along what they are summed over: [W ‖ X]·[Y ‖ Z] is W·Y + X·Z.

A concatenation is the sum of windows with zeros beside them: its product reads zeros, and needs room for
all of it. Folded, two parts are one ``concat_matmul``, into one accumulator; more are products, added up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, pairwise
from typing import TypeAlias, cast

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.mugraph.graph.dims import Dims, Window, size_of, variables
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import (
    BlockStep,
    Kernel,
    KernelStep,
    MuGraph,
    Operation,
)
from relational_tensat.mugraph.graph.operators import mu_operator
from relational_tensat.mugraph.graph.rewrites import flat_steps
from relational_tensat.mugraph.graph.validity import block_tensors, kernel_tensors

_Step: TypeAlias = BlockStep | KernelStep


@dataclass(frozen=True, slots=True)
class _ProductPart:
    """The content of a concatenation from one place to another: all of a tensor, along a variable of it.

    Attributes:
        variable: empty for one element, which no variable stands for.
        renames: of other variables, in order, as the concatenation has them.
    """

    tensor: str
    variable: str
    first: int
    last: int
    renames: tuple[tuple[str, str], ...] = ()


def with_concat_products(graph: MuGraph) -> MuGraph:
    """Return a μGraph that computes the same without products of concatenations of equal parts.

    It is the graph itself without such products.

    Raises:
        InputError: the graph is not well-formed.
    """
    if not any(isinstance(step, Operation) and step.op == "window" for step in _all_steps(graph)):
        return graph
    device = kernel_tensors(graph)
    steps: list[KernelStep] = []
    for step in graph.steps:
        if isinstance(step, Kernel):
            flat = flat_steps(step.block.steps)
            dims = block_tensors(replace(step, block=replace(step.block, steps=flat)), device).dims
            inner = _Folding(flat, dims).folded([saver.tile for saver in step.block.savers])
            if inner != flat:
                made = cast(tuple[BlockStep, ...], inner)
                step = replace(step, block=replace(step.block, steps=made))
        steps.append(step)
    folded = cast(tuple[KernelStep, ...], _Folding(tuple(steps), device).folded(graph.outputs))
    return graph if folded == graph.steps else replace(graph, steps=folded)


def _all_steps(graph: MuGraph) -> list[_Step]:
    blocks = (step.block.steps if isinstance(step, Kernel) else (step,) for step in graph.steps)
    return list(chain.from_iterable(blocks))


class _Folding:
    """The steps of one level, whose products are folded.

    Args:
        steps: without thread graphs.
        dims: of all tensors there.
    """

    def __init__(self, steps: tuple[_Step, ...], dims: Mapping[str, Dims]) -> None:
        self._steps, self._dims = steps, dict(dims)
        self._made = {s.output: s for s in steps if isinstance(s, Operation)}
        self._known = {name for own in dims.values() for name in variables(own)}

    def folded(self, read: Sequence[str]) -> tuple[_Step, ...]:
        """Return the steps with folded products, and without what nothing reads any more."""
        steps: list[_Step] = []
        for step in self._steps:
            sides = self._sides(step)
            steps += (
                [step]
                if sides is None or not isinstance(step, Operation)
                else self._sum(step, *sides)
            )
        if steps == list(self._steps):
            return self._steps
        left: list[_Step] = []
        used = set(read)
        for step in reversed(steps):
            is_part = isinstance(step, Operation) and step.op in ("window", "add", "rename")
            if not is_part or used.intersection(step.outputs):
                left.append(step)
                used.update(step.operands)
        return tuple(reversed(left))

    def _sides(self, step: _Step) -> tuple[list[_ProductPart], list[_ProductPart]] | None:
        """Return the parts of both factors, if a step multiplies two that are joined of equal ones."""
        if (
            not isinstance(step, Operation)
            or step.op != "matmul"
            or len(names(step.attrs, "over")) != 1
        ):
            return None
        (over,) = names(step.attrs, "over")
        left, right = (self._parts(name, over) for name in step.operands)
        size = size_of(self._dims[step.operands[0]], over)
        places = [(part.first, part.last) for part in left]
        is_whole = [0, *(last for _, last in places)] == [*(first for first, _ in places), size]
        if len(left) < 2 or not is_whole or places != [(part.first, part.last) for part in right]:
            return None
        is_alike = all(
            bool(a.variable) == bool(b.variable) for a, b in zip(left, right, strict=True)
        )
        return (left, right) if is_alike else None

    def _parts(self, name: str, along: str) -> list[_ProductPart]:
        """Return what a tensor is joined of along a variable, in order; nothing if it is not."""
        step = self._made.get(name)
        if step is not None and step.op == "add":
            both = [self._parts(operand, along) for operand in step.operands]
            parts = sorted(chain.from_iterable(both), key=lambda part: part.first)
            is_apart = all(before.last <= after.first for before, after in pairwise(parts))
            return parts if all(both) and is_apart else []
        if step is not None and step.op == "rename":
            (operand,), change = (
                step.operands,
                (str(step.attrs["variable"]), str(step.attrs["into"])),
            )
            if change[1] == along:
                return self._parts(operand, change[0])
            parts = self._parts(operand, along)
            return [replace(part, renames=(*part.renames, change)) for part in parts]
        if step is None or step.op != "window":
            return []
        window, (operand,) = Window.of(step.attrs), step.operands
        size = size_of(self._dims[operand], window.variables[0]) if window.variables else 1
        if (
            window.into != (along,) or len(window.variables) > 1 or window.step != 1
            or window.offset != -window.first or size != window.last - window.first
        ):  # fmt: skip
            return []
        return [_ProductPart(operand, "".join(window.variables), window.first, window.last)]

    def _sum(
        self, product: Operation, left: Sequence[_ProductPart], right: Sequence[_ProductPart]
    ) -> list[Operation]:
        """Return the sum of the products of parts, under the product's name."""
        steps: list[Operation] = []
        pairs: list[tuple[str, str, str]] = []
        for one, other in zip(left, right, strict=True):
            a, over = self._as_joined(steps, product, one)
            b, own = self._as_joined(steps, product, other)
            if over != own and over in variables(self._dims[b]):
                a, over = self._renamed(steps, product, a, over, self._fresh(over))
            if over != own:
                b, own = self._renamed(steps, product, b, own, over)
            pairs.append((a, b, over))
        (w, y, first), (x, z, second), *others = pairs
        joint = Operation("concat_matmul", (w, x, y, z), product.output, {"over": (first, second)})
        if not others and first and second and self._fits(joint):
            return [*steps, joint]
        total = ""
        for place, (a, b, over) in enumerate(pairs):
            term = f"{product.output} product {place}"
            made = (
                Operation("matmul", (a, b), term, {"over": (over,)})
                if over
                else Operation("mul", (a, b), term)
            )
            steps.append(made)
            is_last = place == len(pairs) - 1
            name = product.output if is_last else f"{product.output} sum {place}"
            if total:
                steps.append(Operation("add", (total, term), name))
            total = name if total else term
        return steps

    def _fits(self, joint: Operation) -> bool:
        """Whether the two products of a joint one have the same dims."""
        try:
            mu_operator(joint.op).infer([self._dims[name] for name in joint.operands], joint.attrs)
        except RelationalTensatError:
            return False
        return True

    def _as_joined(
        self, steps: list[Operation], product: Operation, part: _ProductPart
    ) -> tuple[str, str]:
        """Add the steps that rename a part's variables; return it, and the one along which it is joined."""
        tensor, along = part.tensor, part.variable
        for variable, into in part.renames:
            if along == into:
                tensor, along = self._renamed(steps, product, tensor, along, self._fresh(along))
            if variable in variables(self._dims[tensor]):
                tensor, _ = self._renamed(steps, product, tensor, variable, into)
        return tensor, along

    def _renamed(
        self, steps: list[Operation], product: Operation, tensor: str, variable: str, into: str
    ) -> tuple[str, str]:
        """Add a step that renames a variable; return its result, and the new name."""
        name = f"{product.output} factor {len(steps)}"
        step = Operation("rename", (tensor,), name, {"variable": variable, "into": into})
        steps.append(step)
        self._dims[name] = mu_operator("rename").infer([self._dims[tensor]], step.attrs)
        return name, into

    def _fresh(self, variable: str) -> str:
        found = next(name for n in count(1) if (name := f"{variable}{n}") not in self._known)
        self._known.add(found)
        return found
