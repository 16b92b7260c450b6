"""Ranks and sizes of a file's trees, as expressions of the rule language over their inputs.

Shape rules are TASO's: matmul repeats over equal leading dimensions, concat names the rank of its
operands, convolutions and what belongs to them have rank 4, and split undoes the outermost concat
along its axis (TASO keeps the cuts of each tensor; here they are found in the tree).
"""

from __future__ import annotations

from collections.abc import Sequence

from relational_tensat.rules.model import Call, Expr, Literal, Var
from relational_tensat.rules.taso.operators import Input, Node, Tree

_UNARY = frozenset({"relu", "sigmoid", "tanh"})
_PAIRWISE = frozenset({"ewadd", "ewmul"})
_POOLS = frozenset({"poolmax", "poolavg"})
#: Operators whose tensors, operands and result alike, have rank 4.
IMAGES = frozenset({"conv2d", "enlarge", "merge"}) | _POOLS
_IMAGE_RANK = 4


def rank(tree: Tree) -> Expr:
    """Return the rank of a tensor: a literal where the operators say it."""
    if isinstance(tree, Input):
        return Call("rank", (Var(tree.name),))
    if tree.op in IMAGES:
        return Literal(_IMAGE_RANK)
    if tree.op == "concat":
        return Literal(tree.param("ndim"))
    if tree.op in _PAIRWISE:
        return _joined("max", [rank(operand) for operand in tree.operands])
    return rank(tree.operands[0])


def batch(tree: Tree) -> Expr | None:
    """Return all dimensions but the last two; None where they are unknown."""
    if isinstance(tree, Input):
        return Call("batch", (Var(tree.name),))
    if tree.op in _UNARY or tree.op == "matmul":
        return batch(tree.operands[0])
    if tree.op == "concat" and tree.param("axis") >= tree.param("ndim") - 2:
        return batch(tree.operands[0])
    if tree.op in _PAIRWISE:
        parts = [batch(part) for part in tree.operands]
        values = [part for part in parts if part is not None]
        return _joined("broadcast", values) if len(values) == len(parts) else None
    if tree.op == "conv2d":
        sizes = [dim(tree, axis) for axis in (0, 1)]
        values = [part for part in sizes if part is not None]
        return Call("list", tuple(values)) if len(values) == len(sizes) else None
    return None


def dim(tree: Tree, axis: int) -> Expr | None:
    """Return the size along an axis; None where it is unknown."""
    if isinstance(tree, Input):
        return Call("dim", (Var(tree.name), Literal(axis)))
    if tree.op == "concat" and axis == tree.param("axis"):
        return _sum([dim(operand, axis) for operand in tree.operands])
    if tree.op in _PAIRWISE:
        first, *others = (dim(operand, axis) for operand in tree.operands)
        return first if all(operand == first for operand in others) else None
    origin = _origin(tree, axis)
    return None if origin is None else dim(*origin)


def cut(tree: Tree, axis: int) -> tuple[Expr, Expr] | None:
    """Return the two sizes into which a split along an axis cuts; None where they are unknown."""
    if isinstance(tree, Input):
        return None
    if tree.op == "concat" and axis == tree.param("axis"):
        *firsts, last = (dim(operand, axis) for operand in tree.operands)
        before = _sum(firsts)
        return None if before is None or last is None else (before, last)
    if tree.op in _PAIRWISE:
        cuts = {pair for pair in (cut(operand, axis) for operand in tree.operands) if pair}
        return cuts.pop() if len(cuts) == 1 else None
    origin = _origin(tree, axis)
    return None if origin is None else cut(*origin)


def _origin(tree: Node, axis: int) -> tuple[Tree, int] | None:
    """Return the operand, and its axis, from which an operator's result has an axis unchanged."""
    first = tree.operands[0]
    if tree.op in _UNARY or tree.op == "concat":
        return first, axis
    if tree.op == "enlarge" or tree.op in _POOLS:  # kernels and images change, no more
        return (first, axis) if axis < 2 else None
    if tree.op == "merge":  # gives a filter more channels
        return None if axis == 1 else (first, axis)
    if tree.op == "conv2d":
        return (tree.operands[axis], 0) if axis < 2 else None
    if tree.op == "matmul":
        ranks = {
            operand_rank
            for operand_rank in map(_known_rank, tree.operands)
            if operand_rank is not None
        }
        if len(ranks) == 1:
            return tree.operands[1] if axis == ranks.pop() - 1 else first, axis
    return None


def _known_rank(tree: Tree) -> int | None:
    size = rank(tree)
    return size.value if isinstance(size, Literal) and isinstance(size.value, int) else None


def _sum(sizes: Sequence[Expr | None]) -> Expr | None:
    terms = [size for size in sizes if size is not None]
    if len(terms) < len(sizes):
        return None
    return terms[0] if len(terms) == 1 else Call("+", tuple(terms))


def _joined(function: str, parts: Sequence[Expr]) -> Expr:
    """Return a function of two values of which it gives back any that are equal."""
    first, second = parts
    return first if first == second else Call(function, (first, second))
