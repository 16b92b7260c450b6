"""A file's rule as an equation that people read."""

from __future__ import annotations

from relational_tensat.rules.taso.operators import ACTIVATIONS, FileRule, Input, Node, Tree

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
