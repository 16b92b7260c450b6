"""Smaller neighbours of a configuration: dimensions cut down, axes left out, plain element types.

What Hypothesis cannot reach by simpler decisions; every neighbour that still fails is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.drawing import Configuration
from relational_tensat.rules.soundness.retyping import Types, retyped
from relational_tensat.tensor.types import TensorType

_PLAIN = "float32"

#: Neighbours that are tried at most: with axes of thousands, hundreds of them take a minute.
MOST_TRIED = 300


def trimmed(
    rule: Rule, configuration: Configuration, fails: Callable[[Configuration], bool]
) -> Configuration:
    """Return a configuration that fails and has no smaller neighbour that does.

    After ``MOST_TRIED`` neighbours, the smallest so far.
    """
    tried, smaller = 0, True
    while smaller:
        smaller = False
        for types in _neighbours(configuration.var_types):
            candidate = (
                None if types == configuration.var_types else retyped(rule, configuration, types)
            )
            if candidate is None:
                continue
            tried += 1
            if tried > MOST_TRIED:
                return configuration
            if fails(candidate):
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
        for less in _less(size):
            yield tuple(_replaced(kind, size, less) for kind in types)
    for axis in range(1, rank + 1):
        yield tuple(_with_size(kind, axis, lambda _: 1) for kind in types)
    yield from _shorter(types)
    for once in _shorter(types):
        yield from _shorter(once)


def _less(size: int) -> list[int]:
    """Return smaller sizes: all of a small one, some of a large one."""
    cuts = {size // 2, size - size // 4, size - size // 16, size - 1}
    powers = {1 << bits for bits in range(size.bit_length())}
    return sorted(n for n in {*range(1, 9), *powers, *cuts} if 0 < n < size)


def _shorter(types: Types) -> Iterator[Types]:
    """Yield operands of which one is shorter along one axis."""
    for place, kind in enumerate(types):
        for axis in range(1, kind.rank + 1):
            for less in _less(kind.shape[-axis]):
                changed = replace(kind, shape=(*kind.shape[:-axis], less, *_tail(kind, axis)))
                yield (*types[:place], changed, *types[place + 1 :])


def _tail(kind: TensorType, axis: int) -> tuple[int, ...]:
    return kind.shape[len(kind.shape) - axis + 1 :]


def _with_size(kind: TensorType, axis: int, size: Callable[[int], int | None]) -> TensorType:
    """Return a type with another size on an axis counted from the back; None drops the axis."""
    if axis > kind.rank:
        return kind
    new_size = size(kind.shape[-axis])
    middle = () if new_size is None else (new_size,)
    return replace(kind, shape=(*kind.shape[: kind.rank - axis], *middle, *_tail(kind, axis)))


def _replaced(kind: TensorType, size: int, less: int) -> TensorType:
    return replace(kind, shape=tuple(less if length == size else length for length in kind.shape))
