"""TASO's unsound rules with the conditions that repair them, as the reference words them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from relational_tensat.rules.instance import source_nodes
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Var


def repaired(rule: Rule, wording: str) -> Rule:
    """Return a rule with the condition that the reference words so."""
    added = tuple(_conditions(rule, wording))
    assert added, wording
    return replace(rule, conditions=(*rule.conditions, *added))


def _conditions(rule: Rule, wording: str) -> Iterator[Expr]:
    match wording:
        case "groups==1 on every matched conv":
            for conv in _nodes(rule, "conv"):
                yield _equal(Call("groups", conv.children), Literal(1))
        case "outC/groups equal for the two convs":
            first, second = map(_filters_per_group, _nodes(rule, "conv"))
            yield _equal(first, second)
        case "ew operands equal on the concat axis":
            for concat in _nodes(rule, "concat"):
                yield from _equal_along(concat)
        case "ew operands same shape":
            for sides in _pairs(rule):
                yield _equal(*(Call("shape", (side,)) for side in sides))
        case "ew operands equal on C,H,W (batch may broadcast)":
            for sides in _pairs(rule):
                yield _equal(*(Call("drop", (Call("shape", (s,)), Literal(1))) for s in sides))
                yield _equal(*(Call("rank", (side,)) for side in sides))
        case "windows in place":
            (x, small), (_, large) = (conv.children for conv in _nodes(rule, "conv"))
            attrs = dict(_nodes(rule, "conv")[0].attrs)
            sizes = [Call("spatial", (operand,)) for operand in (x, small, large)]
            window = [attrs["stride"], attrs["pad"], attrs["pad"], Literal(())]
            yield Call("enlargeable", (*sizes, *window))  # type: ignore[arg-type]
        case _:
            raise AssertionError(f"unknown wording {wording!r}")


def _nodes(rule: Rule, *ops: str) -> list[Apply]:
    return [node for node in source_nodes(rule) if node.op in ops]


def _pairs(rule: Rule) -> Iterator[Sequence[Var]]:
    """Yield the operands of every sum or product of variables."""
    for node in _nodes(rule, "add", "mul"):
        variables = [child for child in node.children if isinstance(child, Var)]
        if len(variables) == 2:
            yield variables


def _equal_along(concat: Apply) -> Iterator[Expr]:
    axis = dict(concat.attrs)["axis"]
    for node in concat.children:
        if isinstance(node, Apply) and node.op in ("add", "mul"):
            yield _equal(*(Call("dim", (child, axis)) for child in _variables(node)))


def _variables(node: Apply) -> list[Var]:
    """The operands of a node, or what stands for their sizes: the first variable inside."""
    return [child if isinstance(child, Var) else _variables(child)[0] for child in node.children]


def _filters_per_group(conv: Apply) -> Expr:
    return Call("//", (Call("dim", (conv.children[1], Literal(0))), Call("groups", conv.children)))  # type: ignore[arg-type]


def _equal(left: Expr, right: Expr) -> Expr:
    return Call("=", (left, right))
