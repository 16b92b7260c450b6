"""From a file's rule to the project's: law, operators, sizes of splits, TASO's shape rules."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from bench.taso.domains import cut, dim, domain_conditions
from bench.taso.file_rules import (
    ACTIVATIONS,
    PADDINGS,
    FileRule,
    Input,
    Node,
    Tree,
    matching,
    renamed,
    renamed_node,
    variables,
)
from relational_tensat.base.errors import RuleError
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, Var

_INFIX = {"ewadd": " + ", "ewmul": " × ", "matmul": "·"}


def law(rule: FileRule) -> str:
    """Return the equations of a rule: ``(a·b)·c = a·(b·c)``, ``;`` between those of two outputs."""
    pairs = zip(rule.sources, rule.targets, strict=True)
    return "; ".join(f"{_text(source)} = {_text(target)}" for source, target in pairs)


def _text(tree: Tree) -> str:
    if isinstance(tree, Input):
        return tree.name
    operands = [_text(operand) for operand in tree.operands]
    match tree.op:
        case "ewadd" | "ewmul" | "matmul":
            infix = _INFIX[tree.op].join(_operand(operand) for operand in tree.operands)
            act = _activation(tree)
            return f"{act}({infix})" if act else infix
        case "concat":
            return f"[{', '.join(operands)}]{tree.param('axis')}"
        case "conv2d":
            return f"{_activation(tree)} {_conv(tree)}({', '.join(operands)})".lstrip()
        case "poolmax" | "poolavg":
            window = f"{tree.param('kernel_h')}x{tree.param('kernel_w')}"
            return f"{_activation(tree)} {tree.op}{window}({operands[0]})".lstrip()
        case "split_0" | "split_1":
            return f"part {tree.op[-1]} of {_operand(tree.operands[0])}"
        case "merge":
            return f"merge({operands[0]}, {tree.param('count')})"
    return f"{tree.op}({', '.join(operands)})"


def _operand(tree: Tree) -> str:
    """Return a tree as an operand of an infix operator; a split is written as what it cuts."""
    if isinstance(tree, Node) and tree.op == "split":
        return _operand(tree.operands[0])
    infix = isinstance(tree, Node) and tree.op in _INFIX and not _activation(tree)
    return f"({_text(tree)})" if infix else _text(tree)


def _activation(node: Node) -> str:
    code = dict(node.params).get("act", 0)
    return ACTIVATIONS[code] if code else ""


def _conv(node: Node) -> str:
    stride = node.param("stride_h"), node.param("stride_w")
    text = {(1, 1): "", (2, 2): "/2"}.get(stride, f"/{stride[0]}x{stride[1]}")
    return f"conv{text}"


_SAME_OPERATOR = {"ewadd": "add", "ewmul": "mul", "poolmax": "max_pool", "poolavg": "avg_pool"}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")


def translate(rule: FileRule) -> Rule:
    """Return a file's rule in the project's language, its operators' own conditions in ``where``.

    It is named after the file and its place there, from 0: ``converted-017``. Variables become a,
    b, … in the order of the sources.

    Raises:
        RuleError: a part has no meaning here: an unknown code, a split of unknown sizes,
            a merge that is no convolution's weight; names the rule.
    """
    renamed_rule = _with_short_names(rule)
    translator = _Translator(renamed_rule)
    sources = tuple(translator.source(tree) for tree in renamed_rule.sources)
    targets = tuple(translator.term(tree) for tree in renamed_rule.targets)
    return Rule(
        name=f"{_stem(rule.file)}-{rule.number:03d}",
        law=law(renamed_rule),
        sources=sources,
        targets=targets,
        conditions=domain_conditions(renamed_rule),
        symmetric=_is_symmetric(renamed_rule),
        file=rule.file,
        line=rule.line,
    )


def _stem(file: str) -> str:
    return _NOT_IN_NAMES.sub("-", Path(file).stem).strip("-._") or "rule"


def _with_short_names(rule: FileRule) -> FileRule:
    names = dict.fromkeys(name for source in rule.sources for name in variables(source))
    letters = string.ascii_lowercase
    short = {
        name: letters[i % 26] + (str(i // 26) if i >= 26 else "") for i, name in enumerate(names)
    }
    sources = tuple(renamed_node(source, short) for source in rule.sources)
    targets = tuple(renamed(target, short) for target in rule.targets)
    return replace(rule, sources=sources, targets=targets)


def _is_symmetric(rule: FileRule) -> bool:
    """Whether exchanging the two sources gives the same rule, up to the order within concats."""
    if len(rule.sources) != 2:
        return False
    exchange = matching(*rule.sources)
    if exchange is None or any(exchange.get(exchange[a], a) != a for a in exchange):
        return False
    permutation = exchange | {b: a for a, b in exchange.items()}
    first, second = rule.targets
    return _unordered(renamed(first, permutation)) == _unordered(second)


def _unordered(tree: Tree) -> Tree:
    """Return the tree with the operands of concats in one order, and no word on which half it is."""
    if isinstance(tree, Input):
        return tree
    operands = tuple(_unordered(operand) for operand in tree.operands)
    if tree.op == "concat":
        operands = tuple(sorted(operands, key=repr))
    return Node("half" if tree.op in ("split_0", "split_1") else tree.op, operands, tree.params)


class _Translator:
    """Turns the trees of one rule into terms."""

    def __init__(self, rule: FileRule) -> None:
        self._rule = rule
        self._special: dict[str, Callable[[Node], Term]] = {
            "conv2d": self._conv, "poolmax": self._pool, "poolavg": self._pool,
            "split_0": self._half, "split_1": self._half, "split": self._whole,
            "merge": self._merge,
        }  # fmt: skip

    def source(self, tree: Node) -> Apply:
        """Return a source; splits and merges do not say there what they need to say."""
        term = self.term(tree)
        if not isinstance(term, Apply) or _has_computed(term):
            self._fail(
                "split or merge in a source, where the file does not say the sizes or groups;"
                " expected them in targets only"
            )
        return term

    def term(self, tree: Tree) -> Term:
        """Return a tree in the project's language."""
        if isinstance(tree, Input):
            return Var(tree.name)
        special = self._special.get(tree.op)
        if special is not None:
            return special(tree)
        attrs: tuple[tuple[str, Expr], ...] = ()
        if tree.op == "concat":
            attrs = (("axis", Literal(tree.param("axis"))),)
        elif tree.op == "matmul":
            attrs = self._act(tree)
        return Apply(_SAME_OPERATOR.get(tree.op, tree.op), self._terms(tree), attrs)

    def _conv(self, tree: Node) -> Term:
        x, w = tree.operands
        children = self._terms(Node(tree.op, (x,)))
        if isinstance(w, Node) and w.op == "merge":
            count, groups = Literal(w.param("count")), self._groups(x, w.operands[0])
            merged = (("count", count), ("groups", groups))
            children += (Apply("merge", (self.term(w.operands[0]),), merged),)
        else:
            children += (self.term(w),)
        return Apply("conv", children, self._window(tree))

    def _pool(self, tree: Node) -> Term:
        kernel = ("kernel", self._pair(tree, "kernel_h", "kernel_w"))
        name = _SAME_OPERATOR[tree.op]
        return Apply(name, self._terms(tree), (kernel, *self._window(tree)))

    def _half(self, tree: Node) -> Term:
        (split,) = tree.operands
        if not isinstance(split, Node) or split.op != "split":
            self._fail(f"{tree.op} of something else, expected {tree.op} of a split")
        axis = split.param("axis")
        sizes = cut(split.operands[0], axis)
        if sizes is None:
            self._fail(f"split along axis {axis}, where no concat of that axis says the sizes")
        attrs = (("axis", Literal(axis)), ("sizes", Call("list", sizes)))
        split_term = Apply("split", self._terms(split), attrs)
        return Apply("part", (split_term,), (("index", Literal(int(tree.op[-1]))),))

    def _whole(self, tree: Node) -> NoReturn:
        self._fail("a split by itself, expected split_0 or split_1 of it")

    def _merge(self, tree: Node) -> NoReturn:
        self._fail("merge by itself, expected a conv2d's weight: the groups are those of conv2d")

    def _terms(self, tree: Node) -> tuple[Term, ...]:
        return tuple(self.term(operand) for operand in tree.operands)

    def _groups(self, x: Tree, w: Tree) -> Expr:
        if isinstance(x, Input) and isinstance(w, Input):
            return Call("groups", (Var(x.name), Var(w.name)))
        channels, per_group = dim(x, 1), dim(w, 1)
        if channels is None or per_group is None:
            self._fail("a merge of unknown groups, expected inputs")
        return Call("//", (channels, per_group))

    def _window(self, tree: Node) -> tuple[tuple[str, Expr], ...]:
        stride = ("stride", self._pair(tree, "stride_h", "stride_w"))
        pad = Literal(self._code(tree, "pad", PADDINGS))
        return (stride, ("pad", pad), *self._act(tree))

    def _act(self, tree: Node) -> tuple[tuple[str, Expr], ...]:
        name = self._code(tree, "act", ACTIVATIONS)
        return () if name == "none" else (("act", Literal(name)),)

    def _code(self, tree: Node, param: str, names: tuple[str, ...]) -> str:
        code = tree.param(param)
        if not 0 <= code < len(names):
            choices = ", ".join(f"{i} ({name})" for i, name in enumerate(names))
            self._fail(f"{tree.op} with {param} {code}, expected one of {choices}")
        return names[code]

    def _pair(self, tree: Node, *params: str) -> Literal:
        return Literal(tuple(tree.param(param) for param in params))

    def _fail(self, reason: str) -> NoReturn:
        raise RuleError(f"{self._rule.place}: {reason}")


def _has_computed(term: Term) -> bool:
    if isinstance(term, Var):
        return False
    computed = any(isinstance(value, Call) for _, value in term.attrs)
    return computed or any(map(_has_computed, term.children))
