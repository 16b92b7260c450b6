"""The parts of a configuration: the operands' types and the attributes' values, as numbers with names.

From these the configuration follows: the sources are built up on them. So a number can be changed, and what
comes out is valid, or not; it can be traced, and what the operators ask of it is known.

``retyped`` gives a configuration other element types, and leaves its attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from relational_tensat.base.errors import ShapeError
from relational_tensat.rules.instance import source_nodes, tensor_vars, typed_application
from relational_tensat.rules.model import Rule, Term, Var
from relational_tensat.rules.soundness import traces
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.requirements import DrawPlan, SourceTerm
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import AttrItems, Attrs, TensorType, ValueType, tensors_of

Types = tuple[TensorType, ...]


def main_dtype(configuration: RuleConfiguration) -> str | None:
    """Return the element type that most operands have, or results where there are no operands."""
    kinds = configuration.var_types or [
        part for kind in configuration.root_types for part in tensors_of(kind)
    ]
    dtypes = [kind.dtype for kind in kinds]
    return max(dtypes, key=dtypes.count) if dtypes else None


def in_dtype(rule: Rule, configuration: RuleConfiguration, dtype: str) -> RuleConfiguration | None:
    """Return the configuration with another main element type; None where that does not fit."""
    main = main_dtype(configuration)
    if main is None or main == dtype:
        return None if main is None else configuration
    types = tuple(
        TensorType(dtype, kind.shape) if kind.dtype == main else kind
        for kind in configuration.var_types
    )
    return retyped(rule, configuration, types, {main: dtype})


def retyped(
    rule: Rule,
    configuration: RuleConfiguration,
    types: Types,
    dtypes: Mapping[str, str] | None = None,
) -> RuleConfiguration | None:
    """Return a configuration with other operands and the same attributes, if these fit.

    Args:
        dtypes: element types that attributes name, and what they name instead.
    """
    type_of = dict(zip(tensor_vars(rule), types, strict=True))
    attrs = dict(zip(map(id, source_nodes(rule)), configuration.symbols, strict=True))
    symbols: dict[int, tuple[str, Attrs]] = {}

    def visit(term: Term) -> ValueType | None:
        if isinstance(term, Var):
            return type_of[term.name]
        operands = [visit(child) for child in term.children]
        op, old_attrs = attrs[id(term)]
        if any(kind is None for kind in operands):
            return None
        operand_types = tuple(kind for kind in operands if kind is not None)
        items = tuple(_renamed(op, old_attrs, dtypes or {}).items())
        typed = typed_application(op, items, operand_types)
        if typed is None:
            return None
        symbols[id(term)] = op, dict(typed[0])
        return typed[1]

    roots = [visit(source) for source in rule.sources]
    if any(root is None for root in roots):
        return None
    return RuleConfiguration(
        tuple(symbols[id(node)] for node in source_nodes(rule)),
        types,
        tuple(root for root in roots if root is not None),
    )


def _renamed(op: str, attrs: Attrs, dtypes: Mapping[str, str]) -> Attrs:
    declared = get_operator(op).declared
    return {
        name: dtypes.get(str(value), value) if declared[name].kind == "dtype" else value
        for name, value in attrs.items()
    }


_Apply: TypeAlias = Callable[
    [str, AttrItems, tuple[ValueType, ...]], "tuple[AttrItems, ValueType] | None"
]


#: Errors that operators raise for numbers that nobody would write: a stride of 0, an axis of -700.
UNFIT = (ShapeError, ArithmeticError, ValueError, IndexError, TypeError)
#: The size of an axis that a tensor gets.
_NEW_DIM = 2
#: The size that a dim of 1 is changed to.
_WIDER = 3


@dataclass(frozen=True, slots=True)
class Inputs:
    """The types of a rule's tensor variables and the values of its attribute variables, in their order."""

    types: tuple[TensorType, ...]
    values: tuple[Any, ...]

    @staticmethod
    def of(plan: DrawPlan, configuration: RuleConfiguration) -> Inputs:
        """Return what a configuration is made of."""
        values = plan.compiled.bind(configuration.symbols)
        assert values is not None
        return Inputs(configuration.var_types, tuple(values))

    def numbers(self, plan: DrawPlan) -> Iterator[tuple[str, float]]:
        """Yield all numbers by the names that they have as terms: dims, lengths, attributes."""
        for name, kind in zip(plan.tensors, self.types, strict=True):
            yield traces.length_name("rank", name), kind.rank
            for axis, size in enumerate(kind.shape):
                yield f"dim {name} {axis}", size
        for name, value in zip(plan.attrs, self.values, strict=True):
            if isinstance(value, tuple):
                yield traces.length_name("len", name), len(value)
                for place, item in enumerate(value):
                    if _is_number(item):
                        yield f"item {name} {place}", item
            elif _is_number(value):
                yield f"value {name}", value

    def form(self) -> object:
        """Return what numbers do not say: ranks, lengths, element types and words."""
        values = [len(v) if isinstance(v, tuple) else v for v in self.values if not _is_number(v)]
        return tuple((kind.rank, kind.dtype) for kind in self.types), tuple(values)

    def order_of(self, plan: DrawPlan, names: frozenset[str]) -> frozenset[str]:
        """Return the names of the elements of an order of axes, if some names are of one."""
        for name, value in zip(plan.attrs, self.values, strict=True):
            if isinstance(value, tuple) and len(value) > 1:
                items = frozenset(f"item {name} {place}" for place in range(len(value)))
                is_whole = all(isinstance(item, int) for item in value)
                if is_whole and names <= items and sorted(value) == list(range(len(value))):
                    return items
        return frozenset()

    def dims(self) -> Iterator[tuple[int, int, int]]:
        """Yield the tensor, the axis and the size of each dim."""
        for index, kind in enumerate(self.types):
            for axis, size in enumerate(kind.shape):
                yield index, axis, size

    def with_dim(self, index: int, axis: int, size: int) -> Inputs:
        """Return the inputs with another dim."""
        kind = self.types[index]
        changed = kind.with_shape((*kind.shape[:axis], size, *kind.shape[axis + 1 :]))
        return Inputs((*self.types[:index], changed, *self.types[index + 1 :]), self.values)

    def varied(self, plan: DrawPlan) -> Iterator[Inputs]:
        """Yield the inputs with other words, and with larger dims where all operands have 1."""
        choices: dict[str, tuple[Any, ...]] = {}
        for term in plan.terms:
            for attr, name in term.variables:
                declared = term.operator.declared[attr]
                choices[name] = (True, False) if declared.kind == "bool" else declared.choices
        for place, name in enumerate(plan.attrs):
            for choice in choices[name] if isinstance(self.values[place], str | bool) else ():
                if choice != self.values[place]:
                    values = (*self.values[:place], choice, *self.values[place + 1 :])
                    yield Inputs(self.types, values)
        wider = self
        for axis in range(1, max((kind.rank for kind in self.types), default=0) + 1):
            if all(kind.rank < axis or kind.shape[-axis] == 1 for kind in self.types):
                for index, kind in enumerate(self.types):
                    if kind.rank >= axis:
                        wider = wider.with_dim(index, kind.rank - axis, _WIDER)
                yield wider

    def replaced(self, plan: DrawPlan, numbers: Mapping[str, float]) -> Inputs:
        """Return the inputs with other numbers.

        Lists are cut or made longer by ones, tensors lose their first axes or get more before these.
        """
        types = []
        for name, kind in zip(plan.tensors, self.types, strict=True):
            sizes = [int(numbers.get(f"dim {name} {i}", size)) for i, size in enumerate(kind.shape)]
            rank = max(0, int(numbers.get(traces.length_name("rank", name), kind.rank)))
            more = [_NEW_DIM] * max(0, rank - len(sizes))
            types.append(kind.with_shape((*more, *sizes[max(0, len(sizes) - rank) :])))
        values: list[Any] = []
        for name, value in zip(plan.attrs, self.values, strict=True):
            if isinstance(value, tuple):
                items = [numbers.get(f"item {name} {i}", item) for i, item in enumerate(value)]
                length = int(numbers.get(traces.length_name("len", name), len(items)))
                values.append(tuple((items + [1] * max(0, length - len(items)))[: max(0, length)]))
            else:
                values.append(numbers.get(f"value {name}", value))
        return Inputs(tuple(types), tuple(values))

    def traced(self, plan: DrawPlan) -> Inputs:
        """Return the inputs as traced numbers."""
        import z3

        types = tuple(
            TensorType(
                kind.dtype,
                tuple(traces.made(s, z3.Int(f"dim {name} {i}")) for i, s in enumerate(kind.shape)),
            )
            for name, kind in zip(plan.tensors, self.types, strict=True)
        )
        values: list[Any] = []
        for name, value in zip(plan.attrs, self.values, strict=True):
            if isinstance(value, tuple):
                items = traces.TracedList(
                    _traced(item, f"item {name} {i}") for i, item in enumerate(value)
                )
                items.term = z3.Int(traces.length_name("len", name))
                values.append(items)
            else:
                values.append(_traced(value, f"value {name}"))
        return Inputs(types, tuple(values))

    def configuration(self, plan: DrawPlan) -> RuleConfiguration | None:
        """Return the configuration; None where the sources are not valid."""
        try:
            symbols, _, roots = built(plan, self, _applied)
        except UNFIT:
            return None
        configuration = RuleConfiguration(symbols, self.types, roots)
        return configuration if plan.compiled.bind(symbols) is not None else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _traced(value: Any, name: str) -> Any:
    import z3

    if not _is_number(value):
        return value
    return traces.made(value, z3.Int(name) if isinstance(value, int) else z3.Real(name))


