"""Layer norms of sums: the kernel that onnxruntime makes of Add and LayerNormalization, and a way round.

SkipLayerNormalization took three times as long as the two (32x256: 40 µs beside 12; onnxruntime 1.32, AMD
EPYC, 2026-11-23). It is made of Add; a Sum of two operands, which computes the same, stays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from relational_tensat.rules.targets.fused_kernel import FusedKernel, Part
from relational_tensat.rules.targets.onnxruntime.contrib import CONTRIB
from relational_tensat.tensor import Attrs, Graph, Node, TensorType, ValueType, build_graph
from relational_tensat.tensor.operators import Attr, Family, Use
from relational_tensat.tensor.operators.attributes import float_of, int_of
from relational_tensat.tensor.operators.base import Types
from relational_tensat.tensor.operators.onnx_form import Names, OnnxEmitter

#: onnxruntime makes the kernel of sums of this rank only.
_RANK = 3


class SkipLayerNorm(FusedKernel):
    """The layer norm, over the last axis, of x + skip. Operands x, skip, scale, bias."""

    name = "ort_skip_layer_norm"
    computes = Family.NORMALIZATION
    uses = (Use.VALUE, Use.ADDED, Use.MULTIPLIED, Use.ADDED)
    arity = (4, 4)
    attrs = (Attr("axis", "int"), Attr("epsilon", "float", samples=(1e-5,), timed_as=1e-5))

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Sum, layer norm."""
        return _parts("add", attrs)

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """Scale and bias."""
        return (2, 3)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write onnxruntime's own operator, which is what is measured alone."""
        epsilon = float_of(attrs, "epsilon")
        return emitter.emit_of(CONTRIB, "SkipLayerNormalization", inputs, epsilon=epsilon)


class Sum(FusedKernel):
    """x + y, written as Sum."""

    name = "ort_sum"
    is_written = True
    arity = (2, 2)
    uses = (Use.VALUE, Use.ADDED)

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """The sum."""
        return [Part("add", (0, 1))]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write the sum of any number of operands."""
        return emitter.emit("Sum", list(inputs))


class SumLayerNorm(SkipLayerNorm):
    """What ``SkipLayerNorm`` computes, as two kernels that onnxruntime leaves apart."""

    name = "ort_sum_layer_norm"

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """Sum, layer norm."""
        return _parts(Sum.name, attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write the two."""
        return FusedKernel.to_onnx(self, inputs, types, output, attrs, emitter)


NORM_KERNELS: tuple[type[FusedKernel], ...] = (SkipLayerNorm, Sum, SumLayerNorm)


def with_skip_norms(graph: Graph) -> Graph:
    """Return a graph with the kernel wherever onnxruntime makes it, though its parts are faster.

    It does where shapes are known and the norm alone reads the sum.
    """
    readers = Counter([*graph.outputs, *(name for node in graph.nodes for name in node.inputs)])
    sums = {node.outputs[0]: node for node in graph.nodes if node.op == "add"}
    fused = {
        node.outputs[0]: sums[node.inputs[0]]
        for node in graph.nodes
        if node.op == "layer_norm"
        and node.inputs[0] in sums
        and readers[node.inputs[0]] == 1
        and _is_fused(graph, node, sums[node.inputs[0]])
    }
    if not fused:
        return graph
    dropped = {node.outputs for node in fused.values()}
    nodes = [
        replace(node, op=SkipLayerNorm.name, inputs=(*fused[own].inputs, *node.inputs[1:]))
        if (own := node.outputs[0]) in fused
        else node
        for node in graph.nodes
        if node.outputs not in dropped
    ]
    return build_graph(graph.name, graph.inputs, graph.weights, nodes, graph.outputs)


def _is_fused(graph: Graph, norm: Node, addition: Node) -> bool:
    first, second = (graph.types[name] for name in addition.inputs)
    return (
        isinstance(first, TensorType)
        and first == second
        and first.rank == _RANK
        and norm.attrs["axis"] == _RANK - 1
        and len(norm.inputs) == 3
    )


def _parts(addition: str, attrs: Attrs) -> list[Part]:
    norm = {"axis": int_of(attrs, "axis"), "epsilon": float_of(attrs, "epsilon")}
    return [Part(addition, (0, 1)), Part("layer_norm", (4, 2, 3), norm)]
