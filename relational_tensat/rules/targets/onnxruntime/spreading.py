"""A number per channel spread over an image, so that an image in blocks is multiplied where it is.

onnxruntime brings an image out of blocks to multiply it by a gate of one number per channel, and back: in
blocks it multiplies images of one size only. Resize gives such an image, in blocks, too.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.targets.fused_kernel import FusedKernel, Part
from relational_tensat.rules.targets.onnxruntime.contrib import InBlocks
from relational_tensat.tensor import Attrs, AttrValue, TensorType, ValueType
from relational_tensat.tensor.hints import Hints
from relational_tensat.tensor.operators import Attr
from relational_tensat.tensor.operators.attributes import ints_of
from relational_tensat.tensor.operators.base import Types, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_str,
    input_type,
)
from relational_tensat.tensor.operators.sampling import PartialApplication

_PLACE = (1, 1)
#: How it is written.
_SPELLED = {
    "mode": "nearest",
    "coordinate_transformation_mode": "asymmetric",
    "nearest_mode": "floor",
}


class Spread(FusedKernel):
    """x ``[N, C, 1, 1]`` at all places of an image of ``sizes``: ``[N, C, *sizes]``. Written as Resize."""

    name = "ort_spread"
    is_written = True
    attrs = (Attr("sizes", "ints"),)
    onnx: ClassVar[tuple[str, ...]] = ("Resize",)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        """Read what is written: the nearest of one place, as often as whole numbers say."""
        is_so = all(attr_str(node, name, "") == value for name, value in _SPELLED.items())
        scales = node.constant(2) if len(node.inputs) == 3 and not node.inputs[1] else None
        if not is_so or {*node.attributes} - {*_SPELLED} or scales is None:
            return None
        times = [int(scale) for scale in scales.tolist()]
        is_of_places = input_type(node, 0).shape[2:] == _PLACE and times[:2] == [1, 1]
        if not is_of_places or times != scales.tolist():
            return None
        return Mapped(self.name, node.inputs[:1], {"sizes": tuple(times[2:])})

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """A product with ones.

        Raises:
            ShapeError: x is no image of one place, or sizes are not two.
        """
        x, sizes = tensor(inputs[0], self.name), ints_of(attrs, "sizes")
        if x.rank != 4 or x.shape[2:] != _PLACE or len(sizes) != 2:
            raise ShapeError(f"{self.name}: {x} cannot be spread to {sizes}")
        ones: dict[str, AttrValue] = {"value": 1.0, "dtype": x.dtype, "shape": (1, 1, *sizes)}
        return [Part("fill", (), ones), Part("mul", (0, 1))]

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """One number per channel."""
        image = hints.image_type()
        return image.with_shape((*image.shape[:2], *_PLACE))

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        """Few places."""
        return (hints.choices.below(3) + 1, hints.choices.below(3) + 1)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write the nearest of one place."""
        scales = emitter.constant(np.array([1, 1, *ints_of(attrs, "sizes")], np.float32))
        return emitter.emit("Resize", [inputs[0], "", scales], **_SPELLED)


class BlockedSpread(Spread):
    """A number per channel, in blocks, at all places of an image: onnxruntime's Upsample in blocks."""

    name = "ort_blocked_spread"
    is_written = False
    onnx = ()

    def parts(self, inputs: Types, attrs: Attrs) -> list[Part]:
        """That alone."""
        return [Part(Spread.name, (0,), attrs)]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write onnxruntime's own operator."""
        scales = [1, 1, *ints_of(attrs, "sizes")]
        return InBlocks(emitter).emit("Upsample", inputs, scales=scales, mode="nearest")


SPREADING_KERNELS: tuple[type[FusedKernel], ...] = (Spread, BlockedSpread)
