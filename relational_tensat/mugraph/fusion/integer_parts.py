"""Parts of a quantized model: a kernel reads integers, and stores them, in place of operators around it.

The part between DequantizeLinear and QuantizeLinear is a part like any other, and its kernel computes in
float32. Its loads dequantize, its stores quantize, as the operators round. Scales and zero points are
operands: one kernel serves all layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from relational_tensat.mugraph.fusion.candidates import KernelCandidate
from relational_tensat.tensor import Graph, Node, TensorType

#: The element types that kernels store and load so.
INTEGERS = frozenset({"int8", "uint8"})


def with_integers(
    graph: Graph, parts: Iterable[KernelCandidate], alone: Iterable[KernelCandidate]
) -> Iterator[KernelCandidate]:
    """Yield parts with what dequantizes their operands and quantizes their results; others as they are.

    Args:
        graph: that they are parts of.
        parts: of float32.
        alone: further ones that are worth a kernel only so: single operators.
    """
    makers = {name: node for node in graph.nodes for name in node.outputs}
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in set(node.inputs):
            readers.setdefault(name, []).append(node)

    def quantized(name: str, part: KernelCandidate) -> Node | None:
        """Return what alone reads a value outside of a part, if it quantizes it."""
        own = [node for node in readers.get(name, []) if node not in part.nodes]
        is_alone = len(own) == 1 and name not in graph.outputs
        return own[0] if is_alone and _is_plain(own[0], "quantize", graph) else None

    def widened(part: KernelCandidate) -> KernelCandidate | None:
        before = {
            n: makers[n]
            for n in part.inputs
            if n in makers and _is_plain(makers[n], "dequantize", graph)
        }
        after = {n: node for n in part.outputs if (node := quantized(n, part)) is not None}
        if not before and not after:
            return None
        named = [*zip(part.program.inputs, part.inputs, strict=True)]
        named += zip(part.program.outputs, part.outputs, strict=True)
        scales: list[str] = []
        kinds: dict[str, str] = {}
        for tensor, name in named:
            if (node := before.get(name) or after.get(name)) is not None:
                scales += node.inputs[1:]
                kinds[tensor] = _dtype(graph, node.inputs[0] if name in before else node.outputs[0])
        read = [before[name].inputs[0] if name in before else name for name in part.inputs]
        if len({*read}) < len(read):
            return None
        return replace(
            part,
            nodes=(*before.values(), *part.nodes, *after.values()),
            outputs=tuple(after[n].outputs[0] if n in after else n for n in part.outputs),
            inputs=(*read, *scales),
            within=part,
            quantized=kinds,
        )

    for part in parts:
        yield widened(part) or part
    for part in alone:
        if (own := widened(part)) is not None:
            yield own


def _is_plain(node: Node, op: str, graph: Graph) -> bool:
    """Whether a node has one scale and one zero point, of types that kernels load and store."""
    if node.op != op or len(node.inputs) != 3:
        return False
    kind = graph.types[node.inputs[1]]
    is_whole = isinstance(kind, TensorType) and kind.size == 1 and kind.dtype == "float32"
    return is_whole and _dtype(graph, node.inputs[2]) in INTEGERS


def _dtype(graph: Graph, name: str) -> str:
    kind = graph.types[name]
    assert isinstance(kind, TensorType)
    return kind.dtype
