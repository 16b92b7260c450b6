"""Rules from Python functions: a function's parameters are the variables, its return value is the rule."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, get_type_hints

from relational_tensat.base.errors import RuleError, UsageError
from relational_tensat.rules.builder.expressions import Choice, Tensor, Value, ValueLike, syntax_of
from relational_tensat.rules.expansion import DIRECTION, VARIANTS
from relational_tensat.rules.language import read_rule
from relational_tensat.rules.model import Rule
from relational_tensat.rules.syntax import Atom, Form, Syntax, mentions

Condition: TypeAlias = "Value | bool"
#: The kinds of a parameter, by its annotation.
_KINDS: dict[object, Callable[[str], object]] = {
    Tensor: Tensor.variable, Value: Value.variable, Choice: Choice,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Variant:
    """A clause of one variant of a rule, as ``variant`` makes it."""

    form: Form


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The parts of a rewriting; made by ``rewrite``. Each method returns another one.

    Attributes:
        clauses: those of the rule language.
    """

    clauses: tuple[Form, ...]

    def where(self, *conditions: Condition) -> Rewrite:
        """Add what the law needs: all must hold."""
        return self._with(_clause("where", *map(syntax_of, conditions)))

    def worth(self, *conditions: Condition) -> Rewrite:
        """Add where rewriting can pay: a hint to the search."""
        return self._with(_clause("worth", *map(syntax_of, conditions)))

    def variants(self, *variants: Variant) -> Rewrite:
        """Add what holds for one direction only, or with optional operands only."""
        return self._with(*(item.form for item in variants))

    def _with(self, *clauses: Form) -> Rewrite:
        return replace(self, clauses=(*self.clauses, *clauses))


@dataclass(frozen=True, slots=True)
class Sources:
    """The patterns that a rule looks for: one source, or two that share variables."""

    sources: tuple[Tensor, ...]

    def to(self, *targets: Tensor) -> Rewrite:
        """Say what may replace the sources: one target each."""
        pairs = (("from", self.sources), ("to", targets))
        return Rewrite(tuple(_clause(word, *_operands(word, terms)) for word, terms in pairs))

    def both_ways(self, other: Tensor) -> Rewrite:
        """Say what the source is equal to: a rule in each direction."""
        return Rewrite((_clause(DIRECTION, *_operands(DIRECTION, (*self.sources, other))),))


def rewrite(*sources: Tensor) -> Sources:
    """Begin a rewrite with what it looks for."""
    return Sources(sources)


def variant(
    word: str,
    name: str | None = None,
    *inner: Variant,
    law: str | None = None,
    where: Sequence[Condition] = (),
    worth: Sequence[Condition] = (),
    only: Mapping[str, Sequence[str]] | None = None,
) -> Variant:
    """Return what holds for one variant of a rule.

    Args:
        word: ``forwards``, ``backwards``, ``with`` or ``without`` (the optional operands).
        name: its name, instead of ``RULE[backwards]`` and the like.
        inner: variants of this variant: ``with``, of ``backwards``.
        law: its law, instead of the rule's.
        where, worth: conditions beside the rule's.
        only: the values that it takes of ``each``, by variable.
    """
    if word not in VARIANTS:
        raise UsageError(f"variant {word!r}, expected one of {', '.join(VARIANTS)}")
    items: list[Syntax] = [] if name is None else [Atom(name, 0)]
    if law is not None:
        items.append(_clause("law", _text(law)))
    items += [_choices("for", *choice) for choice in (only or {}).items()]
    for clause, conditions in (("where", where), ("worth", worth)):
        if conditions:
            items.append(_clause(clause, *map(syntax_of, conditions)))
    return Variant(_clause(word, *items, *(item.form for item in inner)))


