"""Transposed convolutions: each element of an image spreads the kernel over a larger one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.attributes import Attr, int_of, ints_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_int,
    attr_ints,
    attr_str,
    has_input,
    input_type,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.shapes import check_length, one_dtype, operands, spatial
from relational_tensat.tensor.operators.traits import Family, Use
from relational_tensat.tensor.operators.windows import taps
from relational_tensat.tensor.types import (
    FLOAT_DTYPES,
    Attrs,
    AttrValue,
    TensorType,
    ValueType,
    tensors_of,
)

#: Groups in random applications.
_GROUPS = (1, 1, 2, 3)


@register
class ConvTranspose(Operator):
    """The transposition of a convolution, plus a bias, over 1 to 3 spatial dimensions.

    x ``[N, C, s1, ..]``, w ``[C, O / groups, k1, ..]``, bias ``[O]``. Of the image that all kernels cover,
    enlarged by ``extra`` at its ends, ``crop`` is cut off: at the beginnings, then at the ends.
    """

    name = "conv_transpose"
    computes = Family.MATRIX_PRODUCT
    uses = (Use.VALUE, Use.VALUE, Use.ADDED)
    sums = True
    arity = (2, 3)
    attrs = (
        Attr("stride", "ints"),
        Attr("crop", "ints", ()),
        Attr("extra", "ints", ()),
        Attr("dilation", "ints", ()),
        Attr("groups", "int", 1, samples=_GROUPS),
    )
    onnx = ("ConvTranspose",)

    def normalize(self, attrs: Attrs) -> dict[str, AttrValue]:
        result = super().normalize(attrs)
        for name, usual in (("crop", 0), ("extra", 0), ("dilation", 1)):
            if all(number == usual for number in ints_of(result, name)):
                result[name] = ()
        return result

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x, w, *bias = kinds = operands(self.name, inputs)
        one_dtype(self.name, kinds, FLOAT_DTYPES)
        sizes, groups = spatial(self.name, x), int_of(attrs, "groups")
        if w.rank != x.rank or w.shape[0] != x.shape[1] or groups < 1 or x.shape[1] % groups:
            raise ShapeError(f"conv_transpose: weight {w} of {groups} groups does not fit {x}")
        filters = w.shape[1] * groups
        if bias and bias[0].shape != (filters,):
            raise ShapeError(f"conv_transpose: bias {bias[0]}, expected [{filters}]")
        check_length(self.name, "stride", ints_of(attrs, "stride"), len(sizes))
        for name, least, count in (("dilation", 1, 1), ("crop", 0, 2), ("extra", 0, 1)):
            numbers = ints_of(attrs, name)
            if numbers and (len(numbers) != count * len(sizes) or min(numbers) < least):
                raise ShapeError(f"conv_transpose: {name} {list(numbers)} does not fit {x}")
        out = self._sizes(sizes, w.shape[2:], attrs)
        if min(out) < 1:
            raise ShapeError(f"conv_transpose: nothing is left of {x}")
        return TensorType(x.dtype, (x.shape[0], filters, *out))

    @staticmethod
    def _sizes(
        sizes: tuple[int, ...], kernel: tuple[int, ...], attrs: Attrs, *, cropped: bool = True
    ) -> tuple[int, ...]:
        rank = len(sizes)
        stride, extra = ints_of(attrs, "stride"), ints_of(attrs, "extra") or (0,) * rank
        dilation = ints_of(attrs, "dilation") or (1,) * rank
        crop = (ints_of(attrs, "crop") if cropped else ()) or (0,) * (2 * rank)
        return tuple(
            stride[i] * (size - 1) + (kernel[i] - 1) * dilation[i] + 1 + extra[i]
            - crop[i] - crop[rank + i]
            for i, size in enumerate(sizes)
        )  # fmt: skip

    def summed_terms(self, inputs: Types) -> int:
        w = tensor(inputs[1], self.name)
        return w.shape[0] * math.prod(w.shape[2:])

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        x, w = partial.shapes[:2]
        if index == 0:
            return hints.image_type(None, w[0] if w and len(w) > 2 else None)
        if index == 1:
            if x is None or len(x) < 3:
                return hints.tensor_type(hints.spatial + 2)
            return hints.type([x[1], hints.size(), *hints.kernel[: len(x) - 2]])
        target = partial.target
        return hints.type([target[1] if target and len(target) > 2 else w[1] if w else 1])

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        rank = max(0, len(partial.shapes[0] or ()) - 2)
        if attr.name == "stride":
            return tuple(hints.stride[:rank])
        if attr.name == "groups" or hints.choices.often():
            return super().suggest_attribute(attr, partial, hints)
        return {"crop": hints.ints(2 * rank, 0, 1), "dilation": (2,) * rank}.get(attr.name, ())

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return self._spread(inputs, attrs, np.float64, np.matmul)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        return field.reduced(self._spread(inputs, attrs, np.int64, field.matmul))

    def _spread(
        self, inputs: Values, attrs: Attrs, dtype: DTypeLike, product: Callable[[Any, Any], Any]
    ) -> Any:
        """Add what each tap of the kernel makes of the image, at the places that it meets."""
        x, w, *bias = inputs
        sizes, kernel, groups = x.shape[2:], w.shape[2:], int_of(attrs, "groups")
        rank = len(sizes)
        whole = self._sizes(sizes, kernel, attrs, cropped=False)
        out = self._sizes(sizes, kernel, attrs)
        dilation = ints_of(attrs, "dilation") or (1,) * rank
        filters = w.reshape(groups, w.shape[0] // groups, w.shape[1], *kernel)
        rows = x.reshape(x.shape[0], groups, x.shape[1] // groups, -1)
        result: Any = np.zeros((x.shape[0], groups, w.shape[1], *whole), dtype)
        for tap, part in taps(result, kernel, ints_of(attrs, "stride"), dilation, sizes):
            matrix = filters[(..., *tap)].swapaxes(1, 2)
            part += product(matrix, rows).reshape(part.shape)
        begins = ints_of(attrs, "crop")[:rank] or (0,) * rank
        inner = tuple(slice(b, b + size) for b, size in zip(begins, out, strict=True))
        result = result[(..., *inner)].reshape(x.shape[0], groups * w.shape[1], *out)
        return result + bias[0].reshape(-1, *(1,) * rank) if bias else result

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Two for each weight that an element meets, and one per element for bias."""
        x, w = tensor(inputs[0], self.name), tensor(inputs[1], self.name)
        size = sum(part.size for part in tensors_of(output))
        return 2 * x.size * math.prod(w.shape[1:]) + size * (len(inputs) == 3)

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """The filters and the bias."""
        return tuple(range(1, len(inputs)))

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        x, w = input_type(node, 0), input_type(node, 1)
        ones = (1,) * (x.rank - 2)
        if attr_str(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
            return None
        if attr_ints(node, "output_shape") or attr_ints(node, "kernel_shape") not in (
            None, w.shape[2:],
        ):  # fmt: skip
            return None
        attrs: dict[str, AttrValue] = {
            "stride": attr_ints(node, "strides") or ones,
            "crop": attr_ints(node, "pads") or (),
            "extra": attr_ints(node, "output_padding") or (),
            "dilation": attr_ints(node, "dilations") or (),
            "groups": attr_int(node, "group", 1),
        }
        return Mapped(self.name, tuple(node.inputs[: 3 if has_input(node, 2) else 2]), attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        names = {"crop": "pads", "extra": "output_padding", "dilation": "dilations"}
        others: dict[str, Any] = {
            theirs: list(ints_of(attrs, own)) for own, theirs in names.items() if attrs[own]
        }
        if (groups := int_of(attrs, "groups")) > 1:
            others["group"] = groups
        strides = list(ints_of(attrs, "stride"))
        return emitter.emit("ConvTranspose", list(inputs), strides=strides, **others)
