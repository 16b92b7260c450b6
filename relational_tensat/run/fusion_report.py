"""The kernels of a model's own, of which the result has some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relational_tensat.rules.targets.fused_kernel import FusedKernel
from relational_tensat.tensor.inference import inference_nodes
from relational_tensat.tensor.operators import get_operator

if TYPE_CHECKING:
    from relational_tensat.cost import CostModel
    from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
    from relational_tensat.tensor import Graph


@dataclass(frozen=True, slots=True)
class UsedKernel:
    """A kernel in the result.

    Attributes:
        mugraph: its key: of its file, its local function, and its rows in the database.
        operators: that it does at once.
        cost_us: modelled.
        launches: kernels that its μGraph has, one after the other.
        results: values that it gives.
    """

    mugraph: str
    operators: tuple[str, ...]
    cost_us: float
    launches: int
    results: int


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


def fusion_report(
    parts: int, kernels: Sequence[OwnKernel], chosen: Graph, cost: CostModel
) -> FusionReport:
    """Return the report of a run that has chosen a graph.

    Args:
        parts: of the model.
        kernels: all that passed verification.
        chosen: the graph.
        cost: of its operators.
    """
    launches = {kernel.key: len(kernel.graph.kernels) for kernel in kernels}
    used = []
    for node, inputs, output in inference_nodes(chosen):
        if node.op == "fused":
            fused = get_operator(node.op)
            assert isinstance(fused, FusedKernel)
            parts_of = fused.parts(inputs, node.attrs)
            operators = tuple(part.op for part in parts_of if part.op != "fill")
            cost_us = cost.cost_us(node.op, inputs, output, node.attrs)
            key = str(node.attrs["mugraph"])
            results = len(node.outputs)
            used.append(UsedKernel(key, operators, cost_us, launches[key], results))
    return FusionReport(parts, len(kernels), tuple(used))
