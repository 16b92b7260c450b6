"""Rules as plain data: patterns, targets, conditions, a name, a law; and their text.

Rules are hashed by the text of their terms, which is that of ``dataclass``, written out: its own also looks
for cycles, which takes twice as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TypeAlias

from relational_tensat.base.lazy import once_per_object
from relational_tensat.rules.syntax import is_word
from relational_tensat.tensor.types import AttrValue

#: The condition that no type tells: whether a value is known before inference.
KNOWN = "known"


@dataclass(frozen=True, slots=True)
class Var:
    """A variable, written ``?name``. Where it stands says what it is bound to:

    as an operand, an e-class (a tensor); as an attribute's value, the attribute's value.
    """

    name: str

    def __repr__(self) -> str:
        return f"Var(name={self.name!r})"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of an attribute or of an expression."""

    value: AttrValue

    def __repr__(self) -> str:
        return f"Literal(value={self.value!r})"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of attribute values and of the types of tensors, e.g. ``(dim ?a 0)``."""

    function: str
    args: tuple[Expr, ...]

    def __repr__(self) -> str:
        return f"Call(function={self.function!r}, args={self.args!r})"


Expr: TypeAlias = Var | Literal | Call


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator applied to terms.

    In a source, attribute values are literals or variables; in a target, any expression.
    Attributes that are not written have their default, in sources and targets alike.
    """

    op: str
    children: tuple[Term, ...]
    attrs: tuple[tuple[str, Expr], ...] = ()

    def __repr__(self) -> str:
        return f"Apply(op={self.op!r}, children={self.children!r}, attrs={self.attrs!r})"


Term: TypeAlias = Var | Apply


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewrite rule.

    ``targets[i]`` may replace ``sources[i]`` wherever all sources match with one assignment of the
    variables and every condition holds. Equal sub-terms of the targets are one node.

    Attributes:
        law: the equation in words or mathematics, one line.
        conditions: the conditions of the law; without one of them it would be wrong somewhere.
        worth: conditions that keep the search to places where rewriting can pay; the law holds without.
        symmetric: the sources may be exchanged without changing the results' values, so each
            unordered pair of matches is rewritten once.
        unsound: the file says that the law does not hold everywhere; rejected unless allowed.
        rulesets: names that a backend or a strategy may call it by, beside its family's.
        file, line: where it was written.
        widened: runtimes compute float16 in float32 for its operators; it is true of these numbers.
    """

    name: str
    law: str
    sources: tuple[Apply, ...]
    targets: tuple[Term, ...]
    conditions: tuple[Expr, ...] = ()
    worth: tuple[Expr, ...] = ()
    symmetric: bool = False
    unsound: bool = False
    rulesets: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    widened: bool = False

    @property
    def is_multi(self) -> bool:
        """Whether the rule has several sources (TENSAT section 4: multi-pattern rules)."""
        return len(self.sources) > 1

    @property
    def known(self) -> tuple[str, ...]:
        """The variables that depend on weights only wherever the search uses the rule: ``(known ?x)``."""
        return tuple(
            arg.name
            for condition in self.worth
            if isinstance(condition, Call) and condition.function == KNOWN
            for arg in condition.args
            if isinstance(arg, Var)
        )

    @property
    def family(self) -> str:
        """The name of the file that the rule stands in, without its ending: ``matmul``."""
        return PurePath(self.file).stem

    @property
    def everywhere(self) -> Rule:
        """The rule wherever its law holds, whether or not rewriting is worth it there."""
        return replace(self, worth=()) if self.worth else self


def nodes_of(term: Term) -> Iterator[Apply]:
    """Yield the operators of a term, parents first, equal ones as often as they occur."""
    if isinstance(term, Apply):
        yield term
        for child in term.children:
            yield from nodes_of(child)


def variables_of(*terms: Term) -> tuple[str, ...]:
    """Return the tensor variables of terms, by first occurrence.

    >>> variables_of(Apply("add", (Var("y"), Apply("relu", (Var("x"),)))))
    ('y', 'x')
    """
    return tuple(dict.fromkeys(name for term in terms for name in _leaves(term)))


def _leaves(term: Term) -> Iterator[str]:
    if isinstance(term, Var):
        yield term.name
    else:
        for child in term.children:
            yield from _leaves(child)


def parts_of(expr: Expr) -> Iterator[Expr]:
    """Yield an expression, and what its functions are given."""
    yield expr
    if isinstance(expr, Call):
        for arg in expr.args:
            yield from parts_of(arg)


@once_per_object
def rule_text(rule: Rule) -> str:
    """Return a rule in the rule language; ``each`` and ``let`` are put in."""
    clauses = [f'(law "{rule.law}")']
    if rule.rulesets:
        clauses.append(_clause("ruleset", [" ".join(rule.rulesets)]))
    clauses += [f"({flag})" for flag in ("symmetric", "unsound", "widened") if getattr(rule, flag)]
    clauses.append(_clause("from", [term_text(source) for source in rule.sources]))
    clauses.append(_clause("to", [term_text(target) for target in rule.targets]))
    for word, conditions in (("where", rule.conditions), ("worth", rule.worth)):
        if conditions:
            clauses.append(_clause(word, [expr_text(condition) for condition in conditions]))
    place = f"; {rule.file}:{rule.line}\n" if rule.file else ""
    return f"{place}(rule {rule.name}\n  " + "\n  ".join(clauses) + ")"


def term_text(term: Term) -> str:
    """Return a term in the rule language: ``(matmul ?a (transpose ?b :perm [1 0]))``."""
    if isinstance(term, Var):
        return f"?{term.name}"
    operands = [term_text(child) for child in term.children]
    attrs = [f":{name} {expr_text(value)}" for name, value in term.attrs]
    return f"({' '.join([term.op, *operands, *attrs])})"


def expr_text(expr: Expr) -> str:
    """Return a condition or a computed value in the rule language: ``(= (rank ?a) 2)``."""
    if isinstance(expr, Var):
        return f"?{expr.name}"
    if isinstance(expr, Literal):
        return constant_text(expr.value)
    return f"({' '.join([expr.function, *(expr_text(arg) for arg in expr.args)])})"


def constant_text(value: AttrValue) -> str:
    """Return a constant in the rule language: ``true``, ``[1 1]``, ``1.5``, ``same``, ``"a text"``."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{' '.join(constant_text(item) for item in value)}]"
    if isinstance(value, str) and not is_word(value):
        return f'"{value}"'
    return str(value)


def _clause(word: str, items: list[str]) -> str:
    indent = "\n" + " " * (len(word) + 4)
    return f"({word} {indent.join(items)})"
