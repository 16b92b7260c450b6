"""Smaller neighbours of a configuration: dimensions cut down, axes left out, plain element types.

What Hypothesis cannot reach by simpler decisions; every neighbour that still fails is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from relational_tensat.rules.instance import source_nodes, tensor_vars, typed_application
from relational_tensat.rules.model import Rule, Term, Var
from relational_tensat.rules.soundness.drawing import Configuration
from relational_tensat.tensor.types import Attrs, TensorType, ValueType

_PLAIN = "float32"

Types = tuple[TensorType, ...]


def trimmed(
    rule: Rule, configuration: Configuration, fails: Callable[[Configuration], bool]
) -> Configuration:
    """Return a configuration that fails and has no smaller neighbour that does."""
    smaller = True
    while smaller:
        smaller = False
        for types in _neighbours(configuration.var_types):
            candidate = _retyped(rule, configuration, types)
            if candidate is not None and fails(candidate):
                configuration, smaller = candidate, True
                break
    return configuration


def _neighbours(types: Types) -> Iterator[Types]:
    """Yield smaller operands, the boldest cuts first."""
    if any(kind.dtype != _PLAIN for kind in types):
        yield tuple(TensorType(_PLAIN, kind.shape) for kind in types)
    rank = max((kind.rank for kind in types), default=0)
    sizes = sorted({size for kind in types for size in kind.shape} - {1}, reverse=True)
    for axis in range(1, rank + 1):  # counted from the back, as broadcasting does
        yield tuple(_with_size(kind, axis, lambda _: None) for kind in types)
    for size in sizes:
        for less in range(1, size):
            yield tuple(_replaced(kind, size, less) for kind in types)
    for axis in range(1, rank + 1):
        yield tuple(_with_size(kind, axis, lambda _: 1) for kind in types)
    yield from _shorter(types)
    for once in _shorter(types):
        yield from _shorter(once)


def _shorter(types: Types) -> Iterator[Types]:
    """Yield operands of which one is shorter along one axis."""
    for place, kind in enumerate(types):
        for axis in range(1, kind.rank + 1):
            for less in range(1, kind.shape[-axis]):
                changed = replace(kind, shape=(*kind.shape[:-axis], less, *_tail(kind, axis)))
                yield (*types[:place], changed, *types[place + 1 :])


def _tail(kind: TensorType, axis: int) -> tuple[int, ...]:
    return kind.shape[len(kind.shape) - axis + 1 :]


def _with_size(kind: TensorType, axis: int, size: Callable[[int], int | None]) -> TensorType:
    """Return a type with another size on an axis counted from the back; None drops the axis."""
    if axis > kind.rank:
        return kind
    new = size(kind.shape[-axis])
    middle = () if new is None else (new,)
    return replace(kind, shape=(*kind.shape[: kind.rank - axis], *middle, *_tail(kind, axis)))


def _replaced(kind: TensorType, size: int, less: int) -> TensorType:
    return replace(kind, shape=tuple(less if each == size else each for each in kind.shape))


def _retyped(rule: Rule, configuration: Configuration, types: Types) -> Configuration | None:
    """Return a configuration with other operands and the same attributes, if these fit."""
    if types == configuration.var_types:
        return None
    given = dict(zip(tensor_vars(rule), types, strict=True))
    attrs = dict(zip(map(id, source_nodes(rule)), configuration.symbols, strict=True))
    symbols: dict[int, tuple[str, Attrs]] = {}

    def visit(term: Term) -> ValueType | None:
        if isinstance(term, Var):
            return given[term.name]
        operands = [visit(child) for child in term.children]
        op, old = attrs[id(term)]
        if any(kind is None for kind in operands):
            return None
        known = tuple(kind for kind in operands if kind is not None)
        typed = typed_application(op, tuple(old.items()), known)
        if typed is None:
            return None
        symbols[id(term)] = op, dict(typed[0])
        return typed[1]

    roots = [visit(source) for source in rule.sources]
    if any(root is None for root in roots):
        return None
    return Configuration(
        tuple(symbols[id(node)] for node in source_nodes(rule)),
        types,
        tuple(root for root in roots if root is not None),
    )
