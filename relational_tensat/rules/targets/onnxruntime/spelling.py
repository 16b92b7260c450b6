"""What a file spells so that onnxruntime makes no kernel of it: a Sum, or a ReduceMean of images.

It computes what Add and GlobalAveragePool do, as which it is read; but only of these it makes the layer
norm of a sum, the mean of images in blocks, and the mean of integers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from relational_tensat.rules.targets.fused_kernel import FusedKernel, Part
from relational_tensat.rules.targets.onnxruntime.norms import Sum
from relational_tensat.tensor import Attrs, Graph, Node, TensorType, ValueType, build_graph
from relational_tensat.tensor.operators import Attr, Family
from relational_tensat.tensor.operators.attributes import bool_of, ints_of
from relational_tensat.tensor.operators.base import Types
from relational_tensat.tensor.operators.onnx_form import Names, OnnxEmitter, emit_reduce

_SPATIAL: Attrs = {"axes": (2, 3), "keepdims": True}
_IMAGE_RANK = 4


class MeanOfImage(FusedKernel):
    """The mean of each channel of an image, written as ReduceMean."""

    name = "ort_reduce_mean"
    is_written = True
    computes = Family.REDUCTION
    attrs = (Attr("axes", "ints"), Attr("keepdims", "bool"))

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """The mean."""
        return [Part("reduce_mean", (0,), attrs)]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write ReduceMean."""
        axes, keepdims = ints_of(attrs, "axes"), bool_of(attrs, "keepdims")
        return emit_reduce(emitter, "ReduceMean", inputs[0], axes, keepdims)


#: By what it is read as and how it is spelled.
_OWN = {("add", "Sum"): Sum.name, ("reduce_mean", "ReduceMean"): MeanOfImage.name}
SPELLED_KERNELS: tuple[type[FusedKernel], ...] = (MeanOfImage,)


def as_spelled(graph: Graph) -> Graph:
    """Return a graph with operators of its own for what its file spells so that no kernel takes it."""
    if graph.origin is None:
        return graph
    from relational_tensat.formats.onnx_keep import find_kept
    from relational_tensat.formats.onnx_origin import origin_of

    origin = origin_of(graph)
    spelled = {spelling for _, spelling in _OWN}
    if origin is None or not any(u.node.op_type in spelled for u in origin.units.values()):
        return graph
    kept = find_kept(graph, origin)
    nodes = [
        replace(node, op=_own_operator(graph, node, kept[node.outputs[0]].unit.node))
        if node.outputs[0] in kept
        else node
        for node in graph.nodes
    ]
    return build_graph(graph.name, graph.inputs, graph.weights, nodes, graph.outputs)


def _own_operator(graph: Graph, node: Node, spelled: Any) -> str:
    """Return the operator of a node that is spelled so in its file."""
    if spelled.op_type == "Sum" and len(spelled.input) != 2:
        return node.op
    if spelled.op_type == "ReduceMean" and not _is_of_image(graph, node):
        return node.op
    return _OWN.get((node.op, spelled.op_type), node.op)


def _is_of_image(graph: Graph, node: Node) -> bool:
    kind = graph.types[node.inputs[0]]
    return isinstance(kind, TensorType) and kind.rank == _IMAGE_RANK and node.attrs == _SPATIAL
