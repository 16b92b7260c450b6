"""Convolutions, and the two operators that re-arrange their weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.attributes import Attr, int_of, ints_of, padding_of, str_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_int,
    attr_ints,
    emit_activation,
    emit_constant,
    emit_ints,
    has_input,
    input_type,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication
from relational_tensat.tensor.operators.shapes import (
    NUMBER_DTYPES,
    check_length,
    one_dtype,
    operands,
    spatial,
)
from relational_tensat.tensor.operators.traits import ACTIVATIONS, Family, Use, activate
from relational_tensat.tensor.operators.windows import (
    normalize_dilation,
    normalize_padding,
    output_sizes,
    pad_spatial,
    read_padding,
    resolve_padding,
    suggest_window,
    windows,
)
from relational_tensat.tensor.operators.work_steps import CHANNELWISE
from relational_tensat.tensor.types import (
    FLOAT_DTYPES,
    Attrs,
    AttrValue,
    TensorType,
    ValueType,
    tensors_of,
)

#: Elements that windows side by side may have at once (32 MiB of float64), if a row of them has no more.
_MOST_IN_COLUMNS = 1 << 22
#: How many groups are merged into one, and how many there are, in random applications.
_COUNTS = (1, 2, 2, 3, 4)


@register
class Conv(Operator):
    """act(x * w + bias) over 1 to 3 spatial dimensions.

    x ``[N, C, s1, ..]``, w ``[O, C / groups, k1, ..]``, bias ``[O]``. The groups are no attribute:
    they follow from the shapes, and divide C and O.
    """

    name = "conv"
    computes = Family.CONVOLUTION
    uses = (Use.VALUE, Use.VALUE, Use.ADDED)
    sums = True
    arity = (2, 3)
    attrs = (
        Attr("stride", "ints"),
        Attr("pad", "padding"),
        Attr("dilation", "ints", ()),
        Attr("act", "str", "none", ACTIVATIONS),
    )
    onnx = ("Conv",)

    def normalize(self, attrs: Attrs) -> dict[str, AttrValue]:
        result = super().normalize(attrs)
        normalize_dilation(result)
        normalize_padding(result)
        return result

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x, w, *bias = kinds = operands(self.name, inputs)
        one_dtype(self.name, kinds, FLOAT_DTYPES)
        sizes, kernel = spatial(self.name, x), w.shape[2:]
        if w.rank != x.rank:
            raise ShapeError(f"conv: weight {w} for an operand {x}, expected equal ranks")
        channels, filters = x.shape[1], w.shape[0]
        if channels % w.shape[1] or filters % (channels // w.shape[1]):
            raise ShapeError(
                f"conv: weight {w} does not fit {channels} channels: its second dimension must"
                " divide them, and the quotient (the groups) must divide the filters"
            )
        if bias and bias[0].shape != (filters,):
            raise ShapeError(f"conv: bias {bias[0]}, expected [{filters}]")
        stride, dilation = ints_of(attrs, "stride"), _dilation(attrs, len(sizes))
        check_length(self.name, "stride", stride, len(sizes))
        check_length(self.name, "dilation", dilation, len(sizes))
        pads = resolve_padding(padding_of(attrs), sizes, kernel, stride, dilation)
        out = output_sizes(self.name, sizes, kernel, stride, dilation, pads)
        return TensorType(x.dtype, (x.shape[0], filters, *out))

    def summed_terms(self, inputs: Types) -> int:
        return math.prod(tensor(inputs[1], self.name).shape[1:])

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target, (x, w) = partial.target, partial.shapes[:2]
        if index == 0:
            batch = target[0] if target else None
            if w is None or len(w) < 3:
                return hints.image_type(batch)
            groups = hints.choices.choice([g for g in (1, 1, 1, 2, 3, w[0]) if w[0] % g == 0])
            hints.spatial = len(w) - 2
            return hints.image_type(batch, w[1] * groups)
        if index == 1:
            if x is None or len(x) < 3:
                return hints.tensor_type(hints.spatial + 2)
            return _suggested_filters(x, target[1] if target and len(target) > 2 else None, hints)
        return hints.type([w[0]] if w else [hints.size()])

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        return suggest_window(attr.name, partial, hints)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        result = self._convolve(inputs, attrs, np.float64, np.matmul)
        return activate(str_of(attrs, "act"), result)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        result = self._convolve(inputs, attrs, np.int64, field.matmul)
        return field.activate(str_of(attrs, "act"), field.reduced(result))

    def _convolve(
        self, inputs: Values, attrs: Attrs, dtype: DTypeLike, product: Callable[[Any, Any], Any]
    ) -> Any:
        """Multiply the filters with the windows that they meet, side by side as columns; add the bias.

        The windows of all images are the columns of one product: filters are read once for all of them.
        """
        x, w, *bias = inputs
        sizes, kernel, stride = x.shape[2:], w.shape[2:], ints_of(attrs, "stride")
        dilation = _dilation(attrs, len(sizes))
        begins, ends = resolve_padding(padding_of(attrs), sizes, kernel, stride, dilation)
        out_sizes = output_sizes(self.name, sizes, kernel, stride, dilation, (begins, ends))
        padded = pad_spatial(x, begins, ends, 0)
        batch, groups = x.shape[0], x.shape[1] // w.shape[1]
        filters = w.reshape(groups, w.shape[0] // groups, -1)
        result = np.empty((batch, *filters.shape[:2], *out_sizes), dtype)
        patches = windows(padded, kernel, stride, dilation, out_sizes)
        rows = max(1, _MOST_IN_COLUMNS * out_sizes[0] // max(1, patches.size))
        for start in range(0, out_sizes[0], rows):
            part: Any = np.s_[..., start : start + rows, *(slice(None),) * (len(sizes) - 1)]
            met = np.moveaxis(patches[part], 0, 1 + len(sizes))
            columns = met.reshape(groups, filters.shape[2], -1)
            of_groups = product(filters, columns)
            of_groups = of_groups.reshape(*filters.shape[:2], *met.shape[1 + len(sizes) :])
            result[part] = np.moveaxis(of_groups, 2, 0)
        result = result.reshape(batch, w.shape[0], *out_sizes)
        if bias:
            result += bias[0].reshape(-1, *(1,) * len(sizes))
        return result

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """Two per weight and position, one per element for bias, nothing for a fused activation."""
        w = tensor(inputs[1], self.name)
        size = sum(part.size for part in tensors_of(output))
        return size * (2 * math.prod(w.shape[1:]) + (len(inputs) == 3))

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """Itself and an activation; of each channel alone, also what it reads and writes."""
        own = super().works(inputs, output, attrs)
        x, w = tensor(inputs[0], self.name), tensor(inputs[1], self.name)
        if w.shape[1] > 1 or x.shape[1] == 1:
            return own
        return [*own, (CHANNELWISE, x.size + tensor(output, self.name).size)]

    def weight_operands(self, inputs: Types) -> tuple[int, ...]:
        """The filters and the bias."""
        return tuple(range(1, len(inputs)))

    def prepared_operands(self, inputs: Types) -> tuple[int, ...]:
        """The filters, in blocks of channels, and the bias, which is filled up to such blocks."""
        return self.weight_operands(inputs)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        x, w = input_type(node, 0), input_type(node, 1)
        sizes, kernel = x.shape[2:], w.shape[2:]
        if x.shape[1] != w.shape[1] * attr_int(node, "group", 1):
            return None
        if attr_ints(node, "kernel_shape") not in (None, kernel):
            return None
        ones = (1,) * len(sizes)
        stride = attr_ints(node, "strides") or ones
        dilation = attr_ints(node, "dilations") or ones
        pad = read_padding(node, sizes, kernel, stride, dilation)
        attrs = {"stride": stride, "pad": pad, "dilation": dilation}
        return Mapped(self.name, tuple(node.inputs[: 3 if has_input(node, 2) else 2]), attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        x, w = tensor(types[0], "x"), tensor(types[1], "w")
        sizes, kernel, stride = x.shape[2:], w.shape[2:], ints_of(attrs, "stride")
        dilation = _dilation(attrs, len(sizes))
        begins, ends = resolve_padding(padding_of(attrs), sizes, kernel, stride, dilation)
        ones = [1] * len(sizes)
        written: dict[str, tuple[Any, Any]] = {
            "strides": (list(stride), ones),
            "dilations": (list(dilation), ones),
            "pads": ([*begins, *ends], [0, 0] * len(sizes)),
            "group": (x.shape[1] // w.shape[1], 1),
        }
        others: dict[str, Any] = {
            n: value for n, (value, usual) in written.items() if value != usual
        }
        result = emitter.emit("Conv", list(inputs), **others)
        return emit_activation(emitter, result[0], str_of(attrs, "act"))


def _dilation(attrs: Attrs, rank: int) -> tuple[int, ...]:
    return ints_of(attrs, "dilation") or (1,) * rank


def _suggested_filters(x: tuple[int, ...], filters: int | None, hints: Hints) -> TensorType:
    """Return filters, mostly of the instance's kernel size, for an image of shape ``x``."""
    groups_of_x = [g for g in (1, 1, 1, 2, 2, 3, x[1]) if x[1] % g == 0]
    if filters:
        groups_of_x = [g for g in groups_of_x if filters % g == 0]
    groups = hints.choices.choice(groups_of_x)
    kernel = [k if hints.choices.often() else hints.choices.choice([1, 2, 3]) for k in hints.kernel]
    if hints.choices.below(5) == 4:  # one tap: many laws are about such kernels alone
        kernel = [1] * len(kernel)
    outputs = filters or groups * hints.choices.choice([1, 1, 2, 3])
    return hints.type([outputs, x[1] // groups, *kernel[: len(x) - 2]])


@register
class Enlarge(Operator):
    """A convolution's weights, zero-padded to the kernel of another: w's in the middle.

    w ``[O, I, k1, ..]`` and ref ``[.., .., r1, ..]`` give ``[O, I, r1, ..]``; of an odd number of
    added elements the larger half stands at the end.
    """

    name = "enlarge"
    may_be_view = True
    uses = (Use.MOVED, Use.VALUE)
    kernel = "copy"
    is_exact = True
    keeps_size = True
    arity = (2, 2)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        w, ref = kinds = operands(self.name, inputs)
        one_dtype(self.name, kinds, NUMBER_DTYPES)
        sizes = spatial(self.name, w)
        if ref.rank != w.rank or any(s > r for s, r in zip(sizes, ref.shape[2:], strict=True)):
            raise ShapeError(f"enlarge: {w} does not fit into the kernel of {ref}")
        return w.with_shape((*w.shape[:2], *ref.shape[2:]))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        w, ref = inputs
        return pad_spatial(w, *_enlargement(w.shape[2:], ref.shape[2:]), value=0)

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """None: it copies."""
        return 0

    def bytes_moved(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """The weights read and the result written; of the reference only the shape is used."""
        return tensor(inputs[0], self.name).nbytes + tensor(output, self.name).nbytes

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        w, ref = operands(self.name, types)
        begins, ends = _enlargement(w.shape[2:], ref.shape[2:])
        return emitter.emit("Pad", [inputs[0], emit_ints(emitter, [0, 0, *begins, 0, 0, *ends])])


def _enlargement(
    sizes: tuple[int, ...], targets: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    totals = [target - size for size, target in zip(sizes, targets, strict=True)]
    return tuple(total // 2 for total in totals), tuple(total - total // 2 for total in totals)


@register
class Merge(Operator):
    """The weights of a grouped convolution, re-arranged for ``groups / count`` groups.

    w ``[O, I, k1, ..]`` of ``groups`` groups gives ``[O, I * count, k1, ..]``. Every ``count`` neighbouring
    groups become one, and a filter has zeros for the channels of the other groups.
    """

    name = "merge"
    uses = (Use.MOVED,)
    kernel = "copy"
    is_exact = True
    keeps_size = True
    attrs = (Attr("count", "int", samples=_COUNTS), Attr("groups", "int", samples=_COUNTS))

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        w = tensor(inputs[0], self.name)
        spatial(self.name, w)
        one_dtype(self.name, [w], NUMBER_DTYPES)
        count, groups = int_of(attrs, "count"), int_of(attrs, "groups")
        if count < 1 or groups < 1 or groups % count or w.shape[0] % groups:
            raise ShapeError(
                f"merge: count {count} must divide groups {groups}, which must divide the"
                f" {w.shape[0]} filters"
            )
        return w.with_shape((w.shape[0], w.shape[1] * count, *w.shape[2:]))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        w, count, groups = inputs[0], int_of(attrs, "count"), int_of(attrs, "groups")
        kernel, per_group = w.shape[2:], w.shape[0] // groups
        source = w.reshape(groups // count, count, per_group, w.shape[1], *kernel)
        result = np.zeros((groups // count, count, per_group, count, w.shape[1], *kernel), w.dtype)
        for slot in range(count):
            result[:, slot, :, slot] = source[:, slot]
        return result.reshape(w.shape[0], count * w.shape[1], *kernel)

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """None: it copies."""
        return 0

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Copies side by side, times 1 where a filter's own slot is and 0 elsewhere."""
        w, count = tensor(types[0], "w"), int_of(attrs, "count")
        copies = emitter.emit("Concat", [inputs[0]] * count, axis=1)[0]
        ones = np.ones((w.shape[0], w.shape[1], *(1,) * (w.rank - 2)))
        mask = emit_constant(emitter, self.evaluate([ones], attrs), w.dtype)
        return emitter.emit("Mul", [copies, mask])
