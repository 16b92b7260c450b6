"""The rules of TASO's and TENSAT's files: operators and their codes, trees, and TENSAT's text.

``converted.txt`` and ``converted_multi.txt`` have one ``(sexpr)=>(sexpr)`` a line. In a file of two-output
rules, lines come in pairs: each rule is a line and the next one. Such a file is known by a pair whose
targets are the two halves of one split.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from relational_tensat.base.errors import nearest
from relational_tensat.rules.syntax import Atom, Form, Syntax, fail, read_forms

#: Where a tensor stands among the children of an operator in text.
TENSOR = "tensor"


@dataclass(frozen=True, slots=True)
class FileOperator:
    """One operator as the files write it.

    Attributes:
        name: in text.
        number: TASO's OpType in protocol buffers; None for what only text has.
        children: in text, in order: ``TENSOR``, or the name of an integer parameter.
    """

    name: str
    number: int | None
    children: tuple[str, ...]

    @property
    def params(self) -> tuple[str, ...]:
        """The names of the integer parameters."""
        return tuple(child for child in self.children if child != TENSOR)

    @property
    def arity(self) -> int:
        """The number of tensors."""
        return self.children.count(TENSOR)


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of a file applied to tensors; concatenations of any arity are ``concat``.

    Attributes:
        params: integers by name, in the order of ``FileOperator.params``.
    """

    op: str
    operands: tuple[Tree, ...]
    params: tuple[tuple[str, int], ...] = ()

    def param(self, name: str) -> int:
        """Return a parameter's value."""
        return dict(self.params)[name]


@dataclass(frozen=True, slots=True)
class Input:
    """A variable of a file's rule: any tensor."""

    name: str


Tree: TypeAlias = Node | Input


@dataclass(frozen=True, slots=True)
class FileRule:
    """One rule of a file, not yet in the project's language.

    Attributes:
        number: its place among the rules of the file, from 0.
        line: of its first line in a text file; 0 in protocol buffers.
        sources, targets: ``targets[i]`` may replace ``sources[i]``.
    """

    file: str
    number: int
    line: int
    sources: tuple[Node, ...]
    targets: tuple[Tree, ...]

    @property
    def place(self) -> str:
        """Where it stands, as messages and comments say it."""
        return rule_place(self.file, self.number, self.line)


def rule_place(file: str, number: int, line: int) -> str:
    """Return where a rule stands: ``FILE:LINE``, or ``FILE: rule N`` where there are no lines."""
    return f"{file}:{line}" if line else f"{file}: rule {number}"


def _concat(name: str, arity: int) -> FileOperator:
    # One OpType for all; in protocol buffers the number of tensors says which it is.
    return FileOperator(name, 12 if arity == 2 else None, ("axis", "ndim", *[TENSOR] * arity))


_WINDOW = ("kernel_h", "kernel_w", "stride_h", "stride_w", "pad", "act")
_CONV = ("stride_h", "stride_w", "pad", "act")
_ALL = (
    FileOperator("conv2d", 3, (*_CONV, TENSOR, TENSOR)),
    FileOperator("poolmax", 6, (TENSOR, *_WINDOW)),
    FileOperator("poolavg", 7, (TENSOR, *_WINDOW)),
    FileOperator("relu", 8, (TENSOR,)),
    FileOperator("sigmoid", 9, (TENSOR,)),
    FileOperator("tanh", 10, (TENSOR,)),
    _concat("concat", 2), _concat("concat3", 3), _concat("concat4", 4), _concat("concat5", 5),
    FileOperator("split", 13, ("axis", TENSOR)),
    FileOperator("split_0", None, (TENSOR,)),
    FileOperator("split_1", None, (TENSOR,)),
    FileOperator("ewadd", 16, (TENSOR, TENSOR)),
    FileOperator("ewmul", 17, (TENSOR, TENSOR)),
    FileOperator("matmul", 18, ("act", TENSOR, TENSOR)),
    FileOperator("enlarge", 20, (TENSOR, TENSOR)),
    FileOperator("merge", 21, (TENSOR, "count")),
)  # fmt: skip
BY_NAME = {operator.name: operator for operator in _ALL}
BY_NUMBER = {operator.number: operator for operator in _ALL if operator.number is not None}

#: TASO's keys of integer parameters in protocol buffers, by the names used here.
PARAM_KEYS = {
    "kernel_h": 4, "kernel_w": 5, "stride_h": 6, "stride_w": 7, "pad": 8, "act": 9, "ndim": 10,
    "axis": 11, "count": 14,
}  # fmt: skip

#: What the integers of ``act`` and ``pad`` mean.
ACTIVATIONS = ("none", "sigmoid", "relu", "tanh")
PADDINGS = ("same", "valid")

#: Operators in one term, at most: TASO's have up to six. More is a damaged file, or worse: shared
#: operators of protocol buffers could stand for a term that fills the memory.
MOST_OPERATORS = 100


def concat_name(arity: int) -> str:
    """Return the name in text of a concatenation of that many tensors."""
    return "concat" if arity == 2 else f"concat{arity}"


def node(operator: FileOperator, operands: tuple[Tree, ...], values: dict[str, int]) -> Node:
    """Return an operator applied; ``values`` has all its parameters, and may have others."""
    name = "concat" if operator.name.startswith("concat") else operator.name
    return Node(name, operands, tuple((param, values[param]) for param in operator.params))


def variables(tree: Tree) -> Iterator[str]:
    """Yield the names of the variables, in order, with repetitions."""
    if isinstance(tree, Input):
        yield tree.name
    else:
        for operand in tree.operands:
            yield from variables(operand)


def nodes(tree: Tree) -> Iterator[Node]:
    """Yield the operators in pre-order."""
    if isinstance(tree, Node):
        yield tree
        for operand in tree.operands:
            yield from nodes(operand)


def renamed(tree: Tree, names: dict[str, str]) -> Tree:
    """Return the tree with its variables renamed.

    Raises:
        KeyError: a variable has no new name.
    """
    return Input(names[tree.name]) if isinstance(tree, Input) else renamed_node(tree, names)


def renamed_node(node: Node, names: dict[str, str]) -> Node:
    """Return an operator with its variables renamed; see ``renamed``."""
    return Node(node.op, tuple(renamed(operand, names) for operand in node.operands), node.params)


def matching(first: Tree, second: Tree) -> dict[str, str] | None:
    """Return the renaming of variables, both ways unique, that makes two trees equal; or None."""
    names: dict[str, str] = {}

    def visit(a: Tree, b: Tree) -> bool:
        if isinstance(a, Input) or isinstance(b, Input):
            if not (isinstance(a, Input) and isinstance(b, Input)):
                return False
            return names.setdefault(a.name, b.name) == b.name
        same = (a.op, a.params, len(a.operands)) == (b.op, b.params, len(b.operands))
        return same and all(visit(x, y) for x, y in zip(a.operands, b.operands, strict=True))

    if not visit(first, second) or len(set(names.values())) != len(names):
        return None
    return names


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
