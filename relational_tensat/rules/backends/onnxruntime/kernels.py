"""The kernels that onnxruntime makes of several operators on a processor.

``SkipLayerNorm`` is the kernel that it makes of Add and LayerNormalization. It took three times as long as
the two (32x256: 40 µs beside 12; onnxruntime 1.32, AMD EPYC, 2026-11-23). It is made of Add; a Sum of two
operands, which computes the same, stays.

Alone, kernels are measured as onnxruntime's own operators. ``IntegerProduct`` is that of dynamic
quantization: a product of integers, brought back to floats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.backends.fused_kernel import FusedKernel, FusedPart, in_turn
from relational_tensat.rules.backends.scaled_product import SCALED, scaled_product
from relational_tensat.tensor import (
    Array,
    Attrs,
    Graph,
    Node,
    TensorType,
    ValueType,
    build_graph,
    tensors_of,
)
from relational_tensat.tensor.operators import Attr, Family, Use, get_operator
from relational_tensat.tensor.operators.attributes import bool_of, float_of, int_of
from relational_tensat.tensor.operators.base import Types, tensor
from relational_tensat.tensor.operators.onnx_form import FunctionBody, Names, OnnxEmitter
from relational_tensat.tensor.operators.samples import NUMBERS
from relational_tensat.tensor.operators.work_steps import steps_of_product

#: onnxruntime's own operators, and those of images in blocks.
CONTRIB = "com.microsoft"
_DOMAIN = "com.microsoft.nchwc"
#: From images with channels last to those with channels first, and back.
CHANNELS_FIRST, CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


class InBlocks:
    """Writes the operators of the same name that take images in blocks.

    Args:
        attrs: further attributes of each.
    """

    def __init__(self, emitter: OnnxEmitter, **attrs: Any) -> None:
        self._emitter = emitter
        self._attrs = attrs

    @property
    def opset(self) -> int:
        return self._emitter.opset

    def emit(
        self, op_type: str, inputs: Sequence[str], outputs: int | Sequence[str] = 1, **attrs: Any
    ) -> list[str]:
        return self._emitter.emit_of(_DOMAIN, op_type, inputs, **attrs, **self._attrs)

    def emit_of(self, domain: str, op_type: str, inputs: Sequence[str], **attrs: Any) -> list[str]:
        return self._emitter.emit_of(domain, op_type, inputs, **attrs)

    def constant(self, value: Array) -> str:
        return self._emitter.constant(value)

    def call(
        self, domain: str, name: str, inputs: Names, body: FunctionBody, metadata: Mapping[str, str]
    ) -> list[str]:
        return self._emitter.call(domain, name, inputs, body, metadata)


class InPlaceOf(InBlocks):
    """Writes one of onnxruntime's own operators in place of an ONNX operator, with its attributes.

    Args:
        inputs: of what is written.
        attrs: further ones of it.
    """

    def __init__(self, emitter: OnnxEmitter, op_type: str, inputs: Names, **attrs: Any) -> None:
        super().__init__(emitter, **attrs)
        self._op_type = op_type
        self._inputs = inputs

    def emit(
        self, op_type: str, inputs: Sequence[str], outputs: int | Sequence[str] = 1, **attrs: Any
    ) -> list[str]:
        own = {**attrs, **self._attrs}
        return self._emitter.emit_of(CONTRIB, self._op_type, self._inputs, **own)


#: onnxruntime makes the kernel of sums of this rank only.
_RANK = 3


class SkipLayerNorm(FusedKernel):
    """The layer norm, over the last axis, of x + skip. Operands x, skip, scale, bias."""

    name = "ort_skip_layer_norm"
    computes = Family.NORMALIZATION
    uses = (Use.VALUE, Use.ADDED, Use.MULTIPLIED, Use.ADDED)
    arity = (4, 4)
    attrs = (Attr("axis", "int"), Attr("epsilon", "float", samples=(1e-5,), timed_as=1e-5))

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Sum, layer norm."""
        return _parts("add", attrs)

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """Scale and bias."""
        return (2, 3)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        epsilon = float_of(attrs, "epsilon")
        return emitter.emit_of(CONTRIB, "SkipLayerNormalization", inputs, epsilon=epsilon)


