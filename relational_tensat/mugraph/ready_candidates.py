"""A candidate made ready for verification: its exponentials stable, its operators in thread graphs."""

from __future__ import annotations

import math

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.graph.concat_products import with_concat_products
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation, RunningMax
from relational_tensat.mugraph.graph.thread_graphs import flat_steps, with_thread_graphs
from relational_tensat.mugraph.sizing.choosing_sizes import Sized
from relational_tensat.mugraph.sizing.modelled import graph_us
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors
from relational_tensat.mugraph.sizing.shared_memory import emitted_bytes
from relational_tensat.mugraph.verify.stability import stabilized


def ready(candidate: MuGraph, device: Multiprocessors, *, raw_exp: bool) -> Sized:
    """Return a candidate made ready, with its time then: maxima take some, too.

    Args:
        candidate: as a search found it, with sizes.
        device: what it shall run on.
        raw_exp: leave exponentials as they are.

    Raises:
        VerificationError: it cannot be made stable, or does not fit any more.
    """
    graph = made_ready(candidate, raw_exp=raw_exp)
    cost_us = graph_us(graph, device)
    if not math.isfinite(cost_us) or emitted_bytes(graph, device.dtype) > device.shared_bytes:
        raise VerificationError(f"{graph.name}: its tensors, with maxima, do not fit shared memory")
    return Sized(graph, cost_us)


def made_ready(graph: MuGraph, *, raw_exp: bool = False) -> MuGraph:
    """Return a μGraph with maxima, unless it has some already, and with thread graphs.

    Products of concatenations become products of their parts.

    Args:
        graph: the μGraph.
        raw_exp: without maxima.

    Raises:
        VerificationError: it cannot be made stable.
    """
    graph = with_concat_products(graph)
    steps = [step for kernel in graph.kernels for step in flat_steps(kernel.block.steps)]
    has_maxima = any(
        isinstance(step, RunningMax) or (isinstance(step, Operation) and step.op == "max")
        for step in steps
    )
    return with_thread_graphs(graph if raw_exp or has_maxima else stabilized(graph))
