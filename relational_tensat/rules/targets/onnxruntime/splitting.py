"""Pieces of a value along an axis: onnxruntime makes one Split of slices and gathers that are all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relational_tensat.tensor import Graph, Node, TensorType, build_graph
from relational_tensat.tensor.operators.attributes import int_of, ints_of


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a node takes of its operand along an axis, from ``start`` up to below ``end``.

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
