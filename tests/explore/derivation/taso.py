"""TASO's 139 rules, each with the condition that repairs it, as the reference facts have it in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from relational_tensat.rules.library import taso_rules
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, nodes_of
from relational_tensat.tensor import AttrValue

REFERENCE = Path(__file__).parents[4] / "shared" / "reference" / "taso_rules.json"


def conditional_taso_rules() -> list[Rule]:
    """Return the rules in TENSAT's order; those that are unsound as they stand have one condition more."""
    facts = json.loads(REFERENCE.read_text())
    return [
        _repaired(rule, fact["sound_only_if"])
        for rule, fact in zip(taso_rules(), facts, strict=True)
    ]


def _repaired(rule: Rule, words: str | None) -> Rule:
    if not rule.unsound:
        return rule
    assert words is not None, rule.name
    added = tuple(_conditions(rule, words))
    assert added, rule.name
    return replace(rule, unsound=False, conditions=(*rule.conditions, *added))


def _conditions(rule: Rule, words: str) -> Iterator[Expr]:
    convolutions = [node.children for source in rule.sources for node in _nodes(source, "conv")]
    pairs = [
        node.children
        for source in rule.sources
        for op in ("add", "mul")
        for node in _nodes(source, op)
    ]
    if words.startswith("groups==1"):
        for x, w in convolutions:
            yield _equal(_call("groups", x, w), Literal(1))
        if any(_nodes_of_target(rule, "enlarge")):
            (x, small), (_, large) = convolutions
            yield _stays_in_place(x, small, large)
    elif words.startswith("outC/groups equal"):
        first, second = (_filters_per_group(*pair) for pair in convolutions)
        yield _equal(first, second)
    elif words.startswith("ew operands same shape"):
        for a, b in pairs:
            yield _equal(_call("shape", a), _call("shape", b))
    elif words.startswith("ew operands equal on C,H,W"):
        for a, b in pairs:
            yield _equal(
                *(_call("drop", _call("shape", operand), Literal(1)) for operand in (a, b))
            )
    elif words.startswith("ew operands equal on the concat axis"):
        axis = dict(rule.sources[0].attrs)["axis"]
        for a, b in pairs:
            yield _equal(_call("dim", a, axis), _call("dim", b, axis))


def _stays_in_place(x: Term, small: Term, large: Term) -> Expr:
    """TASO stops at even kernels, which it cannot pad alike; here their windows have to agree."""
    sizes = (_call("spatial", term) for term in (x, small, large))
    settings: tuple[AttrValue, ...] = ((1, 1), "same", "same", ())
    return _call("enlargeable", *sizes, *(Literal(value) for value in settings))


def _filters_per_group(x: Term, w: Term) -> Expr:
    return _call("//", _call("dim", w, Literal(0)), _call("groups", x, w))


def _equal(left: Expr, right: Expr) -> Expr:
    return _call("=", left, right)


def _call(function: str, *args: Term | Expr) -> Call:
    assert not any(isinstance(arg, Apply) for arg in args)
    return Call(function, args)  # type: ignore[arg-type]


def _nodes(term: Term, op: str) -> Iterator[Apply]:
    return (node for node in nodes_of(term) if node.op == op)


def _nodes_of_target(rule: Rule, op: str) -> Iterator[Apply]:
    for target in rule.targets:
        yield from _nodes(target, op)
