"""Pools: the largest or the mean element of sliding windows."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.floats import FLOAT_FORMATS
from relational_tensat.tensor.operators.attributes import Attr, bool_of, ints_of, padding_of, str_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_int,
    attr_ints,
    check_one_output,
    emit_activation,
    emit_constant,
    input_type,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.shapes import check_length, one_dtype, spatial
from relational_tensat.tensor.operators.traits import ACTIVATIONS, Family, activate
from relational_tensat.tensor.operators.windows import (
    normalize_dilation,
    normalize_padding,
    output_sizes,
    pad_spatial,
    read_padding,
    resolve_padding,
    suggest_window,
    taps,
)
from relational_tensat.tensor.types import (
    FLOAT_DTYPES,
    Array,
    Attrs,
    AttrValue,
    TensorType,
    ValueType,
    tensors_of,
)

_SHARED_ATTRS = (
    Attr("kernel", "ints"),
    Attr("stride", "ints"),
    Attr("pad", "padding"),
    Attr("dilation", "ints", ()),
    Attr("ceil_mode", "bool", False),
)
_ACT = Attr("act", "str", "none", ACTIVATIONS)


#: More windows than this, before elements that are fewer than a dilation, are not looked at one by one.
_MOST_BORDER_WINDOWS = 1_000_000


class _Window:
    """The windows of one pool: the meaning of its attributes for an operand's spatial sizes.

    Raises:
        ShapeError: the attributes do not fit the sizes.
    """

    def __init__(self, op: str, sizes: tuple[int, ...], attrs: Attrs) -> None:
        self.kernel, self.stride = ints_of(attrs, "kernel"), ints_of(attrs, "stride")
        self.dilation = ints_of(attrs, "dilation") or (1,) * len(sizes)
        for attr in ("kernel", "stride", "dilation"):
            check_length(op, attr, getattr(self, attr), len(sizes))
        self.sizes = sizes
        pads = resolve_padding(padding_of(attrs), sizes, self.kernel, self.stride, self.dilation)
        self.begins, self.ends = pads
        ceil_mode = bool_of(attrs, "ceil_mode")
        self.out = output_sizes(op, sizes, self.kernel, self.stride, self.dilation, pads, ceil_mode)

    @property
    def reach(self) -> tuple[int, ...]:
        """Elements to pad at the ends so that every window, also a partial last one, is whole."""
        return tuple(map(max, self._overhang(), self.ends))

    def _overhang(self) -> tuple[int, ...]:
        """Return how far the last windows reach beyond the operand; negative where not so far."""
        return tuple(
            (out - 1) * s + (k - 1) * d + 1 - size - begin
            for out, s, k, d, size, begin in zip(
                self.out, self.stride, self.kernel, self.dilation, self.sizes, self.begins,
                strict=True,
            )
        )  # fmt: skip

    def onnx_borders(self, ceil_mode: bool) -> dict[str, Any]:
        """Return ONNX's pads and ceil_mode, which leave no doubt which windows count."""
        if not (ceil_mode and self.starts_outside()):
            return {"pads": [*self.begins, *self.ends], "ceil_mode": int(ceil_mode)}
        ends = (max(overhang, 0) for overhang in self._overhang())
        return {"pads": [*self.begins, *ends], "ceil_mode": 0}

    def is_whole(self) -> bool:
        """Return whether there is one window, of all elements and no padding."""
        is_padded = any((*self.begins, *self.ends))
        steps = {*self.stride, *self.dilation}
        return self.kernel == self.sizes and not is_padded and steps == {1}

    def meets_elements(self) -> bool:
        """Return whether no window is of padding only and (as ONNX asks) pads are below kernels."""
        if not any((*self.begins, *self.ends)):
            return True
        pads = [
            *zip(self.begins, self.kernel, strict=True),
            *zip(self.ends, self.kernel, strict=True),
        ]
        return all(p < k for p, k in pads) and all(map(self._meets_elements, range(len(self.out))))

    def _meets_elements(self, axis: int) -> bool:
        """Whether every window meets an element along one dimension of any size.

        Pads are below kernels. A window that starts inside meets one at once; one that starts before the
        first element has a tap within a dilation of it.
        """
        size, stride, dilation = self.sizes[axis], self.stride[axis], self.dilation[axis]
        begin, out = self.begins[axis], self.out[axis]
        if (out - 1) * stride - begin >= size:
            return False
        before = min(-(-begin // stride), out)
        if not before or dilation <= size:
            return True
        if before > _MOST_BORDER_WINDOWS:
            return False
        first_taps = (np.arange(before) * stride - begin) % dilation
        return bool((first_taps < size).all())

    def starts_outside(self) -> bool:
        """Return whether the elements left over by the last window are padding only."""
        return any(over < end for over, end in zip(self._overhang(), self.ends, strict=True))

    def counts(self, include_pad: bool) -> Array:
        """Return how many elements each window meets, ``[*out]``; padding counts on demand."""
        total: Array = np.ones(())
        for i, size in enumerate(self.sizes):
            first, last = 0, size
            if include_pad:
                first, last = -self.begins[i], size + self.ends[i]
            starts = np.arange(self.out[i]) * self.stride[i] - self.begins[i]
            positions = starts[:, None] + np.arange(self.kernel[i]) * self.dilation[i]
            inside = ((positions >= first) & (positions < last)).sum(axis=1)
            total = np.multiply.outer(total, inside)
        return total


class _Pool(Operator):
    """The common part of both pools."""

    computes = Family.POOLING
    #: The element types that it pools.
    accepts: ClassVar[frozenset[str]] = FLOAT_DTYPES

    def normalize(self, attrs: Attrs) -> dict[str, AttrValue]:
        result = super().normalize(attrs)
        normalize_dilation(result)
        normalize_padding(result)
        return result

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        """Rounding up is kept only where it adds a window."""
        result = self.normalize(attrs)
        sizes = spatial(self.name, tensor(inputs[0], self.name))
        if result["ceil_mode"]:
            rounded_down = _Window(self.name, sizes, {**result, "ceil_mode": False}).out
            result["ceil_mode"] = _Window(self.name, sizes, result).out != rounded_down
        return result

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x = tensor(inputs[0], self.name)
        one_dtype(self.name, [x], self.accepts)
        window = _Window(self.name, spatial(self.name, x), attrs)
        if not window.meets_elements():
            raise ShapeError(
                f"{self.name}: pad {attrs['pad']!r} for the kernel {list(window.kernel)},"
                " expected less padding than kernel, and no window of padding only"
            )
        return x.with_shape((*x.shape[:2], *window.out))

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """One per window and element, nothing for a fused activation."""
        size = sum(part.size for part in tensors_of(output))
        return size * math.prod(ints_of(attrs, "kernel"))

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target = partial.target
        return hints.image_type(*(target[:2] if target and len(target) > 2 else ()))

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        if attr.kind == "bool":
            return super().suggest_attribute(attr, partial, hints)
        return suggest_window(attr.name, partial, hints)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        check_one_output(node)
        sizes = spatial(self.name, input_type(node, 0))
        ones = (1,) * len(sizes)
        kernel = sizes if node.op_type.startswith("Global") else attr_ints(node, "kernel_shape")
        if kernel is None:
            return None
        stride = attr_ints(node, "strides") or ones
        dilation = attr_ints(node, "dilations") or ones
        attrs: dict[str, AttrValue] = {
            "kernel": kernel,
            "stride": stride,
            "pad": read_padding(node, sizes, kernel, stride, dilation),
            "dilation": dilation,
            "ceil_mode": False,
        }
        if attr_int(node, "ceil_mode", 0):
            attrs["ceil_mode"] = True
            if _Window(self.name, sizes, attrs).starts_outside():
                return None  # ONNX and onnxruntime disagree whether such a window counts
        return Mapped(self.name, (node.inputs[0],), attrs)


@register
class MaxPool(_Pool):
    """The largest element of each window; padding never is. Integers of 8 bits have no activation.

    It is no ``reduce_max``, even of whole images: onnxruntime's pools take NaN for the lowest finite
    number, and that for negative infinity.
    """

    name = "max_pool"
    attrs = (*_SHARED_ATTRS, _ACT)
    onnx = ("MaxPool", "GlobalMaxPool")
    accepts = FLOAT_DTYPES | {"int8", "uint8"}

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        result = super().infer(inputs, attrs)
        if not result.is_float and str_of(attrs, "act") != "none":
            raise ShapeError(f"max_pool: act = {attrs['act']!r} of {result}, expected none")
        return result

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x = np.asarray(inputs[0])
        window = _Window(self.name, x.shape[2:], attrs)
        lowest: Any = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        padded = pad_spatial(x, window.begins, window.reach, lowest)
        result = np.full((*x.shape[:2], *window.out), lowest, x.dtype)
        for _, patch in taps(padded, window.kernel, window.stride, window.dilation, window.out):
            np.maximum(result, patch, out=result)
        return activate(str_of(attrs, "act"), result)

    def skipping_nan(self, operand: Any) -> Any:
        lowest = -FLOAT_FORMATS["float32"].largest
        return np.fmax(operand, lowest) if operand.dtype.kind == "f" else operand

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        """The last element of each window in a random total order, in which padding is first."""
        x = inputs[0]
        window = _Window(self.name, x.shape[2:], attrs)
        padded = pad_spatial(x, window.begins, window.reach, 0)
        order = pad_spatial(field.rank(x), window.begins, window.reach, 0)
        shape = (window.kernel, window.stride, window.dilation, window.out)
        result = np.zeros((*x.shape[:2], *window.out), np.int64)
        last = np.zeros(result.shape, np.uint64)
        for (_, patch), (_, key) in zip(taps(padded, *shape), taps(order, *shape), strict=True):
            result = np.where(key > last, patch, result)
            last = np.maximum(key, last)
        return field.activate(str_of(attrs, "act"), result)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        x = tensor(types[0], self.name)
        window = _Window(self.name, x.shape[2:], attrs)
        if window.is_whole() and x.dtype == "float32":
            result = emitter.emit("GlobalMaxPool", list(inputs))
        else:
            result = emitter.emit(
                "MaxPool",
                list(inputs),
                kernel_shape=list(window.kernel),
                strides=list(window.stride),
                dilations=list(window.dilation),
                **window.onnx_borders(bool_of(attrs, "ceil_mode")),
            )
        return emit_activation(emitter, result[0], str_of(attrs, "act"))


@register
class AvgPool(_Pool):
    """The mean element of each window; with ``count_include_pad`` padding counts as zeros.

    Places of a partial last window (``ceil_mode``) beyond the padding never count.
    """

    name = "avg_pool"
    sums = True
    attrs = (*_SHARED_ATTRS, Attr("count_include_pad", "bool", False), _ACT)
    onnx = ("AveragePool",)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x = inputs[0]
        window = _Window(self.name, x.shape[2:], attrs)
        padded = pad_spatial(x, window.begins, window.reach, 0.0)
        result = np.zeros((*x.shape[:2], *window.out))
        for _, patch in taps(padded, window.kernel, window.stride, window.dilation, window.out):
            result += patch
        result /= window.counts(bool_of(attrs, "count_include_pad"))
        return activate(str_of(attrs, "act"), result)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        x = inputs[0]
        window = _Window(self.name, x.shape[2:], attrs)
        padded = pad_spatial(x, window.begins, window.reach, 0)
        patches = taps(padded, window.kernel, window.stride, window.dilation, window.out)
        counts = window.counts(bool_of(attrs, "count_include_pad")).astype(np.int64)
        total = field.reduced(sum(patch for _, patch in patches))
        return field.activate(str_of(attrs, "act"), field.multiply(total, field.inverse(counts)))

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        mapped = super().read_onnx(node)
        if mapped is None:
            return None
        padded = mapped.attrs["pad"] != "valid"
        include = padded and attr_int(node, "count_include_pad", 0) == 1
        return Mapped(self.name, mapped.inputs, {**mapped.attrs, "count_include_pad": include})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        x = tensor(types[0], self.name)
        window = _Window(self.name, x.shape[2:], attrs)
        include = bool_of(attrs, "count_include_pad")
        # Dilations came with version 19, and what partial windows divide by differs between
        # versions: those few pools are written as what they mean.
        if ints_of(attrs, "dilation") or (bool_of(attrs, "ceil_mode") and include):
            result = _emit_weighted(inputs[0], x, window, include, emitter)
        else:
            result = emitter.emit(
                "AveragePool",
                list(inputs),
                kernel_shape=list(window.kernel),
                strides=list(window.stride),
                count_include_pad=int(include),
                **window.onnx_borders(bool_of(attrs, "ceil_mode")),
            )
        return emit_activation(emitter, result[0], str_of(attrs, "act"))


def _emit_weighted(
    name: str, x: TensorType, window: _Window, include_pad: bool, emitter: OnnxEmitter
) -> list[str]:
    """Write an average pool as a depthwise convolution with ones, divided by the counts."""
    channels = x.shape[1]
    ones = emit_constant(emitter, np.ones((channels, 1, *window.kernel)), x.dtype)
    sums = emitter.emit(
        "Conv",
        [name, ones],
        kernel_shape=list(window.kernel),
        strides=list(window.stride),
        dilations=list(window.dilation),
        pads=[*window.begins, *window.reach],
        group=channels,
    )
    counts = emit_constant(emitter, window.counts(include_pad)[None, None], x.dtype)
    return emitter.emit("Div", [sums[0], counts])
