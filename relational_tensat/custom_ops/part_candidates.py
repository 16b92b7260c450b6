"""Which parts of a graph may be kernels in onnxruntime: what C can say, and may be faster at."""

from __future__ import annotations

import math
from collections.abc import Iterator

from relational_tensat.mugraph.fusion.candidates import (
    KernelCandidate,
    chain_candidates,
    named_by_order,
    region_candidates,
)
from relational_tensat.mugraph.fusion.chains import Chain, dims_of_value, program_of
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.tensor import Graph, Node, TensorType
from relational_tensat.tensor.operators.attributes import ints_of

#: Programs of kernels that the processor runs are as large as this.
_MOST_STEPS = 40
#: Operators that have a kernel of their own in the runtime, or cannot be written in C: no part has them.
_RUNTIMES = frozenset({"matmul", "max_pool", "avg_pool", "opaque"})
#: Of a window that slides over a plain image, whose channels are a multiple of those in a block.
_MOST_TAPS, _BLOCK = 9, 16
#: These alone may be faster than onnxruntime's.
_FUNCTIONS = frozenset({"gelu", "erf", "exp", "sigmoid", "tanh"})


def candidates_of(graph: Graph) -> Iterator[KernelCandidate]:
    """Yield chains, functions alone, and regions without products, of float32: the kinds that C can say."""
    yield from chain_candidates(graph)
    for node in graph.nodes:
        kind = graph.types[node.outputs[0]]
        if node.op in _FUNCTIONS and isinstance(kind, TensorType) and kind.dtype == "float32":
            yield single_part(node, graph)
    for candidate in region_candidates(graph, _MOST_STEPS, without=_RUNTIMES):
        if candidate.dtype == "float32" and not candidate.is_cast:
            yield candidate


def is_slow(part: KernelCandidate) -> bool:
    """Return whether a part convolves each channel of a plain image in a way that onnxruntime is faster at.

    Those are strides, and windows of more than nine taps unless the channels fit into no blocks of
    onnxruntime's: 1.2 to 6 times as fast (docs/benchmarks/kernels.md).
    """
    for place, node in enumerate(part.nodes):
        is_turned = any(each.op == "transpose" for each in part.nodes[:place])
        if node.op == "conv" and not is_turned:
            kind = part.graph.types[node.inputs[1]]
            assert isinstance(kind, TensorType)
            filters, _, *taps = kind.shape
            if max(ints_of(node.attrs, "stride")) > 1:
                return True
            if math.prod(taps) > _MOST_TAPS and filters % _BLOCK == 0:
                return True
    return False


def single_operators(graph: Graph) -> Iterator[KernelCandidate]:
    """Yield regions of one operator, with what moves elements around it, but functions alone."""
    for candidate in region_candidates(graph, 1, without=_RUNTIMES, fewest_steps=1):
        if candidate.dtype == "float32" and not candidate.is_cast:
            yield candidate


def single_part(node: Node, graph: Graph) -> KernelCandidate:
    """Return the part that is one node, element by element."""
    chain = Chain((node,), node.inputs, node.outputs)
    order = variables(dims_of_value(graph, node.outputs[0]))
    program = named_by_order(program_of(chain, graph))
    return KernelCandidate(
        chain.nodes, chain.outputs, chain.inputs, program, (order,), "float32", graph
    )
