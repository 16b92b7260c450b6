"""Spellings that change the kernels of onnxruntime: pieces of a value, gates of images, plain sums.

It makes one Split of slices and gathers that are all of a value. It brings an image out of blocks to
multiply it by a gate of one number per channel, and back: in blocks it multiplies images of one size only.
Resize spreads the number over an image, in blocks, too. Of a Sum, or a ReduceMean of images, it makes no
kernel. They compute the same as Add and GlobalAveragePool, and are read as these. But only of these it
makes the layer norm of a sum, the mean of images in blocks, and the mean of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.backends.fused_kernel import FusedKernel, FusedPart
from relational_tensat.rules.backends.onnxruntime.kernels import InBlocks, Sum
from relational_tensat.tensor import (
    Attrs,
    AttrValue,
    Graph,
    Node,
    TensorType,
    ValueType,
    build_graph,
)
from relational_tensat.tensor.operators import Attr, Family
from relational_tensat.tensor.operators.attributes import bool_of, int_of, ints_of
from relational_tensat.tensor.operators.base import Types, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_str,
    emit_reduce,
    input_type,
)
from relational_tensat.tensor.operators.samples import Hints, PartialApplication

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

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        """A product with ones.

        Raises:
            ShapeError: x is no image of one place, or sizes are not two.
        """
        x, sizes = tensor(inputs[0], self.name), ints_of(attrs, "sizes")
        if x.rank != 4 or x.shape[2:] != _PLACE or len(sizes) != 2:
            raise ShapeError(f"{self.name}: {x} cannot be spread to {sizes}")
        ones: dict[str, AttrValue] = {"value": 1.0, "dtype": x.dtype, "shape": (1, 1, *sizes)}
        return [FusedPart("fill", (), ones), FusedPart("mul", (0, 1))]

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

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        return [FusedPart(Spread.name, (0,), attrs)]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        scales = [1, 1, *ints_of(attrs, "sizes")]
        return InBlocks(emitter).emit("Upsample", inputs, scales=scales, mode="nearest")


SPREADING_KERNELS: tuple[type[FusedKernel], ...] = (Spread, BlockedSpread)


_SPATIAL: Attrs = {"axes": (2, 3), "keepdims": True}
_IMAGE_RANK = 4


class MeanOfImage(FusedKernel):
    """The mean of each channel of an image, written as ReduceMean."""

    name = "ort_reduce_mean"
    is_written = True
    computes = Family.REDUCTION
    attrs = (Attr("axes", "ints"), Attr("keepdims", "bool"))

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        return [FusedPart("reduce_mean", (0,), attrs)]

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
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


@dataclass(frozen=True, slots=True)
class _Piece:
    """The part that a node takes of its operand along an axis, from ``start`` up to below ``end``.

    Attributes:
        is_index: whether the result has no such axis.
    """

    node: Node
    axis: int
    start: int
    end: int
    is_index: bool = False


def with_splits(graph: Graph) -> Graph:
    """Return a graph with a split wherever all that reads a value takes pieces that are all of it."""
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in dict.fromkeys(node.inputs):
            readers.setdefault(name, []).append(node)
    splits: dict[str, list[_Piece]] = {}
    for name, nodes in readers.items():
        if len(nodes) > 1 and name not in graph.outputs and name not in graph.weights:
            pieces = _pieces(graph, name, nodes)
            if pieces:
                splits[name] = pieces
    if not splits:
        return graph
    dropped = {piece.node.outputs for pieces in splits.values() for piece in pieces}
    nodes = []
    for name in graph.inputs:
        nodes += _split(graph, name, splits.get(name, []))
    for node in graph.nodes:
        if node.outputs not in dropped:
            nodes.append(node)
        for name in node.outputs:
            nodes += _split(graph, name, splits.get(name, []))
    return build_graph(graph.name, graph.inputs, graph.weights, nodes, graph.outputs)


def _pieces(graph: Graph, name: str, nodes: Sequence[Node]) -> list[_Piece]:
    """Return in order what nodes take of a value; nothing where that is not all of it, each once."""
    found = [_piece(graph, name, node) for node in nodes]
    pieces = sorted((piece for piece in found if piece is not None), key=lambda piece: piece.start)
    kind = graph.types[name]
    if len(pieces) != len(nodes) or not isinstance(kind, TensorType):
        return []
    if len({piece.axis for piece in pieces}) > 1:
        return []
    ends = [0, *(piece.end for piece in pieces)]
    is_all = [piece.start for piece in pieces] == ends[:-1] and ends[-1] == kind.shape[
        pieces[0].axis
    ]
    return pieces if is_all else []


def _piece(graph: Graph, name: str, node: Node) -> _Piece | None:
    if node.op == "slice" and len(ints_of(node.attrs, "axes")) == 1:
        (axis,), (start,), (end,), (step,) = (
            ints_of(node.attrs, part) for part in ("axes", "starts", "ends", "steps")
        )
        return _Piece(node, axis, start, end) if step == 1 else None
    if node.op == "gather" and node.inputs[0] == name:
        index, kind = graph.weights.get(node.inputs[1]), graph.types[name]
        if (
            index is None
            or index.data is None
            or index.type.shape
            or not isinstance(kind, TensorType)
        ):
            return None
        axis = int_of(node.attrs, "axis")
        start = int(index.data) % kind.shape[axis]
        return _Piece(node, axis, start, start + 1, is_index=True)
    return None


def _split(graph: Graph, name: str, pieces: Sequence[_Piece]) -> list[Node]:
    """Return the split of a value, and what leaves the axis out of its parts where they have none."""
    if not pieces:
        return []
    parts = tuple(
        f"{piece.node.outputs[0]}/part" if piece.is_index else piece.node.outputs[0]
        for piece in pieces
    )
    sizes = tuple(piece.end - piece.start for piece in pieces)
    views = [
        Node(
            "reshape", (part,), piece.node.outputs, {"shape": _shape(graph, piece.node.outputs[0])}
        )
        for part, piece in zip(parts, pieces, strict=True)
        if piece.is_index
    ]
    return [Node("split", (name,), parts, {"axis": pieces[0].axis, "sizes": sizes}), *views]


def _shape(graph: Graph, name: str) -> tuple[int, ...]:
    kind = graph.types[name]
    return kind.shape if isinstance(kind, TensorType) else ()
