"""A configuration of a rule with other element types or shapes, and the same attributes."""

from __future__ import annotations

from collections.abc import Mapping

from relational_tensat.rules.instance import source_nodes, tensor_vars, typed_application
from relational_tensat.rules.model import Rule, Term, Var
from relational_tensat.rules.soundness.drawing import Configuration
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import Attrs, TensorType, ValueType, tensors_of

Types = tuple[TensorType, ...]


def main_dtype(configuration: Configuration) -> str | None:
    """Return the element type that most operands have, or results where there are no operands."""
    kinds = configuration.var_types or [
        part for kind in configuration.root_types for part in tensors_of(kind)
    ]
    dtypes = [kind.dtype for kind in kinds]
    return max(dtypes, key=dtypes.count) if dtypes else None


def in_dtype(rule: Rule, configuration: Configuration, dtype: str) -> Configuration | None:
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
    configuration: Configuration,
    types: Types,
    dtypes: Mapping[str, str] | None = None,
) -> Configuration | None:
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
    return Configuration(
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
