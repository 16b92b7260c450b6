"""Candidates: pairs of terms with one fingerprint, each law once.

A pair is a GROUP BY over the fingerprints: a term and the first of its class. Written with variables by
first occurrence, a law stands once, whichever inputs it was met on. What says nothing is left out: both
sides alike but for the order of variables, a difference of a thing with itself, a side with inputs that
the other does not have.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from bench.synthesis.pair_terms import is_degenerate, is_permutative, renamed
from bench.synthesis.store import SynthesisStore, attrs_of
from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.instance import typed_application
from relational_tensat.rules.model import (
    Apply,
    Literal,
    Term,
    Var,
    nodes_of,
    term_text,
    variables_of,
)
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrItems, TensorType, ValueType

#: What an operator costs on operands of some types, in microseconds.
OperatorCost: TypeAlias = Callable[[str, tuple[ValueType, ...], ValueType, AttrItems], float]
#: The sources, the targets, and both with variables by first occurrence, as text; microseconds that it
#: saves on the setting's types; its window; the largest share of a model that it saves, and all, as JSON.
Law: TypeAlias = tuple[str, str, str, float, int, float, str]
_NO_CLASS = -1


class TermReaderOfTables:
    """The terms of a setting, written out of its tables."""

    def __init__(self, store: SynthesisStore, setting: int) -> None:
        self._inputs = store.inputs(setting)
        self._symbols = {
            number: (op, attrs_of(attrs), part)
            for number, op, attrs, part in store.rows("symbols", setting=setting)
        }
        self._classes = {row[0]: row[1:] for row in store.rows("classes", setting=setting)}
        self._terms: dict[tuple[int, ...], Term] = {}

    def term(self, symbol: int, c0: int, c1: int, c2: int) -> Term:
        """Return an operator over the first terms of classes; attributes with their defaults left out."""
        key = symbol, c0, c1, c2
        if key not in self._terms:
            op, items, part = self._symbols[symbol]
            children = tuple(self.term(*self._classes[c]) for c in (c0, c1, c2) if c != _NO_CLASS)
            self._terms[key] = (
                Var(op) if op in self._inputs else _applied(op, children, items, part)
            )
        return self._terms[key]


def _applied(op: str, children: tuple[Term, ...], items: AttrItems, part: int | None) -> Apply:
    defaults = {attr.name: attr.default for attr in get_operator(op).attrs}
    attrs = tuple((name, Literal(value)) for name, value in items if defaults[name] != value)
    term = Apply(op, children, attrs)
    return term if part is None else Apply("part", (term,), (("index", Literal(part)),))


def laws_of_one(
    store: SynthesisStore, setting: int, cost_us: OperatorCost, *, windows_only: bool, cheaper: bool
) -> Iterator[Law]:
    """Yield the laws of one source of a setting.

    Args:
        windows_only: the sources are windows of models.
        cheaper: the target must cost less than the source on the setting's types; else no more.
    """
    reader, inputs = TermReaderOfTables(store, setting), store.inputs(setting)
    uses = _uses(store, setting)
    for *row, window in store.rows("pairs", setting=setting, windows_only=windows_only):
        source, target = reader.term(*row[:4]), reader.term(*row[4:])
        if not (says_something(source, target) or says_something(target, source)):
            continue
        before_us, after_us = (term_cost_us(term, inputs, cost_us) for term in (source, target))
        if before_us < after_us and window < 0:
            source, target, before_us, after_us = target, source, after_us, before_us
        if before_us < after_us or (cheaper and before_us == after_us):
            continue
        if says_something(source, target):
            law = " = ".join(map(term_text, renamed(source, target)))
            shares = _shares(uses.get(window, ()), target, tuple(inputs), cost_us)
            told = json.dumps({name: round(share, 5) for name, share in shares.items()})
            promise = before_us - after_us, window, max(shares.values(), default=0.0), told
            yield term_text(source), term_text(target), law, *promise


def add_laws(store: SynthesisStore, setting: int, laws: Iterable[Law]) -> None:
    """Write candidates, each law once."""
    known = {law for (law,) in store.rows("laws")}
    found = []
    for source, target, law, saved_us, *promise in laws:
        if law not in known:
            known.add(law)
            row = len(known), setting, source, target, law, saved_us, *promise
            found.append((*row, "waiting", ""))
    if found:
        store.append("candidate", zip(*found, strict=True))


def _uses(store: SynthesisStore, setting: int) -> dict[int, list[tuple[Any, ...]]]:
    uses: dict[int, list[tuple[Any, ...]]] = {}
    for window, *use in store.rows("uses", setting=setting):
        uses.setdefault(window, []).append(tuple(use))
    return uses


def _shares(
    uses: Iterable[tuple[Any, ...]], target: Term, names: tuple[str, ...], cost_us: OperatorCost
) -> dict[str, float]:
    """Return by model which share of its cost goes where a window becomes the target."""
    shares: dict[str, float] = {}
    for model, window_us, whole_us, text in uses:
        kinds = [TensorType(dtype, tuple(shape)) for dtype, shape in json.loads(text)]
        after_us = term_cost_us(target, dict(zip(names, kinds, strict=True)), cost_us)
        if after_us < window_us:
            shares[model] = shares.get(model, 0.0) + (window_us - after_us) / whole_us
    return shares


def says_something(source: Term, target: Term) -> bool:
    """Whether a pair may be a rule."""
    if isinstance(source, Var) or source.op == "fill" or not variables_of(source):
        return False
    if not set(variables_of(target)) <= set(variables_of(source)):
        return False
    if is_degenerate(source) or is_degenerate(target):
        return False
    return not is_permutative(source, target)


def term_cost_us(term: Term, inputs: Mapping[str, TensorType], cost_us: OperatorCost) -> float:
    """Return what a term's operators cost, each different one once; infinity where operands misfit."""
    return cost_us_of((term,), inputs, cost_us)


def cost_us_of(
    terms: Sequence[Term], inputs: Mapping[str, TensorType], cost_us: OperatorCost
) -> float:
    """As ``term_cost_us``, of terms that are computed together."""
    types: dict[Term, ValueType] = {}

    def kind(part: Term) -> ValueType:
        if isinstance(part, Var):
            return inputs[part.name]
        if part not in types:
            operands = tuple(kind(child) for child in part.children)
            typed = typed_application(part.op, _literals(part), operands)
            if typed is None:
                raise ShapeError(f"{part.op} does not take {', '.join(map(str, operands))}")
            types[part] = typed[1]
        return types[part]

    try:
        for term in terms:
            kind(term)
    except ShapeError:
        return math.inf
    total = 0.0
    for node in dict.fromkeys(node for term in terms for node in nodes_of(term)):
        if node.op not in ("fill", "part"):
            operands = tuple(kind(child) for child in node.children)
            total += cost_us(node.op, operands, types[node], _literals(node))
    return total


def _literals(node: Apply) -> AttrItems:
    declared = get_operator(node.op).attrs
    given = {name: value.value for name, value in node.attrs if isinstance(value, Literal)}
    return tuple((attr.name, given.get(attr.name, attr.default)) for attr in declared)
