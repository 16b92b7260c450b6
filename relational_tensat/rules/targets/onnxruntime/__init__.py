"""onnxruntime on a processor, with all its optimizations (as is its default)."""

from __future__ import annotations

from relational_tensat.cost import Configuration
from relational_tensat.rules.targets.onnxruntime.kernels import KERNELS
from relational_tensat.rules.targets.target import Target
from relational_tensat.tensor.operators.activations import NO_ACTIVATION
from relational_tensat.tensor.operators.base import tensor


def describe() -> Target:
    """Return the target."""
    return Target("onnxruntime", KERNELS, runs_as_one)


def runs_as_one(configuration: Configuration) -> bool:
    """Whether an operator that may have a bias or an activation is one kernel with these.

    So is a convolution, and a product of matrices; a batch of matrices takes a vector as its bias, for
    it is reshaped to one matrix. Pools have no activation.
    """
    has_activation = dict(configuration.attrs).get("act", NO_ACTIVATION) != NO_ACTIVATION
    if configuration.op != "matmul":
        return not has_activation or configuration.op not in ("max_pool", "avg_pool")
    ranks = [tensor(kind, "matmul").rank for kind in configuration.inputs]
    if has_activation:
        return ranks[:2] == [2, 2] and len(ranks) == 3
    return len(ranks) == 2 or ranks[:2] == [2, 2] or ranks[1:] == [2, 1]
