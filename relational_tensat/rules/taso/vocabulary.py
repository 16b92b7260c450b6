"""The conditions that may repair a rule: comparisons of what its own operators have sizes of."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from relational_tensat.rules.instance import source_nodes, tensor_vars
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, Var
from relational_tensat.tensor.operators import get_operator

_RANKS = (1, 2, 3, 4)
#: Channels of an operand and filters of weights: the axes of images that rules mention.
_IMAGE_AXES = (0, 1)


def vocabulary(rule: Rule) -> tuple[Expr, ...]:
    """Return conditions on a rule's operands, those that are quickest to understand first.

    Groups of a convolution are 1; two tensors are equal in shape, along an axis that the rule
    names, along all others, or in image size; two convolutions have as many groups, or as many
    outputs per group; a kernel surrounded by zeros keeps its place; a tensor has a rank.
    """
    conditions = dict.fromkeys(_conditions(rule))
    return tuple(condition for condition in conditions if condition not in rule.conditions)


def _conditions(rule: Rule) -> Iterator[Expr]:
    tensors = [Var(name) for name in tensor_vars(rule)]
    convolutions = [node for node in source_nodes(rule) if node.op == "conv"]
    axes = _axes(rule)
    operands = [c.children[:2] for c in convolutions if all(isinstance(v, Var) for v in c.children)]
    groups = list(dict.fromkeys(_call("groups", *pair) for pair in operands))
    for group in groups:
        yield _call("=", group, Literal(1))
    roles = _roles(convolutions)
    pairs = [(a, b) for a, b in itertools.combinations(tensors, 2) if roles.get(a) == roles.get(b)]
    for a, b in pairs:
        for axis in axes:
            yield _call("=", _dim(a, axis), _dim(b, axis))
    for a, b in pairs:
        if convolutions:
            yield _equal("spatial", a, b)
        for axis in axes:
            yield _call("same-except", a, b, Literal(axis))
        yield _equal("shape", a, b)
        yield _equal("rank", a, b)
    for group_a, group_b in itertools.combinations(groups, 2):
        yield _call("=", group_a, group_b)
        yield _call("=", _outputs_per_group(group_a), _outputs_per_group(group_b))
    yield from _enlarged_in_place(rule, convolutions)
    for tensor in tensors:
        for rank in _RANKS:
            yield _call("=", _call("rank", tensor), Literal(rank))


def _roles(convolutions: list[Apply]) -> dict[Term, frozenset[int]]:
    """Return as which operands of convolutions a tensor occurs: images are not compared with weights."""
    roles: dict[Term, frozenset[int]] = {}
    for node in convolutions:
        for place, child in enumerate(node.children):
            roles[child] = roles.get(child, frozenset()) | {place}
    return roles


def _axes(rule: Rule) -> tuple[int, ...]:
    """Return the axes that operators of the rule name, and those of images where it has images."""
    axes: set[int] = set()
    for term in (*rule.sources, *rule.targets):
        for node in _nodes(term):
            axis = dict(node.attrs).get("axis")
            if isinstance(axis, Literal) and isinstance(axis.value, int):
                axes.add(axis.value)
            if node.op == "conv":
                axes.update(_IMAGE_AXES)
    return tuple(sorted(axes))


def _enlarged_in_place(rule: Rule, convolutions: list[Apply]) -> Iterator[Expr]:
    for node in (node for target in rule.targets for node in _nodes(target)):
        if node.op != "enlarge":
            continue
        small, large = node.children
        for conv in convolutions:
            x, w = conv.children[:2]
            stride, pad, dilation = (_attr(conv, key) for key in ("stride", "pad", "dilation"))
            if stride is None or pad is None or dilation is None:
                continue
            if w in (small, large) and all(isinstance(v, Var) for v in (x, small, large)):
                sizes = (_call("spatial", tensor) for tensor in (x, small, large))
                yield Call("enlargeable", (*sizes, stride, pad, pad, dilation))


def _attr(node: Apply, name: str) -> Expr | None:
    default = {attr.name: attr.default for attr in get_operator(node.op).attrs}[name]
    return dict(node.attrs).get(name, Literal(default))


def _outputs_per_group(groups: Call) -> Expr:
    _, w = groups.args
    return _call("//", _dim(w, 0), groups)


def _dim(tensor: Expr, axis: int) -> Expr:
    return _call("dim", tensor, Literal(axis))


def _equal(function: str, a: Expr, b: Expr) -> Expr:
    return _call("=", _call(function, a), _call(function, b))


def _call(function: str, *args: Term | Expr) -> Call:
    # Terms stand where functions of types want them: variables, which are expressions, too.
    return Call(function, args)  # type: ignore[arg-type]


def _nodes(term: Term) -> Iterator[Apply]:
    if isinstance(term, Apply):
        yield term
        for child in term.children:
            yield from _nodes(child)
