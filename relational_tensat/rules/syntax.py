"""The written form of rules: s-expressions with line numbers.

``(…)`` is a list, ``[1 1]`` a tuple of constants, ``"…"`` a text on one line; everything else up to
a space or bracket is an atom. ``;`` and ``#`` begin a comment that ends with the line.
"""

from __future__ import annotations

import operator
import re
from typing import NamedTuple, NoReturn, TypeAlias

from relational_tensat.errors import RuleError

_TOKEN = re.compile(
    r"""[ \t\r\f\v]*(?:(?P<atom>[^\s()\[\]";#][^\s()\[\]";]*)|(?P<bracket>[()\[\]])|(?P<newline>\n)
    |(?P<comment>[;#][^\n]*)|"(?P<text>[^"\n]*)"|(?P<open>"))""",
    re.VERBOSE,
)
_CLOSING = {"(": ")", "[": "]"}


class Atom(NamedTuple):
    """A word, number, ``?variable`` or ``:attribute``; ``quoted`` if it stood in quotes."""

    text: str
    line: int
    quoted: bool = False

    @property
    def is_variable(self) -> bool:
        """Whether it is ``?name``."""
        return not self.quoted and self.text.startswith("?")

    @property
    def is_keyword(self) -> bool:
        """Whether it is ``:name``."""
        return not self.quoted and self.text.startswith(":")


class Form(NamedTuple):
    """A list in ``( )``, or in ``[ ]`` if ``square``."""

    items: tuple[Syntax, ...]
    line: int
    square: bool = False

    @property
    def head(self) -> str:
        """The first atom's text; ``""`` where there is none."""
        first = self.items[0] if self.items else None
        return first.text if isinstance(first, Atom) and not first.quoted else ""


Syntax: TypeAlias = Atom | Form


def fail(file: str, line: int, reason: str) -> NoReturn:
    """Raise the error for a place in a rule file.

    Raises:
        RuleError: always.
    """
    raise RuleError(f"{file}:{line}: {reason}")


def read_forms(text: str, file: str) -> tuple[Syntax, ...]:
    """Return the expressions of a file, in order.

    Raises:
        RuleError: a bracket or quotation mark has no partner; names its line.
    """
    stack: list[tuple[str, int, list[Syntax]]] = [("", 0, [])]
    line = 1
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "atom":
            stack[-1][2].append(Atom(token[kind], line))
        elif kind == "bracket":
            bracket = token[kind]
            if bracket in _CLOSING:
                stack.append((bracket, line, []))
            else:
                _close(stack, bracket, line, file)
        elif kind == "newline":
            line += 1
        elif kind == "text":
            stack[-1][2].append(Atom(token[kind], line, quoted=True))
        elif kind == "open":
            fail(file, line, 'the text that begins with " does not end on its line')
    if len(stack) > 1:
        opening, where, _ = stack[-1]
        fail(file, where, f"{opening!r} is never closed")
    return tuple(stack[0][2])


def _close(stack: list[tuple[str, int, list[Syntax]]], bracket: str, line: int, file: str) -> None:
    opening, where, items = stack[-1]
    if not opening:
        fail(file, line, f"{bracket!r} closes nothing")
    if _CLOSING[opening] != bracket:
        fail(file, line, f"{bracket!r} closes the {opening!r} of line {where}")
    stack.pop()
    stack[-1][2].append(Form(tuple(items), where, square=opening == "["))


def replace_atoms(syntax: Syntax, values: dict[str, Atom]) -> Syntax:
    """Return the expression with every atom that is a key replaced; places keep their lines.

    What has none of them is returned as it is.
    """
    if isinstance(syntax, Form):
        items = [replace_atoms(item, values) for item in syntax.items]
        if all(map(operator.is_, items, syntax.items)):
            return syntax
        return Form(tuple(items), syntax.line, syntax.square)
    found = None if syntax.quoted else values.get(syntax.text)
    return syntax if found is None else Atom(found.text, syntax.line, found.quoted)
