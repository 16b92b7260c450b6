"""The written form of rules: s-expressions with line numbers. Nothing changes them once they are read.

``(…)`` is a list, ``[1 1]`` a tuple of constants, ``"…"`` a text on one line; everything else up to
a space or bracket is an atom. ``;`` and ``#`` begin a comment that ends with the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeAlias

from relational_tensat.base.errors import RuleError

#: An atom, a bracket, a line's end, a comment, a text, or a quotation mark that has no partner on its line.
_TOKEN = re.compile(r"""[^\s()\[\]";#][^\s()\[\]";]*|[()\[\]\n]|[;#].*|"[^"\n]*"|\"""")
#: A symbol that is read as itself: no variable, keyword, number or truth.
_WORD = re.compile(r"""(?!true$|false$)[A-Za-z_/][^\s()\[\]";]*""")
#: The first letters of tokens that are no atoms.
_MARKS = frozenset('()[]\n;#"')
_CLOSING = {"(": ")", "[": "]"}
#: Terms are read by functions that call themselves; no rule that a person writes comes near this.
_DEEPEST = 100


class Atom:
    """A word, number, ``?variable`` or ``:attribute``; ``quoted`` if it stood in quotes.

    Attributes:
        is_variable, is_keyword: whether it is ``?name``, or ``:name``.
    """

    __slots__ = ("is_keyword", "is_variable", "line", "quoted", "text")

    def __init__(self, text: str, line: int, quoted: bool = False) -> None:
        self.text = text
        self.line = line
        self.quoted = quoted
        first = "" if quoted else text[:1]
        self.is_variable = first == "?"
        self.is_keyword = first == ":"


class Form:
    """A list in ``( )``, or in ``[ ]`` if ``square``.

    Attributes:
        head: the first atom's text, or ``""``.
    """

    __slots__ = ("head", "items", "line", "square")

    def __init__(self, items: Sequence[Syntax], line: int, square: bool = False) -> None:
        self.items = items
        self.line = line
        self.square = square
        first = items[0] if items else None
        self.head = first.text if isinstance(first, Atom) and not first.quoted else ""


Syntax: TypeAlias = Atom | Form


def is_word(text: str) -> bool:
    """Return whether a text is an atom that stands for itself, without quotes."""
    return _WORD.fullmatch(text) is not None


def fail(file: str, line: int, reason: str) -> NoReturn:
    """Raise the error for a place in a rule file.

    Raises:
        RuleError: always.
    """
    raise RuleError(f"{file}:{line}: {reason}")


def read_forms(text: str, file: str) -> tuple[Syntax, ...]:
    """Return the expressions of a file, in order.

    Raises:
        RuleError: a bracket or quotation mark has no partner, or brackets nest too deeply; names its line.
    """
    outer: list[tuple[str, int, list[Syntax]]] = []  # each open bracket, and what stands before it
    items: list[Syntax] = []
    line = 1
    for token in _TOKEN.findall(text):
        first = token[0]
        if first not in _MARKS:
            items.append(Atom(token, line))
        elif first in "([":
            if len(outer) == _DEEPEST:
                fail(file, line, f"more than {_DEEPEST} brackets are open")
            outer.append((token, line, items))
            items = []
        elif first in ")]":
            if not outer:
                fail(file, line, f"{token!r} closes nothing")
            opening, opening_line, before = outer.pop()
            if _CLOSING[opening] != token:
                fail(file, line, f"{token!r} closes the {opening!r} of line {opening_line}")
            before.append(Form(items, opening_line, opening == "["))
            items = before
        elif first == "\n":
            line += 1
        elif first == '"':
            if token == first:
                fail(file, line, 'the text that begins with " does not end on its line')
            items.append(Atom(token[1:-1], line, quoted=True))
    if outer:
        opening, opening_line, _ = outer[-1]
        fail(file, opening_line, f"{opening!r} is never closed")
    return tuple(items)


def replace_atoms(form: Form, values: Mapping[str, Atom]) -> Form:
    """Return the list with every atom that is a key replaced; places keep their lines.

    A form without any of them is returned as it is.
    """
    items: list[Syntax] | None = None
    for index, item in enumerate(form.items):
        if isinstance(item, Form):
            new: Syntax = replace_atoms(item, values)
            if new is item:
                continue
        elif item.text in values and not item.quoted:
            value = values[item.text]
            new = Atom(value.text, item.line, value.quoted)
        else:
            continue
        if items is None:
            items = list(form.items)
        items[index] = new
    return form if items is None else Form(items, form.line, form.square)


def replace_forms(
    form: Form, head: str, parts: Callable[[Form], Sequence[Syntax]]
) -> Sequence[Syntax]:
    """Return what stands in a list's place when each list that begins with ``head`` gives way.

    Args:
        parts: the replacements of such a list; lists in it are looked through, too.
    """
    if form.head == head and not form.square:
        return [new for part in parts(form) for new in _replaced(part, head, parts)]
    if not has_form(form, head):
        return (form,)
    items = [new for item in form.items for new in _replaced(item, head, parts)]
    return (Form(items, form.line, form.square),)


def _replaced(
    syntax: Syntax, head: str, parts: Callable[[Form], Sequence[Syntax]]
) -> Sequence[Syntax]:
    return (syntax,) if isinstance(syntax, Atom) else replace_forms(syntax, head, parts)


def has_form(form: Form, head: str) -> bool:
    """Return whether a list, or one in it, begins with a word."""
    forms = [form]
    while forms:
        form = forms.pop()
        if form.head == head and not form.square:
            return True
        forms += [item for item in form.items if isinstance(item, Form)]
    return False


def mentions(syntax: Syntax, variable: str) -> bool:
    """Return whether a variable, written ``?name``, stands somewhere."""
    if isinstance(syntax, Atom):
        return syntax.text == variable and not syntax.quoted
    return any(mentions(item, variable) for item in syntax.items)
