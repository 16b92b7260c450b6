"""A step of an explanation: one application of one rule, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.explain.laws import Law
from relational_tensat.explain.terms import Outputs


@dataclass(frozen=True, slots=True)
class Replaced:
    """A term and what takes its place, at one root of a rule.

    Attributes:
        output: which of the rule's sources (or targets) the term is.
        owner: its e-class.
        names: what the original graph calls the value; empty for a value that it does not have.
        near: for such a value, the nearest one of the original graph that is computed from it.
    """

    output: int
    before: int
    after: int
    owner: int
    names: tuple[str, ...]
    near: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One application of one rule to a graph of terms.

    Attributes:
        forward: whether the law is read from source to target, and not the other way.
        operands: per tensor variable of the rule, the term that stands for it.
        replaced: what the rule replaces: one term, or one for each of two sources.
        before, after: the whole graph.
    """

    law: Law
    forward: bool
    operands: tuple[int, ...]
    replaced: tuple[Replaced, ...]
    before: Outputs
    after: Outputs
