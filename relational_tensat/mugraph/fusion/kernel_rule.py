"""The rule that lets a kernel stand for operators of a model.

Its target means what its source says, operator by operator, so the rule is true by itself; that the
kernel computes this is what the verification of its μGraph shows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.egraph.loading import CHILD_COLUMNS, single_number
from relational_tensat.mugraph.fusion.candidates import Candidate
from relational_tensat.rules.model import Apply, Call, Expr, Literal, Rule, Term, Var
from relational_tensat.rules.targets.fused_chain import body_of
from relational_tensat.rules.targets.fused_kernel import FusedPart
from relational_tensat.rules.targets.target import FUSED_FILE
from relational_tensat.tensor import Attrs, Graph, TensorType, Weight
from relational_tensat.tensor.operators import get_operator


def kernel_rule(candidate: Candidate, key: str, name: str) -> Rule:
    """Return the rule: where these operators are on operands of these types, the kernel may be.

    Args:
        candidate: the operators.
        key: of the kernel.
        name: of the rule.

    Raises:
        InputError: it has a number that no rule can name.
    """
    terms: dict[str, Term] = {read: Var(f"x{place}") for place, read in enumerate(candidate.inputs)}
    numbers = {read: place for place, read in enumerate(candidate.inputs)}
    parts: list[FusedPart] = []
    for node in candidate.nodes:
        for read in node.inputs:
            if read not in terms:  # a number: the kernel has it
                parts.append(FusedPart("fill", (), _fill(candidate.graph, read)))
                numbers[read] = len(candidate.inputs) + len(parts) - 1
                terms[read] = _number_term(candidate.graph, read)
        parts.append(FusedPart(node.op, tuple(numbers[read] for read in node.inputs), node.attrs))
        whole = len(candidate.inputs) + len(parts) - 1
        children = tuple(terms[read] for read in node.inputs)
        term = Apply(node.op, children, _literals(node.attrs))
        if not get_operator(node.op).multi_output:
            numbers[node.outputs[0]], terms[node.outputs[0]] = whole, term
            continue
        for index, output in enumerate(node.outputs):
            parts.append(FusedPart("part", (whole,), {"index": index}))
            numbers[output] = len(candidate.inputs) + len(parts) - 1
            terms[output] = Apply("part", (term,), (("index", Literal(index)),))
    sources = tuple(cast(Apply, terms[output]) for output in candidate.outputs)
    operands = _gathered([terms[read] for read in candidate.inputs])
    body = body_of(parts, [numbers[output] for output in candidate.outputs])
    attrs = (("mugraph", Literal(key)), ("body", Literal(body)))
    kernel = Apply("fused", operands, attrs)
    return Rule(
        name,
        "a kernel computes what the operators compute that it is made of",
        sources,
        tuple(
            Apply("part", (kernel,), (("index", Literal(place)),)) for place in range(len(sources))
        ),
        tuple(_conditions(candidate)),
        symmetric=_may_be_exchanged(sources, candidate),
        file=FUSED_FILE,
    )


def _may_be_exchanged(sources: Sequence[Apply], candidate: Candidate) -> bool:
    """Return whether sources differ in their own operands only, which are of the same types."""
    counts = Counter(name for source in sources for name in set(_variables(source)))
    types = {f"x{n}": candidate.graph.types[name] for n, name in enumerate(candidate.inputs)}
    forms = set()
    for source in sources:
        own = [name for name in dict.fromkeys(_variables(source)) if counts[name] == 1]
        renamed = {name: Var(f"own{place} {types[name]}") for place, name in enumerate(own)}
        forms.add(_renamed(source, renamed))
    return len(forms) == 1 < len(sources) and {*counts.values()} <= {1, len(sources)}


def _variables(term: Term) -> Iterator[str]:
    """Yield the names of a term's variables, each time that one is there."""
    if isinstance(term, Var):
        yield term.name
    else:
        for child in term.children:
            yield from _variables(child)


def _renamed(term: Term, names: Mapping[str, Var]) -> Term:
    if isinstance(term, Var):
        return names.get(term.name, term)
    return replace(term, children=tuple(_renamed(child, names) for child in term.children))


def _gathered(operands: list[Term]) -> tuple[Term, ...]:
    """Return operands as an e-node has them: those for which it has no column are a tuple, the last."""
    if len(operands) <= CHILD_COLUMNS:
        return tuple(operands)
    rest = Apply("noop", _gathered(operands[CHILD_COLUMNS - 1 :]))
    return (*operands[: CHILD_COLUMNS - 1], rest)


def _conditions(candidate: Candidate) -> Iterator[Expr]:
    """Yield that operands are of the types that the kernel was made for."""
    for place, name in enumerate(candidate.inputs):
        kind, variable = candidate.graph.types[name], Var(f"x{place}")
        assert isinstance(kind, TensorType)
        shape = Call("list", tuple(Literal(size) for size in kind.shape))
        of_shape = Call("=", (Call("shape", (variable,)), shape))
        of_one = Call("=", (Call("rank", (variable,)), Literal(0)))
        yield of_shape if kind.shape else of_one
        yield Call("=", (Call("dtype", (variable,)), Literal(kind.dtype)))


def _fill(graph: Graph, name: str) -> Attrs:
    """Return the operator that gives a weight of one number.

    Raises:
        InputError: it is none: negative zero, say, or no number.
    """
    weight, kind = graph.weights[name], graph.types[name]
    assert isinstance(kind, TensorType)
    number = single_number(weight)
    if number is None and _is_infinite(weight):
        number = float(np.asarray(weight.data).item())
    if number is None:
        raise InputError(f"{name} is no number that rules know")
    return {"value": number, "dtype": kind.dtype, "shape": kind.shape}


def _number_term(graph: Graph, name: str) -> Apply:
    """Return the e-node that a weight of one number is: an infinite one is a weight of that name.

    Raises:
        InputError: it has a name that no rule can be written with.
    """
    weight = graph.weights[name]
    if not _is_infinite(weight):
        return Apply("fill", (), _literals(_fill(graph, name)))
    if '"' in name or "\n" in name:
        raise InputError(f"{name!r} is no name that rules know")
    attrs: Attrs = {"name": name, "dtype": weight.type.dtype, "shape": weight.type.shape}
    return Apply("weight", (), _literals(attrs))


def _is_infinite(weight: Weight) -> bool:
    if weight.data is None or weight.type.size != 1 or not weight.type.is_float:
        return False
    return math.isinf(float(np.asarray(weight.data).item()))


def _literals(attrs: Attrs) -> tuple[tuple[str, Expr], ...]:
    return tuple((name, Literal(value)) for name, value in attrs.items())
