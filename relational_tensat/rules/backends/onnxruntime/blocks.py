"""Kernels that take images in blocks of channels (NCHWc), and what brings images into blocks and back.

How elements lie in memory is no property of their values: an image in blocks is the same tensor, and what
brings it there computes nothing. Rules alone say what is in blocks: only results of these kernels are.
"""

from __future__ import annotations

from math import prod
from typing import Any

from relational_tensat.base.errors import ShapeError
from relational_tensat.base.process import instruction_sets, is_avx2_at_most
from relational_tensat.rules.backends.fused_kernel import FusedKernel, FusedPart, in_turn
from relational_tensat.rules.backends.onnxruntime.kernels import (
    CHANNELS_FIRST,
    CHANNELS_LAST,
    CONTRIB,
    InBlocks,
)
from relational_tensat.rules.backends.scaled_product import WINDOW, ConvAdd, window_of
from relational_tensat.tensor import Attrs, AttrValue, TensorType, ValueType, tensors_of
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators import Attr, Family, Use, get_operator
from relational_tensat.tensor.operators.attributes import bool_of, float_of, str_of
from relational_tensat.tensor.operators.base import Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import Names, OnnxEmitter
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.traits import NO_ACTIVATION
from relational_tensat.tensor.operators.windows import suggest_window

#: So many channels are a block: as many floats as a register of this processor has.
BLOCK = 8 if is_avx2_at_most(instruction_sets()) else 16
#: Of a float; of what the cache has one line at once of, for each of a block's channels.
_FLOAT_BYTES, _PAGE_BYTES = 4, 4096
#: Channels come by as many as a register of SSE has.
_ALIGNED = 4
#: Half precision is computed as float32.
_DTYPES = ("float32", "float16")
#: Activations with numbers of their own, in the order that onnxruntime takes them.
_NUMBERS = {"hard_sigmoid": ("alpha", "beta"), "leaky_relu": ("alpha",)}
#: x sigmoid(x): onnxruntime's QuickGelu.
SILU = "silu"
ACTIVATIONS = (NO_ACTIVATION, "relu", "sigmoid", "tanh", "hard_swish", *_NUMBERS)
_ACTIVATION = (
    Attr("act", "str", NO_ACTIVATION, ACTIVATIONS),
    Attr("alpha", "float", 0.0, timed_as=0.0),
    Attr("beta", "float", 0.0, timed_as=0.0),
)


class ToBlocks(FusedKernel):
    """An image brought into blocks of channels; with ``channels_last``, from where these are the last axis.

    onnxruntime's ReorderInput.
    """

    name = "ort_to_blocks"
    may_be_view = True
    attrs = (Attr("channels_last", "bool", False),)

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """A transposition, or nothing."""
        return _moved(attrs, CHANNELS_FIRST)

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """None: it copies."""
        return 0

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """None: it moves whole blocks, as a copy does."""
        return []

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        last = int(bool_of(attrs, "channels_last"))
        return InBlocks(emitter).emit("ReorderInput", inputs, channels_last=last)


class FromBlocks(FusedKernel):
    """An image brought back from blocks; with ``channels_last``, to where channels are the last axis.

    onnxruntime's ReorderOutput. Of a tuple, each of its images.
    """

    name = "ort_from_blocks"
    takes_tuples = True
    may_be_view = True
    attrs = (Attr("channels_last", "bool", False),)

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """A transposition, or nothing."""
        return _moved(attrs, CHANNELS_LAST)

    def infer(self, inputs: Types, attrs: Attrs) -> ValueType:  # type: ignore[override]  # or a tuple
        """Return the operand's type, or that with another order of axes.

        Raises:
            ShapeError: it is no image, or several in another order.
        """
        if isinstance(inputs[0], tuple):
            if bool_of(attrs, "channels_last"):
                raise ShapeError(f"{self.name}: channels_last of a tuple, expected one image")
            return inputs[0]
        return super().infer(inputs, attrs)

    def evaluate_typed(self, inputs: Values, types: Types, attrs: Attrs) -> Any:
        """Return the operand, transposed on demand."""
        (value,) = inputs
        return value.transpose(CHANNELS_LAST) if bool_of(attrs, "channels_last") else value

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        """Return the operand, transposed on demand."""
        return self.evaluate_typed(inputs, types, attrs)

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """None: it copies."""
        return 0

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """A transposition's where each channel of a block is written to another page, else as a copy."""
        return [
            ("transpose", part.size)
            for part in tensors_of(inputs[0])
            if prod(part.shape[2:]) * _FLOAT_BYTES >= _PAGE_BYTES
        ]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        last, channels = int(bool_of(attrs, "channels_last")), tensor(types[0], self.name).shape[1]
        blocked = InBlocks(emitter)
        return blocked.emit("ReorderOutput", inputs, channels=channels, channels_last=last)


class BlockedConv(FusedKernel):
    """act(x * w + bias) of an image in blocks; with few channels, of one that is not."""

    name = "ort_blocked_conv"
    computes = Family.CONVOLUTION
    uses = (Use.VALUE, Use.VALUE, Use.ADDED)
    arity = (2, 3)
    attrs = (*WINDOW, *_ACTIVATION)

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """Convolution, activation."""
        n = len(inputs)
        return in_turn(FusedPart("conv", tuple(range(n)), window_of(attrs)), _activation(attrs, n))

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return _write_conv(inputs, types, output, attrs, emitter)

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """The filters and the bias."""
        return tuple(range(1, len(inputs)))

    def prepared_operands(self, inputs: Types) -> tuple[int, ...]:
        return self.weight_operands(inputs)

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        return get_operator("conv").suggest_operand(index, partial, hints)

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        if attr in WINDOW:
            return suggest_window(attr.name, partial, hints)
        return super().suggest_attribute(attr, partial, hints)