class Sum(FusedKernel):
    """x + y, written as Sum."""

    name = "ort_sum"
    is_written = True
    arity = (2, 2)
    uses = (Use.VALUE, Use.ADDED)

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        return [FusedPart("add", (0, 1))]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write the sum of any number of operands."""
        return emitter.emit("Sum", list(inputs))


class SumLayerNorm(SkipLayerNorm):
    """The same as ``SkipLayerNorm``, as two kernels that onnxruntime leaves apart."""

    name = "ort_sum_layer_norm"

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        return _parts(Sum.name, attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
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


def _parts(addition: str, attrs: Attrs) -> list[FusedPart]:
    norm = {"axis": int_of(attrs, "axis"), "epsilon": float_of(attrs, "epsilon")}
    return [FusedPart(addition, (0, 1)), FusedPart("layer_norm", (4, 2, 3), norm)]


#: Integers, scale and zero point of both factors.
_FACTORS = 6


class IntegerProduct(FusedKernel):
    """(a · b) · (s · t) + bias. Operands a, (s, zero point), (b, t, zero point), perhaps bias.

    onnxruntime's MatMulIntegerToFloat; its DynamicQuantizeMatMul is DynamicQuantizeLinear and this.
    """

    name = "ort_integer_product"
    computes = Family.MATRIX_PRODUCT
    takes_tuples = True
    arity = (3, None)

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Product, cast, product of the scales, product with it, bias.

        Raises:
            ShapeError: there are more or fewer operands.
        """
        count = sum(len(tensors_of(kind)) for kind in inputs)
        if count not in (_FACTORS, _FACTORS + 1):
            raise ShapeError(f"{self.name}: {count} tensors, expected two factors, perhaps a bias")
        return in_turn(
            FusedPart("matmul_integer", (0, 3, 2, 5)),
            FusedPart("cast", (count,), {"dtype": "float32"}),
            FusedPart("mul", (1, 4)),
            FusedPart("mul", (count + 1, count + 2)),
            FusedPart("add", (count + 3, _FACTORS)) if count > _FACTORS else None,
        )

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """None beside its sums of products."""
        return []

    def summed_dtype(self, inputs: Types, output: ValueType) -> str:
        return "int32"

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """The right matrix, with scale and zero point, and the bias."""
        first = 2 if isinstance(inputs[1], tuple) else 3  # with tuples, or in a graph
        return tuple(range(first, len(inputs)))

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        a, s, z, b, t, v, *bias = inputs
        return emitter.emit_of(CONTRIB, "MatMulIntegerToFloat", [a, b, s, t, z, v, *bias])


INTEGER_KERNELS: tuple[type[FusedKernel], ...] = (IntegerProduct,)


class ScaledProduct(FusedKernel):
    """alpha · A·B of matrices of floats or batches of them, each transposed first on demand.

    onnxruntime's FusedMatMul: it makes none of products of integers.
    """

    name = "ort_scaled_product"
    computes = Family.MATRIX_PRODUCT
    arity = (2, 2)
    attrs = SCALED

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Transposes, product, scale.

        Raises:
            ShapeError: the factors are of integers, or one that is transposed is no matrix.
        """
        return scaled_product(self.name, inputs, attrs)

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Those of a product: nothing is transposed for it."""
        return [steps_of_product(inputs[0], inputs[1], output)]

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """A right matrix that is not one of a batch."""
        return get_operator("matmul").weight_operands(inputs)

    def prepared_operands(self, inputs: Types) -> tuple[int, ...]:
        return get_operator("matmul").prepared_operands(inputs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        trans = {f"trans{name}": int(bool_of(attrs, f"trans_{name.lower()}")) for name in "AB"}
        alpha = float_of(attrs, "alpha")
        return emitter.emit_of(CONTRIB, "FusedMatMul", inputs, alpha=alpha, **trans)


class BiasGelu(FusedKernel):
    """gelu(x + v) with a vector v."""

    name = "ort_bias_gelu"
    arity = (2, 2)
    uses = (Use.VALUE, Use.ADDED)

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Sum, gelu."""
        return [FusedPart("add", (0, 1)), FusedPart("gelu", (2,))]

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """The vector."""
        return (1,)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit_of(CONTRIB, "BiasGelu", inputs)


class QuickGelu(FusedKernel):
    """x · sigmoid(alpha x): SiLU where alpha is 1."""

    name = "ort_quick_gelu"
    attrs = (Attr("alpha", "float", 1.0, samples=NUMBERS, timed_as=1.0),)

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Scale, sigmoid, product."""
        if attrs["alpha"] == 1.0:
            return [FusedPart("sigmoid", (0,)), FusedPart("mul", (0, 1))]
        scale = FusedPart("smul", (0,), {"value": float_of(attrs, "alpha")})
        return [scale, FusedPart("sigmoid", (1,)), FusedPart("mul", (0, 2))]

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """An exponential: it takes half as long as the sigmoid and the product apart."""
        return [("exp", tensor(output, self.name).size)]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        alpha = float_of(attrs, "alpha")
        return emitter.emit_of(CONTRIB, "QuickGelu", inputs, alpha=alpha)


KERNELS: tuple[type[FusedKernel], ...] = (ScaledProduct, BiasGelu, QuickGelu)
