"""Instances: a rule for operands of given types and operators with given attributes.

The one place where a rule is judged. Exploration asks it once per distinct configuration, tests and
verification ask it with configurations that they make up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

from relational_tensat.base.errors import ShapeError, UnsoundRuleError
from relational_tensat.base.lazy import once_per_object
from relational_tensat.rules.functions import Inapplicable, get_function
from relational_tensat.rules.model import (
    Apply,
    Expr,
    Literal,
    Rule,
    Term,
    Var,
    nodes_of,
    variables_of,
)
from relational_tensat.tensor.floats import is_extreme, representable
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import (
    AttrItems,
    Attrs,
    AttrValue,
    TensorType,
    ValueType,
    tensors_of,
)

Types: TypeAlias = tuple[ValueType, ...]
#: A compiled expression: of the tensor variables' types and the attribute variables' values.
Evaluate: TypeAlias = Callable[[Types, list[Any]], Any]


class TargetNode(NamedTuple):
    """One node of a target.

    Attributes:
        attrs: canonical, in declared order.
        children: indices of values: 0..n_vars-1 are the rule's tensor variables, n_vars + i is
            ``Instance.nodes[i]``.
        operand_types: per child.
        type: of the result.
    """

    op: str
    attrs: AttrItems
    children: tuple[int, ...]
    operand_types: Types
    type: ValueType


@dataclass(frozen=True, slots=True)
class Instance:
    """The targets of a rule for one configuration.

    Attributes:
        nodes: topologically ordered; equal sub-terms are one node.
        roots: per target, the index of its value (as in ``TargetNode.children``).
    """

    nodes: tuple[TargetNode, ...]
    roots: tuple[int, ...]


def source_nodes(rule: Rule) -> tuple[Apply, ...]:
    """Return the operator nodes of the sources in pre-order, one source after the other."""
    return tuple(node for source in rule.sources for node in nodes_of(source))


def tensor_vars(rule: Rule) -> tuple[str, ...]:
    """Return the variables that stand for tensors, by first occurrence in the sources."""
    return variables_of(*rule.sources)


def attr_vars(rule: Rule) -> tuple[str, ...]:
    """Return the variables that stand for attributes, by first occurrence in the sources."""
    names = [
        value.name
        for node in source_nodes(rule)
        for _, value in node.attrs
        if isinstance(value, Var)
    ]
    return tuple(dict.fromkeys(names))


def instantiate(
    rule: Rule, symbols: Sequence[tuple[str, Attrs]], var_types: Types, root_types: Types
) -> Instance | None:
    """Judge a rule on one configuration.

    Args:
        symbols: operator and canonical attributes of each node of ``source_nodes(rule)``.
        var_types: the types of ``tensor_vars(rule)``.
        root_types: the types of the sources' results.

    Returns:
        The targets; None if the rule does not apply: an operator or a constant is another one, a condition
        does not hold, it is not worth it, or a target's operands do not fit.

    Raises:
        UnsoundRuleError: a target's type is not its source's.
    """
    return compiled_rule(rule).instantiate(symbols, var_types, root_types)


@once_per_object
def compiled_rule(rule: Rule) -> PreparedRule:
    """Return a rule's compiled form, the same one for the same rule."""
    return PreparedRule(rule)


@dataclass(frozen=True, slots=True)
class _SourceCheck:
    """The symbols that one node of a source allows.

    Attributes:
        literals: attributes that must have a value.
        variables: attributes that bind, or must equal, the attribute variable of that number.
    """

    op: str
    literals: AttrItems
    variables: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class _TermBuilder:
    """How one node of a target is built.

    Attributes:
        children: as in ``TargetNode``, builders in place of nodes.
        constants, computed: its attributes.
    """

    op: str
    children: tuple[int, ...]
    constants: AttrItems
    computed: tuple[tuple[str, Evaluate], ...]


