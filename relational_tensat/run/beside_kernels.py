"""What an inference takes beside its kernels: a run's own time, and what computes sizes.

A file with dynamic dimensions computes shapes at inference that its graph has as constants. How many nodes
are left of that, onnxruntime knows: it folds, merges and removes some of them before it runs any.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from relational_tensat.run.state import RunState
from relational_tensat.verify.runtime import optimized_graph, runtime_errors

if TYPE_CHECKING:
    import onnx


class BesideKernels(NamedTuple):
    """What the original and the result take beside kernels, in microseconds, and what is not in it."""

    before_us: float
    after_us: float
    note: str = ""


def beside_kernels(state: RunState, values: int) -> BesideKernels:
    """Return what an inference takes beside kernels, before and after; 0 where costs do not tell.

    Args:
        values: how many inputs and outputs the model has.
    """
    run_us = state.cost.run_us(values)
    if not run_us or state.dynamic is None:
        return BesideKernels(run_us, run_us)
    model = state.dynamic
    try:
        with state.phases.phase("price"):
            before = after = count_size_nodes(model.frame, model.data)
            if state.sized is not None and not state.copies_file:
                after = count_size_nodes(*state.sized.file)
    except runtime_errors() as error:
        reason = " ".join(str(error).split())
        note = f"what computes sizes is in no time: onnxruntime does not take the graph: {reason}"
        return BesideKernels(run_us, run_us, note)
    return BesideKernels(state.cost.run_us(values, before), state.cost.run_us(values, after))


def count_size_nodes(model: onnx.ModelProto, large: Iterable[str]) -> int:
    """Count the nodes that compute sizes in what onnxruntime makes of a model.

    Args:
        model: a skeleton.
        large: the weights that have a placeholder in it.

    Raises:
        Exception: one of ``runtime_errors``.
    """
    from relational_tensat.formats.onnx_external import with_weights_as_inputs
    from relational_tensat.formats.onnx_sizes import size_nodes

    skeleton = with_weights_as_inputs(model, large).SerializeToString()
    return len(size_nodes(optimized_graph(skeleton)))
