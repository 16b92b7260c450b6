"""Terms by the slow way: every tree of operators over inputs, evaluated one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bench.synthesis.vocabulary import TermSetting
from relational_tensat.rules.model import Apply, Literal, Term, Var
from relational_tensat.rules.text import term_text
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


def groups(setting: TermSetting, size: int, values: Mapping[str, Any]) -> set[frozenset[str]]:
    """Return the trees of up to so many operators that are equal, as texts, where several are."""
    found: list[tuple[Any, set[str]]] = []
    for number in range(size + 1):
        for term in trees(setting, number):
            value = value_of(term, values)
            for other, texts in found:
                if np.allclose(value, other, rtol=0, atol=1e-9):
                    texts.add(term_text(term))
                    break
            else:
                found.append((value, {term_text(term)}))
    return {frozenset(texts) for _, texts in found if len(texts) > 1}
