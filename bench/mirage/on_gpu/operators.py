"""Programs by PyTorch's operators: what a μGraph's kernels are compared with, and timed against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dims, variables
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.tensor.types import Attrs

#: What PyTorch has one operator for, and programs have several.
_SOFTMAX, _RMS_NORM = "softmax", "rms_norm"


@dataclass(frozen=True, slots=True)
class Placed:
    """A tensor on the device, and the index variables of its axes, in the order in which it lies."""

    labels: tuple[str, ...]
    data: Any

    def along(self, labels: Sequence[str]) -> Any:
        """Return a view with an axis for each of these labels, of extent 1 where it has none."""
        own = [label for label in labels if label in self.labels]
        view = self.data.permute([self.labels.index(label) for label in own])
        return view[tuple(slice(None) if label in own else None for label in labels)]


def run_program(
    program: MuGraph, inputs: Mapping[str, Placed], *, is_fused: bool = True
) -> list[Placed]:
    """Return the outputs of a program, an operator of PyTorch's after the other.

    Args:
        program: of operators of libraries only.
        inputs: by name.
        is_fused: whether softmax and the division by a root mean square are the operators that PyTorch has
            for them; else exponentials, sums and quotients are taken one by one.

    Raises:
        InputError: it has an operator that is not here.
    """
    dims, tensors = kernel_tensors(program), dict(inputs)
    for step in _fused(program, dims) if is_fused else program.operators:
        tensors[step.output] = apply(step, tensors, dims[step.output])
    return [tensors[name] for name in program.outputs]


def apply(step: Operation, tensors: Mapping[str, Placed], dims: Dims) -> Placed:
    """Return what an operator gives, its axes in the order of ``dims``.

    Raises:
        InputError: it is not here.
    """
    labels, operands = variables(dims), [tensors[name] for name in step.operands]
    if step.op == "matmul":
        return _product(operands, labels)
    if step.op == "scale":
        return Placed(labels, operands[0].along(labels) * step.attrs["value"])
    if step.op in _ELEMENTWISE:
        return Placed(labels, _ELEMENTWISE[step.op](*(x.along(labels) for x in operands)))
    if step.op not in _OVER_AXES:
        raise InputError(f"{step.op}: no operator of PyTorch's is taken for it")
    (x,) = operands
    over = [x.labels.index(name) for name in names(step.attrs, "over")]
    data = _OVER_AXES[step.op](x.data, over, step.attrs)
    is_kept = data.ndim == x.data.ndim
    kept = tuple(label for at, label in enumerate(x.labels) if is_kept or at not in over)
    return Placed(labels, Placed(kept, data).along(labels))


def _product(operands: Sequence[Placed], labels: tuple[str, ...]) -> Placed:
    letters: dict[str, str] = {}
    for label in (*operands[0].labels, *operands[1].labels):
        letters.setdefault(label, chr(ord("a") + len(letters)))
    a, b, wanted = ("".join(map(letters.__getitem__, x)) for x in (
        operands[0].labels, operands[1].labels, labels
    ))  # fmt: skip
    return Placed(labels, torch.einsum(f"{a},{b}->{wanted}", *(x.data for x in operands)))


_ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "add": torch.add,
    "div": torch.div,
    "exp": torch.exp,
    "mul": torch.mul,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
}

#: Functions of a tensor, some of its axes, and the operator's attributes; axes that they sum are dropped.
_OVER_AXES: Mapping[str, Callable[[Any, list[int], Attrs], Any]] = {
    "sum": lambda x, over, _: x.sum(over),
    "rms": lambda x, over, attrs: (x.square().mean(over) + attrs["epsilon"]).sqrt(),
    _SOFTMAX: lambda x, over, _: torch.softmax(x, *over),
    _RMS_NORM: lambda x, over, attrs: torch.nn.functional.rms_norm(
        x, [x.shape[axis] for axis in over], eps=attrs["epsilon"]
    ),
}


def _fused(program: MuGraph, dims: Mapping[str, Dims]) -> list[Operation]:
    """Return a program's operators with softmax and the normalization as one each, and what these need."""
    made = {step.output: step for step in program.operators}
    needed, kept = set(program.outputs), []
    for operator in reversed(program.operators):
        step = _as_one(operator, made, dims) or operator
        if step.output in needed:
            kept.append(step)
            needed |= set(step.operands)
    return kept[::-1]


def _as_one(
    step: Operation, made: Mapping[str, Operation], dims: Mapping[str, Dims]
) -> Operation | None:
    """Return a quotient as softmax, or as a normalization along the last axes; None if it is neither."""
    below = made.get(step.operands[-1])
    if step.op != "div" or below is None or below.operands != step.operands[:1]:
        return None
    (x,), over = below.operands, names(below.attrs, "over")
    if below.op == "sum" and x in made and made[x].op == "exp" and len(over) == 1:
        return Operation(_SOFTMAX, made[x].operands, step.output, below.attrs)
    if below.op == "rms" and variables(dims[x])[-len(over) :] == over:
        return Operation(_RMS_NORM, (x,), step.output, below.attrs)
    return None