class PreparedRule:
    """A rule with its conditions and attributes turned into Python closures."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._tensors = {name: i for i, name in enumerate(tensor_vars(rule))}
        self._attrs = {name: i for i, name in enumerate(attr_vars(rule))}
        self._checks = tuple(self._source_check(node) for node in source_nodes(rule))
        conditions = (*rule.conditions, *rule.worth)
        self._conditions = tuple(self.expression(condition) for condition in conditions)
        self._scales = tuple(i for i, node in enumerate(source_nodes(rule)) if node.op == "smul")
        self._builders: list[_TermBuilder] = []
        numbers: dict[Term, int] = {}
        self._roots = tuple(self._add_builder(target, numbers) for target in rule.targets)

    def instantiate(
        self, symbols: Sequence[tuple[str, Attrs]], var_types: Types, root_types: Types
    ) -> Instance | None:
        """Judge one configuration; see the function of that name."""
        instance = self.targets(symbols, var_types)
        if instance is not None:
            self._check_types(instance, var_types, root_types)
        return instance

    def targets(self, symbols: Sequence[tuple[str, Attrs]], var_types: Types) -> Instance | None:
        """Return the targets, of any type; None if the rule does not apply."""
        values = self.bind(symbols)
        if values is None or self.has_extreme_scale(symbols, var_types):
            return None
        try:
            for condition in self._conditions:
                if condition(var_types, values) is not True:
                    return None
            return self._build(var_types, values)
        except Inapplicable:
            return None

    def bind(self, symbols: Sequence[tuple[str, Attrs]]) -> list[Any] | None:
        """Return the values of the attribute variables; None where the symbols are not the rule's."""
        values: list[Any] = [_UNBOUND] * len(self._attrs)
        for check, (op, attrs) in zip(self._checks, symbols, strict=True):
            if op != check.op:
                return None
            for key, literal in check.literals:
                if attrs[key] != literal:
                    return None
            for key, number in check.variables:
                if values[number] is _UNBOUND:
                    values[number] = attrs[key]
                elif values[number] != attrs[key]:
                    return None
        return values

    def has_extreme_scale(self, symbols: Sequence[tuple[str, Attrs]], var_types: Types) -> bool:
        """Whether a number that the sources multiply by is extreme: laws of the reals fail there."""
        if not self._scales:
            return False
        dtypes = {part.dtype for kind in var_types for part in tensors_of(kind)}
        scales = [symbols[i][1]["value"] for i in self._scales]
        return any(is_extreme(scale, dtype) for scale in scales for dtype in dtypes)

    def _build(self, var_types: Types, values: list[Any]) -> Instance | None:
        types: list[ValueType] = list(var_types)
        base = len(types)
        place = list(range(base))  # of each variable and builder, the index of its value
        nodes: list[TargetNode] = []
        numbers: dict[tuple[str, AttrItems, tuple[int, ...]], int] = {}
        for builder in self._builders:
            items = builder.constants
            for key, evaluate in builder.computed:
                items += ((key, evaluate(var_types, values)),)
            children = tuple([place[child] for child in builder.children])
            operands = tuple([types[child] for child in children])
            typed = typed_application(builder.op, items, operands)
            if typed is None:
                return None
            attrs, result = typed
            if builder.computed and not holds_constant(attrs, result):
                return None
            number = numbers.setdefault((builder.op, attrs, children), base + len(nodes))
            if number == base + len(nodes):
                nodes.append(TargetNode(builder.op, attrs, children, operands, result))
                types.append(result)
            place.append(number)
        return Instance(tuple(nodes), tuple(place[root] for root in self._roots))

    def _check_types(self, instance: Instance, var_types: Types, root_types: Types) -> None:
        base = len(var_types)
        for root, source_type in zip(instance.roots, root_types, strict=True):
            target_type = var_types[root] if root < base else instance.nodes[root - base].type
            if target_type != source_type:
                rule = self.rule
                raise UnsoundRuleError(
                    f"{rule.file}:{rule.line}: the rule {rule.name!r} replaces {type_text(source_type)} by"
                    f" {type_text(target_type)}"
                )

    def _source_check(self, node: Apply) -> _SourceCheck:
        exprs = dict(node.attrs)
        literals: list[tuple[str, AttrValue]] = []
        variables: list[tuple[str, int]] = []
        for attr in get_operator(node.op).attrs:
            match exprs.get(attr.name, Literal(attr.default)):
                case Literal(value):
                    literals.append((attr.name, value))
                case Var(name):
                    variables.append((attr.name, self._attrs[name]))
        return _SourceCheck(node.op, tuple(literals), tuple(variables))

    def _add_builder(self, term: Term, indices: dict[Term, int]) -> int:
        """Return the number of a term's value; variables come first, then builders."""
        if isinstance(term, Var):
            return self._tensors[term.name]
        if term not in indices:
            children = tuple(self._add_builder(child, indices) for child in term.children)
            constants = tuple((k, v.value) for k, v in term.attrs if isinstance(v, Literal))
            computed = tuple(
                (k, self.expression(v)) for k, v in term.attrs if not isinstance(v, Literal)
            )
            indices[term] = len(self._tensors) + len(self._builders)
            self._builders.append(_TermBuilder(term.op, children, constants, computed))
        return indices[term]

    def expression(self, expr: Expr) -> Evaluate:
        """Return a condition or a computed attribute as a function.

        It raises ``Inapplicable`` where a function is given what it is not defined for.
        """
        match expr:
            case Literal(value):
                return lambda types, values: value
            case Var(name) if name in self._tensors:
                tensor = self._tensors[name]
                return lambda types, values: types[tensor]
            case Var(name):
                attr_index = self._attrs[name]
                return lambda types, values: values[attr_index]
        function = get_function(expr.function)
        args = [self.expression(arg) for arg in expr.args]
        call = function.call
        if function.lazy:
            return lambda types, values: call(*[partial(arg, types, values) for arg in args])
        return _checked_call(call, [(arg, function.check(i)) for i, arg in enumerate(args)])


