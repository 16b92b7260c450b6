"""What the operators of the files take, as conditions: TASO's shape rules where ours are wider.

A TASO matmul has equal leading dimensions on both sides, and a concat names the rank of its tensors.
What follows from conditions that are already there is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from relational_tensat.base.errors import RuleError
from relational_tensat.rules.model import Call, Expr, Literal, Var
from relational_tensat.rules.taso.operators import FileRule, Input, Node
from relational_tensat.rules.taso.sizes import IMAGES, batch, rank
from relational_tensat.rules.taso.trees import nodes

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
