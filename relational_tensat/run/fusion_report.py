"""The kernels of a model's own, of which the result has some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from relational_tensat.rules.targets.fused_kernel import FusedKernel
from relational_tensat.tensor.inference import inference_nodes
from relational_tensat.tensor.operators import get_operator

if TYPE_CHECKING:
    from relational_tensat.cost import CostModel
    from relational_tensat.tensor import Graph


@dataclass(frozen=True, slots=True)
class UsedKernel:
    """A kernel in the result.

    Attributes:
        mugraph: its key: of its file, its local function, and its rows in the database.
        operators: that it does at once.
        cost_us: modelled.
    """

    mugraph: str
    operators: tuple[str, ...]
    cost_us: float


@dataclass(frozen=True, slots=True)
class FusionReport:
    """What came of the option ``fuse``.

    Attributes:
        parts: of the model, for which a kernel was made or sought; 0 where another process did so.
        kernels: how many different ones passed verification.
        used: those in the result, one for each e-node.
    """

    parts: int
    kernels: int
    used: tuple[UsedKernel, ...]


def fusion_report(parts: int, kernels: int, chosen: Graph, cost: CostModel) -> FusionReport:
    """Return the report of a run that has chosen a graph."""
    used = []
    for node, inputs, output in inference_nodes(chosen):
        if node.op == "fused":
            fused = get_operator(node.op)
            assert isinstance(fused, FusedKernel)
            parts_of = fused.parts(inputs, node.attrs)
            operators = tuple(part.op for part in parts_of if part.op != "fill")
            cost_us = cost.cost_us(node.op, inputs, output, node.attrs)
            used.append(UsedKernel(str(node.attrs["mugraph"]), operators, cost_us))
    return FusionReport(parts, kernels, tuple(used))
