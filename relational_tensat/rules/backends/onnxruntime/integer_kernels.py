"""Kernels on integers: onnxruntime makes one of what is between DequantizeLinear and QuantizeLinear.

Integers are followed by a tuple of their scale and zero point; weights are a tuple of all three; the last
tuple is the scale and zero point of the result. On processors of the x86 family only values of uint8 are
computed so (``quantized_graphs`` brings others there), weights may be of int8.

Convolutions run with the channels as the last axis. As with blocks (``blocks``), that is no property of the
values: rules say which image lies so, and what brings it there and back computes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from relational_tensat.base.errors import ShapeError
from relational_tensat.cost import Configuration
from relational_tensat.cost.key import configuration_of
from relational_tensat.rules.backends.fused_kernel import FusedKernel, FusedPart
from relational_tensat.rules.backends.onnxruntime.kernels import (
    CHANNELS_FIRST,
    CHANNELS_LAST,
    CONTRIB,
    InPlaceOf,
)
from relational_tensat.tensor import Attrs, AttrValue, TensorType, ValueType, tensors_of
from relational_tensat.tensor.operators import Attr, Family, get_operator
from relational_tensat.tensor.operators.attributes import bool_of
from relational_tensat.tensor.operators.base import Types, tensor
from relational_tensat.tensor.operators.onnx_form import Names, OnnxEmitter
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.traits import NO_ACTIVATION
from relational_tensat.tensor.operators.work_steps import REQUANTIZED, ROW, STRETCH, SUMS

#: Integers, scale, zero point.
_TRIPLE = 3
#: So many products of 8-bit integers are added at once.
_DOT = 4
_STORED = {"axis": 0, "stored": True}
_COMPUTED = {"axis": 0, "stored": False}
#: Whether channels are the last axis of images: so they run. Rules leave it False.
_IS_LAST = Attr("channels_last", "bool", False)


class _OnIntegers(FusedKernel):
    """The quantized result of an operator on dequantized operands; the tuples are for e-nodes only."""

    takes_tuples = True
    arity = (1, None)

    def unpacks(self, attrs: Attrs) -> bool:
        """As what dequantizes its operands."""
        return True

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Sums of products are brought back to 8 bits; nothing is dequantized."""
        return [(SUMS, 1), (REQUANTIZED, tensor(output, self.name).size)]

    def _around(
        self, inputs: Types, middle: list[FusedPart], operands: list[Mapping[str, AttrValue]]
    ) -> list[FusedPart]:
        """Return the dequantizations, the parts in between, and the quantization.

        Args:
            middle: their operands count from the first dequantized one on.
            operands: the attributes of each dequantization.

        Raises:
            ShapeError: there are more or fewer operands.
        """
        kinds = [part for kind in inputs for part in tensors_of(kind)]
        count = len(kinds)
        if count != _TRIPLE * len(operands) + 2:
            raise ShapeError(f"{self.name}: {count} tensors do not fit {len(operands)} operands")
        parts = [
            FusedPart("dequantize", tuple(range(_TRIPLE * n, _TRIPLE * (n + 1))), attrs)
            for n, attrs in enumerate(operands)
        ]
        parts += [FusedPart(p.op, tuple(count + n for n in p.operands), p.attrs) for p in middle]
        last = (count + len(parts) - 1, count - 2, count - 1)
        return [*parts, FusedPart("quantize", last, {"axis": 0, "dtype": kinds[-1].dtype})]


def _operands(inputs: Types) -> int:
    """Return how many operands are dequantized."""
    return sum(len(tensors_of(kind)) for kind in inputs) // _TRIPLE


