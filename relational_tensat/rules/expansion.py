"""One written rule as the rules that it stands for: ``<=>``, ``optional`` and ``each`` put in.

A rule is written once where several differ in little. The result is written plainly: clauses that
``language`` reads, with ``from`` and ``to``. The variants of a rule, in their order:

- ``forwards`` and ``backwards``, of a rule with ``(<=> LEFT RIGHT)``;
- ``without`` and ``with``, of a rule that has ``(optional X … :else Y …)`` somewhere: the Y stand there
  without the optional operands, the X with them; all of a rule are there, or none is.

A clause named as one of these, ``(backwards NAME CLAUSE …)``, holds for that variant only: it names it
and has clauses of its own. A ``law`` takes the place of the rule's, ``where`` and ``worth`` are added,
``(for ?f VALUE …)`` takes only these of the values of ``each ?f``; a single one is left out of the name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relational_tensat.base.errors import nearest
from relational_tensat.rules.syntax import (
    Atom,
    Form,
    Syntax,
    fail,
    has_form,
    mentions,
    replace_atoms,
    replace_forms,
)

DIRECTION, OPTIONAL = "<=>", "optional"
_DIRECTIONS = ("forwards", "backwards")
_PRESENCES = ("without", "with")
VARIANTS = (*_DIRECTIONS, *_PRESENCES)
#: Variants that a name says nothing of.
_PLAIN = frozenset({"forwards", "without"})
#: Rules that one written rule may stand for, by ``each``.
_MOST_CHOICES = 1_000
_CUMULATIVE = ("where", "worth", "ruleset")
#: Clauses that may stand in a variant's.
_OF_VARIANTS = ("law", "for", *_CUMULATIVE, "unsound", *VARIANTS)


@dataclass(frozen=True, slots=True)
class PlainRule:
    """A rule with one direction, a fixed number of operands, and no ``each``.

    Attributes:
        variant: the words of the variant that it is; empty if the rule has none.
    """

    name: str
    clauses: Sequence[Syntax]
    line: int
    variant: str


def expand_rule(file: str, form: Form) -> Iterator[PlainRule]:
    """Yield the rules that ``(rule NAME CLAUSE …)`` stands for, in their order.

    Raises:
        RuleError: a variant's clause, ``<=>``, ``optional`` or ``each`` is malformed.
    """
    name, clauses = form.items[1], form.items[2:]
    assert isinstance(name, Atom)
    axes = []
    if any(isinstance(clause, Form) and clause.head == DIRECTION for clause in clauses):
        axes.append(_DIRECTIONS)
    if has_form(form, OPTIONAL):
        axes.append(_PRESENCES)
    if not axes and not any(isinstance(c, Form) and c.head in (*VARIANTS, "for") for c in clauses):
        yield from _choices(file, form, name.text, clauses, "")
        return
    _check_lets(file, form)
    for words in itertools.product(*axes):
        variant = _Variant(file, form, frozenset(words), tuple(itertools.chain(*axes)))
        yield from variant.rules()


#: The words of a variant's clause and of those that it stands in: the more, the more it is about.
Path: TypeAlias = "frozenset[str]"


@dataclass
class _Variant:
    """One variant of a rule.

    Attributes:
        words: which it is, e.g. ``{backwards, with}``.
        known: the words of all variants of the rule.
        names: each path's name of it.
        clauses: the clauses that hold for it, with the path that each stands on.
    """

    file: str
    form: Form
    words: frozenset[str]
    known: tuple[str, ...]
    names: dict[Path, str] = field(default_factory=dict)
    clauses: list[tuple[Path, Syntax]] = field(default_factory=list)

    def rules(self) -> Iterator[PlainRule]:
        """Yield the variant's rules, one per choice of ``each``."""
        name = self.form.items[1]
        assert isinstance(name, Atom)
        self.names[frozenset()] = name.text
        self._gather(self.form.items[2:], frozenset())
        path = max(self.names, key=lambda path: (len(path), "backwards" in path))
        clauses = self._pruned(self._merged())
        suffix = [word for word in VARIANTS if word in self.words - path - _PLAIN]
        spoken = " ".join(word for word in VARIANTS if word in self.words)
        yield from _choices(self.file, self.form, self.names[path], clauses, spoken, suffix)

    def _gather(self, clauses: Sequence[Syntax], path: Path) -> None:
        """Collect the clauses that hold for this variant; optional parts are put in or left out."""
        for clause in clauses:
            if path and (not isinstance(clause, Form) or clause.head not in _OF_VARIANTS):
                label = clause.head if isinstance(clause, Form) else clause.text
                words = f"({' '.join(sorted(path))} …)"
                hint = nearest(label, _OF_VARIANTS)
                fail(self.file, clause.line, f"{label!r} cannot stand in {words}{hint}")
            if not isinstance(clause, Form) or clause.head not in VARIANTS:
                self.clauses += [(path, plain) for plain in self._spliced(clause)]
            elif clause.head not in self.known:
                counterpart = DIRECTION if clause.head in _DIRECTIONS else OPTIONAL
                fail(
                    self.file, clause.line, f"({clause.head} …) in a rule without ({counterpart} …)"
                )
            elif clause.head in self.words:
                self._enter(clause, path | {clause.head})

    def _enter(self, clause: Form, path: Path) -> None:
        first, rest = clause.items[1:2], clause.items[1:]
        if first and isinstance(first[0], Atom):
            if path in self.names:
                words = " ".join(sorted(path))
                fail(self.file, clause.line, f"a second name of the variant {words}")
            self.names[path] = first[0].text
            rest = clause.items[2:]
        self._gather(rest, path)

    def _spliced(self, syntax: Syntax) -> Sequence[Syntax]:
        if isinstance(syntax, Atom):
            return (syntax,)
        present = "with" in self.words
        return replace_forms(syntax, OPTIONAL, lambda form: self._part(form, present))

    def _part(self, form: Form, present: bool) -> Sequence[Syntax]:
        """Return what ``(optional X … :else Y …)`` stands for."""
        items = list(form.items[1:])
        places = [
            i for i, item in enumerate(items) if isinstance(item, Atom) and item.text == ":else"
        ]
        if not items or len(places) > 1:
            fail(self.file, form.line, "expected (optional X … :else Y …)")
        end = places[0] if places else len(items)
        return items[:end] if present else items[end + 1 :]

    def _merged(self) -> list[Syntax]:
        """Return the clauses as a plain rule has them: ``from`` and ``to``, one law, one ``where``."""
        laws = [(len(path), clause) for path, clause in self.clauses if _head(clause) == "law"]
        deepest = max((depth for depth, _ in laws), default=0)
        merged: list[Syntax] = [clause for depth, clause in laws if depth == deepest]
        for word in _CUMULATIVE:
            merged += self._joined(word)
        for _, clause in self.clauses:
            if isinstance(clause, Form) and clause.head == DIRECTION:
                merged += self._sides(clause)
            elif _head(clause) not in ("law", *_CUMULATIVE):
                merged.append(clause)
        return merged

    def _joined(self, word: str) -> list[Syntax]:
        """Return what the rule and its variant say under one word as one clause, the rule's first.

        A second one of the same place is kept apart: its reader says so.
        """
        of_paths: dict[Path, list[Form]] = {}
        for path, clause in self.clauses:
            if isinstance(clause, Form) and clause.head == word:
                of_paths.setdefault(path, []).append(clause)
        firsts = [of_paths[path][0] for path in sorted(of_paths, key=len)]
        items = [item for first in firsts for item in first.items[1:]]
        joined: list[Syntax] = []
        if items:
            joined.append(Form([firsts[0].items[0], *items], firsts[0].line))
        for clauses in of_paths.values():
            joined += clauses[1:]
        return joined

    def _sides(self, clause: Form) -> list[Syntax]:
        """Return ``from`` and ``to`` of ``(<=> LEFT RIGHT)`` in this direction."""
        sides = clause.items[1:]
        if len(sides) != 2:
            fail(self.file, clause.line, "expected (<=> LEFT RIGHT)")
        source, target = reversed(sides) if "backwards" in self.words else sides
        line = clause.line
        return [Form([Atom("from", line), source], line), Form([Atom("to", line), target], line)]

    def _pruned(self, clauses: list[Syntax]) -> list[Syntax]:
        """Leave out each ``let`` that only other variants use."""
        for clause in reversed(clauses):
            name = _let_name(clause)
            if name and not any(mentions(other, name) for other in clauses if other is not clause):
                clauses = [other for other in clauses if other is not clause]
        return clauses


