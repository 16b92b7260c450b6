"""TENSAT's ``converted.txt`` and ``converted_multi.txt``: one ``(sexpr)=>(sexpr)`` a line.

In a file of two-output rules, lines come in pairs: each rule is a line and the next one. Such a file
is known by a pair whose targets are the two halves of one split.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from relational_tensat.base.errors import nearest
from relational_tensat.rules.syntax import Atom, Form, Syntax, fail, read_forms
from relational_tensat.rules.taso.operators import (
    BY_NAME,
    TENSOR,
    FileRule,
    Input,
    Node,
    Tree,
    node,
)

_ARROW = "=>"
_INTEGER = re.compile(r"[+-]?\d+")
_EXPECTED = "expected (source)=>(target) on a line of its own"


def read_sexprs(text: str, file: str) -> list[FileRule]:
    """Return the rules of TENSAT's text files.

    Args:
        file: how messages and rules name the file.

    Raises:
        RuleError: the text is malformed; names the line.
    """
    forms = read_forms(text.replace(_ARROW, f" {_ARROW} "), file)
    lines = list(_lines(forms, file))
    rules = [FileRule(file, i, at, (a,), (b,)) for i, (at, a, b) in enumerate(lines)]
    if not any(_are_halves(a, b) for a, b in itertools.pairwise(rules)):
        return rules
    if len(rules) % 2:
        fail(
            file, rules[-1].line,
            f"the last of {len(rules)} lines, an odd number; expected pairs of lines, as rules of"
            " this file have two outputs",
        )  # fmt: skip
    return [_pair(a, b) for a, b in zip(rules[::2], rules[1::2], strict=True)]


def _are_halves(first: FileRule, second: FileRule) -> bool:
    """Whether two lines replace two tensors by the two halves of one split."""
    a, b = first.targets[0], second.targets[0]
    return (
        isinstance(a, Node)
        and isinstance(b, Node)
        and (a.op, b.op) == ("split_0", "split_1")
        and a.operands == b.operands
    )


def _pair(first: FileRule, second: FileRule) -> FileRule:
    sources, targets = first.sources + second.sources, first.targets + second.targets
    return FileRule(first.file, first.number // 2, first.line, sources, targets)


def _lines(forms: tuple[Syntax, ...], file: str) -> Iterator[tuple[int, Node, Tree]]:
    for at in range(0, len(forms), 3):
        source, line = forms[at], forms[at].line
        rule = forms[at : at + 3]
        if len(rule) < 3 or not _is_arrow(rule[1]) or {form.line for form in rule} != {line}:
            fail(file, line, _EXPECTED)
        source_tree = _tree(source, file)
        if isinstance(source_tree, Input):
            fail(
                file, line, f"the source is the variable ?{source_tree.name}, expected an operator"
            )
        yield line, source_tree, _tree(rule[2], file)


def _is_arrow(syntax: Syntax) -> bool:
    return isinstance(syntax, Atom) and syntax.text == _ARROW


def _tree(syntax: Syntax, file: str) -> Tree:
    if isinstance(syntax, Atom):
        if not syntax.is_variable or len(syntax.text) == 1:
            fail(file, syntax.line, f"{syntax.text!r} where a tensor is expected: ?name or (…)")
        return Input(syntax.text[1:])
    operator = BY_NAME.get(syntax.head)
    if operator is None:
        fail(
            file, syntax.line,
            f"unknown operator {syntax.head!r}, expected one of {', '.join(BY_NAME)}"
            f"{nearest(syntax.head, BY_NAME)}",
        )  # fmt: skip
    children = syntax.items[1:]
    if len(children) != len(operator.children):
        fail(
            file, syntax.line,
            f"{operator.name} has {len(children)} children, expected {len(operator.children)}:"
            f" {' '.join(operator.children)}",
        )  # fmt: skip
    operands: list[Tree] = []
    values: dict[str, int] = {}
    for name, child in zip(operator.children, children, strict=True):
        if name == TENSOR:
            operands.append(_tree(child, file))
        else:
            values[name] = _integer(child, f"{operator.name}'s {name}", file)
    return node(operator, tuple(operands), values)


def _integer(syntax: Syntax, label: str, file: str) -> int:
    if isinstance(syntax, Form) or not _INTEGER.fullmatch(syntax.text):
        syntax_text = "a list" if isinstance(syntax, Form) else repr(syntax.text)
        fail(file, syntax.line, f"{label} is {syntax_text}, expected an integer")
    return int(syntax.text)