class QuantizedConv(_OnIntegers):
    """Q(DQ(x) * DQ(w) + DQ(bias)). Operands x, (scale, zero), (w, …), perhaps (bias, …), (scale, zero).

    onnxruntime's QLinearConv, which is measured with ``channels_last``: they are the last axis of x and of
    the result.
    """

    name = "ort_quantized_conv"
    computes = Family.CONVOLUTION
    attrs = (
        Attr("stride", "ints"),
        Attr("pad", "padding"),
        Attr("dilation", "ints", ()),
        _IS_LAST,
    )

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Dequantizations, convolution, quantization."""
        count = _operands(inputs)
        window = {name: attrs[name] for name in ("stride", "pad", "dilation")}
        middle = _around_last("conv", tuple(range(count)), count, window, attrs)
        return self._around(inputs, middle, [_COMPUTED, *[_STORED] * (count - 1)])

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Also the rows of all windows, where they are copied: channels do not come by four.

        A convolution of each channel takes three times as long to bring a sum back (8x8 places, 192
        channels: 3x3 took 3.3 us, 5x5 6.1; AMD EPYC, 2026-11-28).
        """
        kinds = [part for kind in inputs for part in tensors_of(kind)]
        filters, size = kinds[_TRIPLE].shape, tensor(output, self.name).size
        if filters[1] == 1:
            return [(SUMS, 1), (REQUANTIZED, 3 * size)]
        own = super().works(inputs, output, attrs)
        if filters[1] % _DOT == 0:
            return own
        return [*own, (STRETCH, size // filters[0] * filters[2] * 3 // 2)]

    def summed_dtype(self, inputs: Types, output: ValueType) -> str:
        """Sums over one channel are no dot products of 8-bit integers: int16 stands for these."""
        filters = [part for kind in inputs for part in tensors_of(kind)][_TRIPLE]
        return "int16" if filters.shape[1] == 1 else super().summed_dtype(inputs, output)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        kinds = [part for kind in types for part in tensors_of(kind)]
        image = _moved(kinds[0], CHANNELS_FIRST)
        x, filters, bias, result = inputs[:3], inputs[3:6], inputs[6:-2][:1], inputs[-2:]
        operands = [*x, *filters, *result, *bias]
        own = InPlaceOf(emitter, "QLinearConv", operands, channels_last=1)
        plain = {**attrs, "act": NO_ACTIVATION}
        return get_operator("conv").to_onnx(inputs, (image, kinds[3]), output, plain, own)

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """All but the image."""
        return tuple(range(1, len(inputs)))


class QuantizedProduct(_OnIntegers):
    """Q(DQ(a) · DQ(b) + DQ(bias)), b a stored matrix, transposed on demand. Operands as a convolution's.

    onnxruntime's QGemm, and its QLinearMatMul. The scales of b are along ``axis``.
    """

    name = "ort_quantized_product"
    computes = Family.MATRIX_PRODUCT
    attrs = (Attr("trans_b", "bool", False), Attr("axis", "int", 0))

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Dequantizations, perhaps a transposition, product, quantization."""
        count = _operands(inputs)
        bias = tuple(range(2, count))
        middle = [FusedPart("matmul", (0, 1, *bias))]
        if bool_of(attrs, "trans_b"):
            transposed = FusedPart("transpose", (1,), {"perm": (1, 0)})
            middle = [transposed, FusedPart("matmul", (0, count, *bias))]
        matrix_attrs = {"axis": attrs["axis"], "stored": True}
        return self._around(inputs, middle, [_COMPUTED, matrix_attrs, *[_STORED] * (count - 2)])

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write onnxruntime's own operator for matrices; for a batch of them, its parts."""
        if tensor(output, self.name).rank != 2:
            return super().to_onnx(inputs, types, output, attrs, emitter)
        bias = [*inputs[6:-2][:1], ""][:1]
        operands = [*inputs[:6], *bias, *inputs[-2:]]
        return emitter.emit_of(CONTRIB, "QGemm", operands, transB=int(bool_of(attrs, "trans_b")))

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """All but the left matrix."""
        return tuple(range(1, len(inputs)))


def _of_elements(op: str, kernel: str) -> type[FusedKernel]:
    """Return the kernel of two operands' integers that computes what an operator does with their values."""
    operator = get_operator(op)

    class OfElements(_OnIntegers):
        """An operator of two operands, on integers. Operands x, (scale, zero), y, (…), (…)."""

        name = kernel
        computes = operator.computes

        def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
            """Dequantizations, the operator, quantization."""
            return self._around(inputs, [FusedPart(op, (0, 1))], [_COMPUTED, _COMPUTED])

        def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
            """It quantizes its result: 65,536 sums took 6.4 us, half as long again as of floats."""
            return [("quantize", tensor(output, self.name).size * 3 // 2)]

        def to_onnx(
            self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
        ) -> list[str]:
            return emitter.emit_of(CONTRIB, f"QLinear{operator.onnx[0]}", inputs)

        def weight_operands(self, inputs: Types) -> tuple[int, ...]:
            """Scales and zero points."""
            return (1, 3, 4) if len(inputs) == 5 else (1, 2, 4, 5, 6, 7)

    return OfElements


class QuantizedMean(_OnIntegers):
    """The quantized mean of each channel of an image: onnxruntime's QLinearGlobalAveragePool."""

    name = "ort_quantized_mean"
    computes = Family.REDUCTION

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Dequantization, mean, quantization."""
        mean = FusedPart("reduce_mean", (0,), {"axes": (2, 3), "keepdims": True})
        return self._around(inputs, [mean], [_COMPUTED])

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Each channel is a row."""
        return [(ROW, tensor(output, self.name).size)]

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """Scales and zero points."""
        return tuple(range(1, len(inputs)))

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit_of(CONTRIB, "QLinearGlobalAveragePool", inputs, channels_last=0)


class LargestOfIntegers(FusedKernel):
    """The largest integers of windows: NhwcMaxPool, which is measured with ``channels_last``."""

    name = "ort_nhwc_max_pool"
    computes = Family.POOLING
    attrs = (*get_operator("max_pool").attrs, _IS_LAST)

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        window = {name: value for name, value in attrs.items() if name != _IS_LAST.name}
        return _around_last("max_pool", (0,), 1, window, attrs)

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        if attr is _IS_LAST:
            return super().suggest_attribute(attr, partial, hints)
        return get_operator("max_pool").suggest_attribute(attr, partial, hints)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        image = _moved(tensor(types[0], self.name), CHANNELS_FIRST)
        own = InPlaceOf(emitter, "NhwcMaxPool", inputs)
        return get_operator("max_pool").to_onnx(inputs, (image,), output, attrs, own)


class ToChannelsLast(FusedKernel):
    """An image brought to where channels are the last axis."""

    name = "ort_to_channels_last"
    may_be_view = True

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """None: it computes nothing."""
        return []

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """None: it copies."""
        return 0


class FromChannelsLast(ToChannelsLast):
    """An image brought back from there."""

    name = "ort_from_channels_last"


def with_channels_last(kernel: Configuration) -> Configuration:
    """Return a kernel on integers as it runs: its images with channels last, or what brings one there.

    One that is given as it runs stays so.
    """
    if kernel.op not in _LAST or dict(kernel.attrs).get(_IS_LAST.name):
        return kernel
    image, others = tensor(kernel.inputs[0], kernel.op), kernel.inputs[1:]
    if kernel.op in _BROUGHT:
        perm = _BROUGHT[kernel.op]
        here = image if perm == CHANNELS_LAST else _moved(image, CHANNELS_LAST)
        return configuration_of("transpose", (here,), _moved(here, perm), {"perm": perm})
    attrs = {**dict(kernel.attrs), _IS_LAST.name: True}
    operands = (_moved(image, CHANNELS_LAST), *others)
    result = _moved(tensor(kernel.output, kernel.op), CHANNELS_LAST)
    return configuration_of(kernel.op, operands, result, attrs)


def _around_last(
    op: str, operands: tuple[int, ...], count: int, window: Attrs, attrs: Attrs
) -> list[FusedPart]:
    """Return an operator of an image; where channels are last, transposed there and back.

    Args:
        operands: its own, the image first; ``count`` is that of all values before.
    """
    if not bool_of(attrs, _IS_LAST.name):
        return [FusedPart(op, operands, window)]
    return [
        FusedPart("transpose", operands[:1], {"perm": CHANNELS_FIRST}),
        FusedPart(op, (count, *operands[1:]), window),
        FusedPart("transpose", (count + 1,), {"perm": CHANNELS_LAST}),
    ]


def _moved(kind: TensorType, perm: tuple[int, ...]) -> TensorType:
    return kind.with_shape(tuple(kind.shape[axis] for axis in perm))


QUANTIZED_KERNELS: tuple[type[FusedKernel], ...] = (
    QuantizedConv,
    QuantizedProduct,
    QuantizedMean,
    LargestOfIntegers,
    ToChannelsLast,
    FromChannelsLast,
    *(_of_elements(op, f"ort_quantized_{op}") for op in ("add", "mul")),
)

#: Operators that bring an image there, and back.
_BROUGHT = {ToChannelsLast.name: CHANNELS_LAST, FromChannelsLast.name: CHANNELS_FIRST}
_LAST = (*_BROUGHT, QuantizedConv.name, LargestOfIntegers.name)
