"""How much memory evaluating a graph takes at the least: known before anything is allocated."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import Graph, Node, ValueType, tensors_of
from relational_tensat.tensor.operators import get_operator

#: Operators compute with floats in float64.
_FLOAT_BYTES = 8
_GIB = 2**30


def check_memory(graph: Graph) -> None:
    """Check that the machine has the memory to evaluate a graph.

    Raises:
        InputError: it has not; gives the least that is needed.
    """
    inputs = sum(map(_bytes, graph.inputs.values()))
    needed = inputs + peak_bytes(graph)
    machine = memory_bytes()
    if machine is not None and needed > machine:
        raise InputError(
            f"computing it takes {needed / _GIB:,.1f} GiB, the machine has {machine / _GIB:,.1f}"
        )


def peak_bytes(
    graph: Graph, nodes: Sequence[Node] | None = None, outputs: Sequence[str] | None = None
) -> int:
    """Return the most bytes that values take at a time, each from its first to its last use.

    Args:
        nodes, outputs: of the graph, instead of all of it.
    """
    nodes = graph.nodes if nodes is None else nodes
    outputs = graph.outputs if outputs is None else outputs
    uses = Counter(outputs)
    for node in nodes:
        uses.update(set(node.inputs))
    alive: dict[str, int] = {}
    current = peak = 0
    for node in nodes:
        for name in (*node.inputs, *node.outputs):
            if name not in alive:
                is_view = name in node.outputs and get_operator(node.op).may_be_view
                alive[name] = (
                    0 if is_view or _is_uniform(graph, name) else _bytes(graph.types[name])
                )
                current += alive[name]
        peak = max(peak, current)
        for name in set(node.inputs):
            uses[name] -= 1
        for name in {*node.inputs, *node.outputs}:
            if not uses[name]:
                current -= alive.pop(name, 0)
    return peak


def memory_bytes() -> int | None:
    """Return the memory of the machine; None where the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _is_uniform(graph: Graph, name: str) -> bool:
    """Whether a value is a weight that is held as one number."""
    weight = graph.weights.get(name)
    return weight is not None and weight.data is not None and not any(weight.data.strides)


def _bytes(kind: ValueType) -> int:
    parts = tensors_of(kind)
    return sum(part.size * _FLOAT_BYTES if part.is_float else part.nbytes for part in parts)
