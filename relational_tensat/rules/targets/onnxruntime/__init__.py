"""onnxruntime on a processor, with all its optimizations (as is its default)."""

from __future__ import annotations

from relational_tensat.cost import Configuration
from relational_tensat.cost.key import configuration_of
from relational_tensat.rules.targets.fused_kernel import last_swapped
from relational_tensat.rules.targets.onnxruntime.kernels import KERNELS
from relational_tensat.rules.targets.target import Target
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators import Family, get_operator
from relational_tensat.tensor.operators.activations import NO_ACTIVATION
from relational_tensat.tensor.operators.base import tensor


def describe() -> Target:
    """Return the target."""
    return Target("onnxruntime", KERNELS, runs_as_one, unprepared)


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


def unprepared(configuration: Configuration) -> list[Configuration]:
    """Return copies, as what runs where operands are computed that are usually constants.

    A matrix is packed. A convolution leaves the blocked layout of its neighbours: image and result are
    brought from one into the other.
    """
    if not configuration.computed:
        return []
    is_convolution = get_operator(configuration.op).computes is Family.CONVOLUTION
    copied = [configuration.inputs[0], configuration.output] if is_convolution else []
    return [_copy(tensor(kind, configuration.op)) for kind in copied or [configuration.inputs[1]]]


def _copy(kind: TensorType) -> Configuration:
    """Return what a copy into another order costs: that of a transposition."""
    perm = last_swapped(kind)
    moved = TensorType(kind.dtype, tuple(kind.shape[axis] for axis in perm))
    return configuration_of("transpose", (kind,), moved, {"perm": perm})
