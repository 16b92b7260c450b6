"""The shape rules of TASO's operators, and what they require of a rule's operands.

Shape rules are TASO's: matmul repeats over equal leading dimensions, concat names the rank of its
operands, convolutions and what belongs to them have rank 4, and split undoes the outermost concat
along its axis (TASO keeps the cuts of each tensor; here they are found in the tree). What they ask for
and ours do not becomes a condition, unless it follows from those that are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from bench.taso.file_rules import FileRule, Input, Node, Tree, nodes
from relational_tensat.base.errors import RuleError
from relational_tensat.rules.model import Call, Expr, Literal, Var

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


_Pair: TypeAlias = tuple[Expr, Expr]


def domain_conditions(rule: FileRule) -> tuple[Expr, ...]:
    """Return what the operators of both sides require of their operands.

    Raises:
        RuleError: a concat names another rank than its operand has, or the leading dimensions of
            a matmul's operand are unknown.
    """
    equalities = _Equalities()
    for node in (node for source in rule.sources for node in nodes(source)):
        for operand in node.operands:
            if node.op in IMAGES and isinstance(operand, Input):
                equalities.join(rank(operand), Literal(4))  # which our operators require, too
    requirements = list(_requirements(rule))
    of_inputs = [pair for pair in requirements if not any(map(_is_compound, pair))]
    conditions = [pair for pair in of_inputs if equalities.join(*pair)]
    for a, b in requirements:
        pair = equalities.simplified(a), equalities.simplified(b)
        if equalities.join(*pair):
            conditions.append(pair)
    return tuple(Call("=", pair) for pair in conditions)


def _requirements(rule: FileRule) -> Iterator[_Pair]:
    for tree in (*rule.sources, *rule.targets):
        for node in nodes(tree):
            if node.op == "matmul":
                first, second = (batch(operand) for operand in node.operands)
                if first is None or second is None:
                    raise RuleError(
                        f"{rule.place}: a matmul of a tensor whose leading dimensions are unknown,"
                        " expected one of inputs, products, sums and joined rows or columns"
                    )
                yield first, second
            elif node.op == "concat":
                concat_rank = Literal(node.param("ndim"))
                if not 0 <= node.param("axis") < node.param("ndim"):
                    raise RuleError(
                        f"{rule.place}: concat along axis {node.param('axis')} of tensors of rank"
                        f" {concat_rank.value}, expected an axis from 0 below the rank"
                    )
                yield from (
                    (_rank(operand, concat_rank, rule), concat_rank) for operand in node.operands
                )


def _rank(operand: Node | Input, concat_rank: Literal, rule: FileRule) -> Expr:
    operand_rank = rank(operand)
    if isinstance(operand_rank, Literal) and operand_rank != concat_rank:
        raise RuleError(
            f"{rule.place}: concat of tensors of rank {concat_rank.value} has one of rank"
            f" {operand_rank.value}"
        )
    return operand_rank


def _is_compound(expr: Expr) -> bool:
    return isinstance(expr, Call) and not all(isinstance(arg, Var) for arg in expr.args)


class _Equalities:
    """Which expressions are known to be equal: a union-find."""

    def __init__(self) -> None:
        self._parent: dict[Expr, Expr] = {}

    def join(self, a: Expr, b: Expr) -> bool:
        """Note that two expressions are equal; return whether that was unknown before."""
        first, second = self._find(a), self._find(b)
        if first == second:
            return False
        self._parent[first] = second
        return True

    def simplified(self, expr: Expr) -> Expr:
        """Return an expression without the joining of sizes that are equal anyway."""
        if isinstance(expr, Call) and expr.function in ("max", "broadcast"):
            first, second = map(self.simplified, expr.args)
            equal = self._find(first) == self._find(second)
            return first if equal else Call(expr.function, (first, second))
        return expr

    def _find(self, expr: Expr) -> Expr:
        while expr in self._parent:
            expr = self._parent[expr]
        return expr