def rule(
    *,
    law: str,
    name: str | None = None,
    each: Mapping[str, Sequence[str]] | None = None,
    symmetric: bool = False,
    unsound: bool = False,
    widened: bool = False,
    rulesets: Sequence[str] = (),
) -> Callable[[Callable[..., Rewrite]], tuple[Rule, ...]]:
    """Make a function the rules that it describes, one per direction, variant and choice.

    The function's parameters are the rule's variables: ``Tensor`` where operands stand, ``Value`` where
    attributes' values do, ``Choice`` for a word of ``each``. It returns a ``Rewrite``.

    Args:
        law: the equation in words or mathematics, one line.
        name: the rule's name, instead of the function's with hyphens.
        each: the values that each ``Choice`` takes.
        symmetric: the two sources may be exchanged.
        unsound: the law does not hold everywhere.
        widened: it holds where float16 is computed in float32.
        rulesets: names that a strategy may call the rules by.

    Raises:
        RuleError: the function returns no rule; names its file, line and reason.
    """

    def define(function: Callable[..., Rewrite]) -> tuple[Rule, ...]:
        code = function.__code__
        file, line = code.co_filename, code.co_firstlineno
        try:
            variables = _variables(function)
            definition = function(**variables)
            if not isinstance(definition, Rewrite):
                raise UsageError(f"returns {definition!r}, expected a Rewrite: rewrite(…).to(…)")
            for variable in variables:
                if not any(mentions(clause, f"?{variable}") for clause in definition.clauses):
                    raise UsageError(f"the parameter {variable!r} is never used")
            return build_rules(
                name or function.__name__.strip("_").replace("_", "-"),
                definition,
                law=law,
                each=each,
                symmetric=symmetric,
                unsound=unsound,
                widened=widened,
                rulesets=rulesets,
                file=file,
                line=line,
            )
        except UsageError as error:
            raise RuleError(f"{file}:{line}: {function.__name__}: {error}") from error

    return define


def build_rules(
    name: str,
    definition: Rewrite,
    *,
    law: str,
    each: Mapping[str, Sequence[str]] | None = None,
    symmetric: bool = False,
    unsound: bool = False,
    widened: bool = False,
    rulesets: Sequence[str] = (),
    file: str = "",
    line: int = 0,
) -> tuple[Rule, ...]:
    """Return the rules of a rewrite; the arguments are those of ``rule``, and where it is written.

    Raises:
        RuleError: the rewrite is no rule; names file, line and reason.
        UsageError: the law is no single line without quotation marks.
    """
    clauses = [_clause("law", _text(law))]
    clauses += [_choices("each", *choice) for choice in (each or {}).items()]
    clauses += definition.clauses
    flags = {"symmetric": symmetric, "unsound": unsound, "widened": widened}
    clauses += [_clause(flag) for flag, is_set in flags.items() if is_set]
    if rulesets:
        clauses.append(_clause("ruleset", *(Atom(word, 0) for word in rulesets)))
    form = Form([Atom("rule", line), Atom(name, line), *clauses], line)
    return tuple(read_rule(file, _at(form, line)))


def _variables(function: Callable[..., Rewrite]) -> dict[str, object]:
    """Return a variable for each parameter, of the kind that its annotation says."""
    try:
        hints = get_type_hints(function)
    except NameError as error:
        raise UsageError(f"an annotation cannot be read: {error}") from error
    variables = {}
    for parameter in inspect.signature(function).parameters:
        kind = hints.get(parameter)
        if kind not in _KINDS:
            raise UsageError(f"the parameter {parameter!r}, expected a Tensor, a Value or a Choice")
        variables[parameter] = _KINDS[kind](parameter)
    return variables


def _operands(word: str, terms: Sequence[object]) -> list[Syntax]:
    for term in terms:
        if not isinstance(term, Tensor):
            raise UsageError(f"{term!r} in ({word} …), expected a Tensor")
    return [syntax_of(term) for term in terms]


def _clause(word: str, *items: Syntax) -> Form:
    return Form([Atom(word, 0), *items], 0)


def _choices(word: str, variable: str, values: Sequence[str]) -> Form:
    return _clause(word, Atom(f"?{variable}", 0), *(Atom(value, 0) for value in values))


def _text(law: str) -> Atom:
    if '"' in law or "\n" in law:
        raise UsageError(f'the law {law!r}, expected one line without "')
    return Atom(law, 0, quoted=True)


def _at(form: Form, line: int) -> Form:
    """Return a form, all of it in one line."""
    items = [
        _at(item, line) if isinstance(item, Form) else Atom(item.text, line, item.quoted)
        for item in form.items
    ]
    return Form(items, line, form.square)


__all__ = [
    "Condition",
    "Rewrite",
    "Sources",
    "ValueLike",
    "Variant",
    "build_rules",
    "rewrite",
    "rule",
    "variant",
]