class BlockedConvAdd(ConvAdd):
    """act(x * w + bias + z) of images in blocks. Operands x, w, z and, if any, bias."""

    name = "ort_blocked_conv_add"
    attrs = BlockedConv.attrs

    def activation(self, attrs: Attrs, operand: int) -> FusedPart | None:
        """One of blocks."""
        return _activation(attrs, operand)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write onnxruntime's own operator: the addend comes last."""
        x, w, z, *bias = inputs
        return _write_conv([x, w, *(bias or [""]), z], types, output, attrs, emitter)

    def prepared_operands(self, inputs: Types) -> tuple[int, ...]:
        return self.weight_operands(inputs)


class BlockedActivation(FusedKernel):
    """A function of each element of an image in blocks."""

    name = "ort_blocked_activation"
    attrs = (Attr("act", "str", choices=("relu", "sigmoid", "tanh", "gelu", SILU)),)

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        if attrs["act"] == SILU:
            return [FusedPart("sigmoid", (0,)), FusedPart("mul", (0, 1))]
        return [FusedPart(str_of(attrs, "act"), (0,))]

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """As the kernel of the same function outside of blocks."""
        if attrs["act"] == SILU:
            return [("exp", tensor(output, self.name).size)]
        return super().works(inputs, output, attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write the function; onnxruntime has one of its own for SiLU."""
        if attrs["act"] == SILU:
            return emitter.emit_of(CONTRIB, "QuickGelu", inputs, alpha=1.0)
        return super().to_onnx(inputs, types, output, attrs, emitter)


def _blocked(op: str, kernel: str) -> type[FusedKernel]:
    """Return the kernel of images in blocks that computes what an operator does."""
    operator = get_operator(op)

    class Blocked(FusedKernel):
        """An operator of images in blocks."""

        name = kernel
        computes = operator.computes
        uses = operator.uses
        arity = operator.arity
        takes_tuples = operator.takes_tuples
        attrs = operator.attrs
        canonical = operator.canonical
        normalize = operator.normalize
        suggest_operand = operator.suggest_operand
        suggest_attribute = operator.suggest_attribute

        def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
            count = sum(len(tensors_of(kind)) for kind in inputs)
            return [FusedPart(op, tuple(range(count)), attrs)]

        def to_onnx(
            self,
            inputs: Names,
            types: Types,
            output: ValueType,
            attrs: Attrs,
            emitter: OnnxEmitter,
        ) -> list[str]:
            """Write onnxruntime's own operator where there is one."""
            if op == "reduce_mean":
                return InBlocks(emitter).emit("GlobalAveragePool", inputs)
            is_own = operator.computes is Family.POOLING
            own = InBlocks(emitter) if is_own else emitter
            return operator.to_onnx(inputs, types, output, attrs, own)

    return Blocked


#: Operators whose results are in blocks if their operands are.
OF_OPERATORS = {
    op: _blocked(op, f"ort_blocked_{op}")
    for op in ("add", "mul", "concat", "max_pool", "avg_pool", "reduce_mean")
}
BLOCKED_KERNELS: tuple[type[FusedKernel], ...] = (
    ToBlocks,
    FromBlocks,
    BlockedConv,
    BlockedConvAdd,
    BlockedActivation,
    *OF_OPERATORS.values(),
)


def takes_filters(x: TensorType, w: TensorType) -> bool:
    """Whether a convolution with these types, its filters being constants, is one of blocks."""
    if x.rank != 4 or x.dtype not in _DTYPES:
        return False
    channels, filters, group_channels = x.shape[1], w.shape[0], w.shape[1]
    if group_channels == channels:
        return channels < BLOCK or channels % _ALIGNED == 0
    if group_channels == 1 and filters == channels:
        return filters % _ALIGNED == 0
    groups = channels // group_channels
    return group_channels % BLOCK == 0 and (filters // groups) % BLOCK == 0


def takes_unblocked(x: TensorType, w: TensorType) -> bool:
    """Whether a convolution of blocks reads an image that is not in blocks: one with few channels."""
    return w.shape[1] == x.shape[1] < BLOCK


def pools_blocks(x: TensorType) -> bool:
    """Whether a pooling is one of blocks."""
    return x.rank == 4 and x.dtype in _DTYPES and x.shape[1] % BLOCK == 0


def _moved(attrs: Attrs, perm: tuple[int, ...]) -> list[FusedPart]:
    return [FusedPart("transpose", (0,), {"perm": perm})] if bool_of(attrs, "channels_last") else []


def _activation(attrs: Attrs, operand: int) -> FusedPart | None:
    act = str_of(attrs, "act")
    if act == NO_ACTIVATION:
        return None
    numbers = {name: float_of(attrs, name) for name in _NUMBERS.get(act, ())}
    return FusedPart(act, (operand,), numbers)


def _write_conv(
    inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
) -> list[str]:
    """Write a convolution of onnxruntime's for images in blocks, its activation in it."""
    act, extra = str_of(attrs, "act"), dict[str, AttrValue]()
    if act != NO_ACTIVATION:
        extra["activation"] = get_operator(act).onnx[0]
    if act in _NUMBERS:
        extra["activation_params"] = tuple(float_of(attrs, name) for name in _NUMBERS[act])
    plain = {**window_of(attrs), "act": NO_ACTIVATION}
    return get_operator("conv").to_onnx(inputs, types, output, plain, InBlocks(emitter, **extra))
