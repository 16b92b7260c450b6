"""Terms by the slow way: every tree of operators over inputs, evaluated one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from bench.synthesis.vocabulary import TermSetting
from relational_tensat.rules.model import Apply, Literal, Term, Var
from relational_tensat.tensor.operators import get_operator


def trees(setting: TermSetting, size: int) -> Iterator[Term]:
    """Yield every tree of exactly so many operators; shared ones count as often as they stand there."""
    if size == 0:
        yield from map(Var, setting.inputs)
        return
    for choice in setting.choices:
        for sizes in itertools.product(range(size), repeat=choice.arity):
            if sum(sizes) == size - 1:
                operands = [list(trees(setting, part)) for part in sizes]
                for children in itertools.product(*operands):
                    for attrs in choice.attrs or ((),):
                        items = tuple((name, Literal(value)) for name, value in attrs)
                        yield Apply(choice.op, children, items)


def value_of(term: Term, values: Mapping[str, Any]) -> Any:
    """Evaluate a tree."""
    if isinstance(term, Var):
        return values[term.name]
    operands = [value_of(child, values) for child in term.children]
    attrs = {name: value.value for name, value in term.attrs if isinstance(value, Literal)}
    operator = get_operator(term.op)
    return operator.evaluate(operands, operator.normalize(attrs))