_UNBOUND = object()


def _checked_call(
    call: Callable[..., Any], args: Sequence[tuple[Evaluate, Callable[[object], bool]]]
) -> Evaluate:
    """Return what calls a function of expressions, each checked; written out for two, as most have."""
    if len(args) == 2:
        (first, check_first), (second, check_second) = args

        def of_two(types: Types, values: list[Any]) -> Any:
            a = first(types, values)
            if not check_first(a):
                raise Inapplicable
            b = second(types, values)
            if not check_second(b):
                raise Inapplicable
            return call(a, b)

        return of_two

    def of_any(types: Types, values: list[Any]) -> Any:
        arguments = []
        for arg, check in args:
            value = arg(types, values)
            if not check(value):
                raise Inapplicable
            arguments.append(value)
        return call(*arguments)

    return of_any


def holds_constant(attrs: AttrItems, result: ValueType) -> bool:
    """Whether the constant that an operator has for an operand (``value``) exists in its type."""
    return all(
        representable(float(value), result.dtype)
        for name, value in attrs
        if name == "value" and isinstance(value, int | float) and isinstance(result, TensorType)
    )


def typed_application(
    op: str, items: AttrItems, operands: Types
) -> tuple[AttrItems, ValueType] | None:
    """Return canonical attributes and the result's type; None where the operands do not fit."""
    return _typed(op, items, operands, repr(items))


@lru_cache(maxsize=1 << 16)
def _typed(
    op: str, items: AttrItems, operands: Types, written: str
) -> tuple[AttrItems, ValueType] | None:
    """As ``typed_application``: the same few are asked for by many configurations.

    Text tells numbers apart that are equal, 1 and 1.0, 0.0 and -0.0: the result for one is not another's.
    """
    operator = get_operator(op)
    try:
        operator.check_arity(len(operands))
        attrs = operator.canonical(operands, dict(items))
        return tuple(attrs.items()), operator.infer(operands, attrs)
    except ShapeError:
        return None


def type_text(kind: ValueType) -> str:
    """Return a type as text, ``float32[2,3]``; a tuple in parentheses."""
    return f"({', '.join(map(str, kind))})" if isinstance(kind, tuple) else str(kind)