def _applied(
    op: str, items: AttrItems, operands: tuple[ValueType, ...]
) -> tuple[AttrItems, ValueType]:
    typed = typed_application(op, items, operands)
    if typed is None:
        raise ShapeError(op)
    return typed


def applied_traced(
    op: str, items: AttrItems, operands: tuple[ValueType, ...]
) -> tuple[AttrItems, ValueType]:
    """As ``typed_application``, but what does not fit raises ``ShapeError``, and nothing is remembered."""
    operator = get_operator(op)
    operator.check_arity(len(operands))
    attrs = operator.canonical(operands, dict(items))
    return tuple(attrs.items()), operator.infer(operands, attrs)


def built(
    plan: DrawPlan, inputs: Inputs, apply: _Apply
) -> tuple[tuple[tuple[str, Attrs], ...], list[Any], tuple[ValueType, ...]]:
    """Build the sources up.

    Returns:
        The symbols of a configuration, the attributes' values as operators write them, the results' types.

    Raises:
        ShapeError: operands do not fit.
    """
    types = dict(zip(plan.tensors, inputs.types, strict=True))
    values = dict(zip(plan.attrs, inputs.values, strict=True))
    symbols: dict[int, tuple[str, Attrs]] = {}

    def visit(term: SourceTerm) -> ValueType:
        operands = tuple([types[c] if isinstance(c, str) else visit(c) for c in term.children])
        given = {**term.constants, **{attr: values[name] for attr, name in term.variables}}
        typed = apply(term.op, tuple(given.items()), operands)
        if typed is None:
            raise ShapeError(term.op)
        attrs = dict(typed[0])
        for attr, name in term.variables:  # an axis from the back becomes one from the front
            if not isinstance(values[name], tuple):
                values[name] = attrs[attr]
        symbols[id(term)] = term.op, attrs
        return typed[1]

    roots: Sequence[ValueType] = [visit(source) for source in plan.sources]
    return tuple(symbols[id(term)] for term in plan.terms), [*values.values()], tuple(roots)