def _head(clause: Syntax) -> str:
    return clause.head if isinstance(clause, Form) else ""


def _of(clauses: Sequence[Syntax], head: str) -> list[Form]:
    return [clause for clause in clauses if isinstance(clause, Form) and clause.head == head]


def _let_name(clause: Syntax) -> str:
    """Return the name that a clause gives, as it is written; empty if it gives none."""
    if not isinstance(clause, Form) or clause.head != "let" or len(clause.items) != 3:
        return ""
    name = clause.items[1]
    return name.text if isinstance(name, Atom) else ""


def _check_lets(file: str, form: Form) -> None:
    """Refuse names that no variant uses."""
    for clause in form.items:
        name = _let_name(clause)
        if name and not any(mentions(other, name) for other in form.items if other is not clause):
            fail(file, form.line, f"the name {name} is never used")


def _choices(
    file: str,
    form: Form,
    name: str,
    clauses: Sequence[Syntax],
    variant: str,
    suffix: Sequence[str] = (),
) -> Iterator[PlainRule]:
    """Yield a rule once per choice of values of its ``each`` clauses, with the choice in its name."""
    values_of: dict[str, list[Atom]] = {}
    for clause in _of(clauses, "each"):
        variable, values = _words(file, clause)
        values_of[variable] = values_of.get(variable, []) + values
    single_valued = set()
    for clause in _of(clauses, "for"):
        variable, values = _words(file, clause)
        _check_choices(file, clause, variable, values, values_of.get(variable, []))
        values_of[variable] = values
        if len(values) == 1:
            single_valued.add(variable)
    plain_clauses = [clause for clause in clauses if _head(clause) not in ("each", "for")]
    plain = Form(plain_clauses, form.line)
    for variable in values_of:
        if not mentions(plain, variable):
            fail(file, form.line, f"each {variable} is never used")
    count = math.prod(map(len, values_of.values()))
    if count > _MOST_CHOICES:
        fail(file, form.line, f"{name} stands for {count} rules, expected {_MOST_CHOICES} at most")
    for choice in itertools.product(*values_of.values()):
        value_of = dict(zip(values_of, choice, strict=True))
        words = [atom.text for variable, atom in value_of.items() if variable not in single_valued]
        words += suffix
        full = f"{name}[{','.join(words)}]" if words else name
        items = replace_atoms(plain, value_of).items if value_of else plain_clauses
        yield PlainRule(full, items, form.line, variant)


def _words(file: str, clause: Form) -> tuple[str, list[Atom]]:
    """Return the variable and the values of ``(each ?name VALUE …)`` or ``(for …)``."""
    name = clause.items[1] if len(clause.items) > 1 else None
    values = clause.items[2:]
    if not isinstance(name, Atom) or not name.is_variable or not values:
        fail(file, clause.line, f"expected ({clause.head} ?name VALUE …)")
    atoms = [value for value in values if isinstance(value, Atom)]
    if len(atoms) != len(values):
        fail(file, clause.line, f"{clause.head} {name.text} takes words and numbers only")
    return name.text, atoms


def _check_choices(
    file: str, clause: Form, variable: str, values: Sequence[Atom], choices: Sequence[Atom]
) -> None:
    texts = [atom.text for atom in choices]
    for value in values:
        if value.text not in texts:
            hint = nearest(value.text, texts)
            fail(file, clause.line, f"{value.text!r} is no value of (each {variable} …){hint}")
