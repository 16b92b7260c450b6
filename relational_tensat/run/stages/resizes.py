"""Resize by interpolation as products: it is linear, and its two axes are apart.

onnxruntime interpolates each element by itself: by cubics that takes 200 ns, and a product takes ten.
The matrices are what the same operator gives of unit matrices, one axis at a time, so that no coefficient
is known here. A rule of the model's own says so for each such node, and costs decide. A rule is made only
if the products of random images agree with the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeGuard

import numpy as np
import onnx

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.egraph.enode_rows import gathered
from relational_tensat.formats.onnx_opaque import decode, encode
from relational_tensat.rules.model import Apply, Literal, Rule, Term, Var
from relational_tensat.tensor import Array, Graph, Node, TensorType, ValueType
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.base import tensor
from relational_tensat.tensor.types import AttrValue

#: The family of these rules, and the file that they would stand in.
FAMILY = "resizes"
_FILE = f"{FAMILY}.rules"
#: Elements of a matrix; of one for both axes at once, which is good for small images only.
_MOST, _MOST_AT_ONCE = 1 << 20, 1 << 18
#: Elements of an image that products are tried on.
_LARGEST = 1 << 23
#: Of the largest element: what rounding leaves of sums of 16 products.
_TOLERANCE = 1e-5
#: Others are not linear, or choose by rounding.
_MODES = (b"linear", b"cubic")
_CROPPED = b"tf_crop_and_resize"
_RANK, _DTYPE = 4, "float32"
_SEED = 17


def resize_rules(graph: Graph) -> list[Rule]:
    """Return rules by which nodes of a graph with fixed sizes are products.

    A rule matches nodes by their attributes. So those that share these, but not the image's type and the
    operands behind it, are left as they are.

    Args:
        graph: equal weights are one.
    """
    alike: dict[object, list[Node]] = {}
    for node in graph.nodes:
        if node.op == "opaque" and node.attrs["op_type"] == "Resize" and not node.attrs["domain"]:
            alike.setdefault(tuple(sorted(node.attrs.items())), []).append(node)
    rules = []
    for number, nodes in enumerate(alike.values(), 1):
        if len({(graph.types[node.inputs[0]], *node.inputs[1:]) for node in nodes}) == 1:
            rules += _rules_of(nodes[0], graph, number)
    return rules


def _rules_of(node: Node, graph: Graph, number: int) -> list[Rule]:
    image, result = graph.types[node.inputs[0]], graph.types[node.outputs[0]]
    if not (_is_image(image) and _is_image(result)) or image.shape[:2] != result.shape[:2]:
        return []
    original = decode(str(node.attrs["payload"]))
    values = {item.name: onnx.helper.get_attribute_value(item) for item in original.attribute}
    if values.get("mode") not in _MODES or "axes" in values:
        return []
    if values.get("coordinate_transformation_mode") == _CROPPED:
        return []
    if any(name not in graph.weights for name in node.inputs[1:]):
        return []
    resize = _Resize(node, graph, original)
    ways = [at_once for at_once in (False, True) if resize.fits(at_once)]
    try:
        agrees = bool(ways) and resize.agrees()
    except RelationalTensatError:  # onnxruntime does not run it so
        return []
    return [resize.rule(number, at_once=at_once) for at_once in ways] if agrees else []


def _is_image(kind: ValueType) -> TypeGuard[TensorType]:
    if not isinstance(kind, TensorType) or kind.size > _LARGEST:
        return False
    return kind.rank == _RANK and kind.dtype == _DTYPE


class _Resize:
    """One node, from images of some height and width to images of others."""

    def __init__(self, node: Node, graph: Graph, original: onnx.NodeProto) -> None:
        self._node, self._graph, self._original = node, graph, original
        kinds = (tensor(graph.types[name], "Resize") for name in (node.inputs[0], node.outputs[0]))
        self._shape, self._new_shape = (kind.shape for kind in kinds)
        self._before, self._after = self._shape[2:], self._new_shape[2:]

    def fits(self, at_once: bool) -> bool:
        """Whether the matrices are small enough."""
        if at_once:
            return prod(self._before) * prod(self._after) <= _MOST_AT_ONCE
        return max(a * b for a, b in zip(self._before, self._after, strict=True)) <= _MOST

    def agrees(self) -> bool:
        """Whether a random image times the matrices is what the node gives."""
        given = [self._graph.weights[name].data for name in self._node.inputs[1:]]
        if any(value is None for value in given):
            return False
        kinds = tuple(self._graph.types[name] for name in self._node.inputs)
        rows, columns = (self._matrix(axis) for axis in (0, 1))
        image = np.random.default_rng(_SEED).standard_normal(self._shape)
        opaque = get_operator("opaque")
        (wanted,) = opaque.evaluate_typed([image, *given], kinds, self._node.attrs)
        found = np.matmul(np.matmul(rows, image), columns.T)
        return bool(np.abs(found - wanted).max() <= _TOLERANCE * np.abs(wanted).max())

    def rule(self, number: int, *, at_once: bool) -> Rule:
        """Return a rule to products by a matrix for each axis, or by one for both."""
        operands = [
            Var("x"),
            *(Var(name) for name, _ in zip("abc", self._node.inputs[1:], strict=False)),
        ]
        source = _part(Apply("opaque", gathered(operands), _literals(**self._node.attrs)))
        way = "at-once" if at_once else "by-axes"
        law = "Resize(x) = x·B, places in rows" if at_once else "Resize(x) = A·x·B'"
        return Rule(
            f"resize-{number}-{way}",
            f"{law}, by the same Resize of unit matrices",
            (source,),
            (self._at_once() if at_once else self._by_axes(),),
            file=_FILE,
        )

    def _by_axes(self) -> Term:
        (height, width), (new_height, new_width) = self._before, self._after
        rows = _reshaped(self._of_unit(0), (new_height, height))
        columns = _reshaped(self._of_unit(1), (width, new_width))
        return Apply("matmul", (rows, Apply("matmul", (Var("x"), columns))))

    def _at_once(self) -> Term:
        places, new_places = prod(self._before), prod(self._after)
        image = _unit(places, (places, 1, *self._before))
        matrix = self._resized(image, (places, 1, *self._before), (places, 1, *self._after))
        flat = _reshaped(Var("x"), (prod(self._shape[:2]), places))
        product = Apply("matmul", (flat, _reshaped(matrix, (places, new_places))))
        return _reshaped(product, self._new_shape)

    def _of_unit(self, axis: int) -> Term:
        """Return the unit matrix as an image, resized along an axis: of rows its columns are places."""
        size = self._before[axis]
        after = [size, size]
        after[axis] = self._after[axis]
        return self._resized(_unit(size, (1, 1, size, size)), (1, 1, size, size), (1, 1, *after))

    def _resized(self, image: Term, before: Sequence[int], after: Sequence[int]) -> Term:
        scales = (1.0, 1.0, *(new / old for new, old in zip(after[2:], before[2:], strict=True)))
        parts = tuple(
            Apply("fill", (), _literals(value=value, dtype=_DTYPE, shape=(1,))) for value in scales
        )
        operand = Apply("concat", parts, _literals(axis=0))
        return _part(Apply("opaque", (image, operand), _literals(**self._attrs(after))))

    def _attrs(self, after: Sequence[int]) -> dict[str, AttrValue]:
        """Return the attributes of the same operator that is told scales, and gives another size."""
        node = onnx.NodeProto()
        node.CopyFrom(self._original)
        node.input[:] = ["image", "", "scales"]
        kind = TensorType(_DTYPE, tuple(after))
        return encode(node, int(str(self._node.attrs["opset"])), [kind])

    def _matrix(self, axis: int) -> Array:
        """Return the matrix of an axis: what each place gives in a column."""
        size = self._before[axis]
        after = [size, size]
        after[axis] = self._after[axis]
        scales = np.array([1, 1, *(new / size for new in after)], np.float32)
        kinds = TensorType(_DTYPE, (1, 1, size, size)), TensorType(_DTYPE, (_RANK,))
        unit, attrs = np.eye(size)[None, None], self._attrs((1, 1, *after))
        (found,) = get_operator("opaque").evaluate_typed([unit, scales], kinds, attrs)
        matrix: Array = found[0, 0]
        return matrix if axis == 0 else matrix.T


def _unit(size: int, shape: Sequence[int]) -> Term:
    """Return a unit matrix in a shape: a filter with a one for each channel."""
    ones = Apply("fill", (), _literals(value=1.0, dtype=_DTYPE, shape=(size, 1, 1)))
    return _reshaped(Apply("merge", (ones,), _literals(count=size, groups=size)), shape)


def _reshaped(term: Term, shape: Sequence[int]) -> Term:
    return Apply("reshape", (term,), _literals(shape=tuple(shape)))


def _part(term: Apply) -> Apply:
    return Apply("part", (term,), _literals(index=0))


def _literals(**values: AttrValue) -> tuple[tuple[str, Literal], ...]:
    return tuple((name, Literal(value)) for name, value in values.items())
