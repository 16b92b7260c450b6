"""What can be read off the trees of a file's rule."""

from __future__ import annotations

from collections.abc import Iterator

from relational_tensat.rules.taso.operators import Input, Node, Tree


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
