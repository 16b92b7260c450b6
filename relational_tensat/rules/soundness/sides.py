"""The two sides of a rule on one configuration, and what they compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.instance import (
    Instance,
    PreparedRule,
    TargetNode,
    tensor_vars,
    typed_application,
)
from relational_tensat.rules.model import Rule, Term, Var
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.tensor.field import Field, Undefined
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import FLOAT_DTYPES, TensorType, ValueType, tensors_of

#: Computes one node from its operands' values.
Compute: TypeAlias = Callable[[TargetNode, Sequence[Any]], Any]
#: The bounds of a computation: the elements of all values of both sides together, and its operations.
_MOST_ELEMENTS = 1 << 22
_MOST_OPERATIONS = 1 << 30


@dataclass(frozen=True, slots=True)
class Sides:
    """A rule on operands of given types: the found pattern, and the built one.

    Attributes:
        var_types: of the rule's variables, which are the operands of both.
        left, right: the sources and the targets.
        widened: runtimes compute float16 in float32 for them.
    """

    var_types: tuple[TensorType, ...]
    left: Instance
    right: Instance
    widened: bool = False

    def types(self, side: Instance) -> list[ValueType]:
        """Return the types of a side's results."""
        types = [*self.var_types, *(node.type for node in side.nodes)]
        return [types[root] for root in side.roots]

    def agree_in_type(self) -> bool:
        """Whether every target has its source's shape and element type."""
        return self.types(self.left) == self.types(self.right)


def sides(compiled: PreparedRule, configuration: RuleConfiguration) -> Sides | None:
    """Return both sides; None where the rule does not apply."""
    right = compiled.targets(configuration.symbols, configuration.var_types)
    if right is None:
        return None
    left = _source_instance(compiled.rule, configuration)
    return Sides(configuration.var_types, left, right, compiled.rule.widened)


def _source_instance(rule: Rule, configuration: RuleConfiguration) -> Instance:
    """Return the sources in the form that targets have."""
    names = tensor_vars(rule)
    types: list[ValueType] = list(configuration.var_types)
    nodes: list[TargetNode] = []
    symbols = _symbols_by_term(rule, configuration)

    def visit(term: Term) -> int:
        if isinstance(term, Var):
            return names.index(term.name)
        op, attrs = symbols[id(term)]
        children = tuple(visit(child) for child in term.children)
        operands = tuple(types[child] for child in children)
        typed = typed_application(op, tuple(attrs.items()), operands)
        if typed is None:
            raise ShapeError(f"{op} does not take {', '.join(map(str, operands))}")
        nodes.append(TargetNode(op, typed[0], children, operands, typed[1]))
        types.append(typed[1])
        return len(types) - 1

    roots = tuple(visit(source) for source in rule.sources)
    return Instance(tuple(nodes), roots)


def _symbols_by_term(rule: Rule, configuration: RuleConfiguration) -> dict[int, Any]:
    terms: list[int] = []

    def visit(term: Term) -> None:
        if not isinstance(term, Var):
            terms.append(id(term))
            for child in term.children:
                visit(child)

    for source in rule.sources:
        visit(source)
    return dict(zip(terms, configuration.symbols, strict=True))


def evaluate(instance: Instance, values: Sequence[Any], compute: Compute) -> list[Any]:
    """Return the values of the variables and of all nodes of a side, in this order.

    Raises:
        Undefined: ``compute`` has no value for a node.
    """
    results = list(values)
    for node in instance.nodes:
        try:
            results.append(compute(node, [results[child] for child in node.children]))
        except ShapeError as error:  # an index that no axis has
            raise Undefined from error
    return results


def is_small(sides: Sides) -> bool:
    """Whether both sides can be computed in little time and memory."""
    elements, operations = sum(kind.size for kind in sides.var_types), 0
    for node in (*sides.left.nodes, *sides.right.nodes):
        elements += sum(part.size for part in tensors_of(node.type))
        operations += get_operator(node.op).flops(node.operand_types, node.type, dict(node.attrs))
    return elements <= _MOST_ELEMENTS and operations <= _MOST_OPERATIONS


def real(node: TargetNode, operands: Sequence[Any]) -> Any:
    """Compute a node in float64; integers and booleans exactly.

    Raises:
        Undefined: an integer is divided by 0.
    """
    operator = get_operator(node.op)
    if not operator.is_defined(operands):
        raise Undefined
    return operator.evaluate_typed(operands, node.operand_types, dict(node.attrs))


def exact(field: Field) -> Compute:
    """Return what computes a node with residues for floats."""

    def compute(node: TargetNode, operands: Sequence[Any]) -> Any:
        if not (has_floats(node.type) or any(map(has_floats, node.operand_types))):
            return real(node, operands)
        operator = get_operator(node.op)
        return operator.evaluate_exact(operands, node.operand_types, dict(node.attrs), field)

    return compute


def has_floats(kind: ValueType) -> bool:
    """Whether a value, or a part of it, is of floats."""
    if isinstance(kind, TensorType):
        return kind.dtype in FLOAT_DTYPES
    return any(part.dtype in FLOAT_DTYPES for part in tensors_of(kind))


def parts(value: Any) -> Iterator[Any]:
    """Yield the arrays of a value, which is one or a tuple of several."""
    if isinstance(value, tuple):
        yield from value
    else:
        yield value
