"""The source of a rule in a model of onnx-ir: its shape as a pattern, and what the nodes of a match mean.

Equal operators of a source are one node of the pattern. A ``part`` of a tuple is one output of the node
that makes the tuple. ``smul`` is a product's node with a number, which a rule says; ``fill`` is a constant.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx_ir
from onnxscript.rewriter.pattern import ANY_VALUE, OrValue

from relational_tensat.adapters.ir_nodes import IrNode, data_of, token, type_of
from relational_tensat.base.errors import ShapeError
from relational_tensat.egraph.enode_rows import single_number
from relational_tensat.rules.instance import (
    instantiate,
    source_nodes,
    tensor_vars,
    typed_application,
)
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Apply, Literal, Rule, Term, Var
from relational_tensat.tensor.graph import Weight
from relational_tensat.tensor.operators import get_operator, map_onnx
from relational_tensat.tensor.types import Attrs, TensorType, ValueType

_COMMUTATIVE = ("add", "mul")
_EXCHANGEABLE = (*_COMMUTATIVE, "smul")
#: Of a source with more such operators, each order would be a pattern: there is only the one that it has.
_MOST_EXCHANGED = 4
_SCALE_RULE = "product-with-number-is-scale"
Symbol = tuple[str, Attrs]


@dataclass(frozen=True, slots=True)
class SourceMatch:
    """The nodes of a match, as ``instantiate`` takes them.

    Attributes:
        symbols: operator and attributes of each node of the source.
        var_types: of the variables.
        result: the type of the source's result.
    """

    symbols: Sequence[Symbol]
    var_types: tuple[TensorType, ...]
    result: ValueType


def op_types(term: Apply) -> tuple[str, ...]:
    """Return the operators of ONNX whose nodes may be one of ours; of a part, those of its tuple."""
    if term.op == "part":
        (whole,) = term.children
        return op_types(whole) if isinstance(whole, Apply) else ()
    if term.op == "fill":
        return ()
    return ("Mul",) if term.op == "smul" else get_operator(term.op).onnx


class RuleSource:
    """The one source of a rule."""

    def __init__(self, rule: Rule) -> None:
        (self._root,) = rule.sources
        self._nodes = source_nodes(rule)
        self._variables = {name: f"x{number}" for number, name in enumerate(tensor_vars(rule))}
        self._names = {node: f"n{number}" for number, node in enumerate(self._nodes)}
        for node in self._nodes:
            if node.op == "part":  # a tuple has no value: it is found by any of its parts
                (whole,) = node.children
                assert isinstance(whole, Apply)
                self._names[whole] = self._names[node]

    def orders(self) -> Iterator[frozenset[Apply]]:
        """Yield sets of operators: the patterns in which the operands of these are exchanged."""
        free = [node for node in self._names if node.op in _EXCHANGEABLE]
        most = len(free) if len(free) <= _MOST_EXCHANGED else 0
        for count in range(most + 1):
            yield from map(frozenset, itertools.combinations(free, count))

    def pattern(self, root: str, exchanged: frozenset[Apply]) -> Any:
        """Return a pattern as onnxscript asks for one.

        Args:
            root: the operator of ONNX of the last node.
            exchanged: operators whose operands are exchanged.
        """
        constants = (self._names[node] for node in self._names if node.op == "fill")
        names = [*self._variables.values(), *constants]

        def made(op: Any, *variables: Any) -> Any:
            known = dict(zip(names, variables, strict=True))
            writer = _PatternWriter(op, self._names, self._variables, known, exchanged)
            return writer.term(self._root, (root,))

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(name, kind) for name in ("op", *names)]
        made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return made

    def value(self, variable: str, bound: Mapping[str, Any]) -> onnx_ir.Value:
        """Return what a variable is bound to."""
        value: onnx_ir.Value = bound[self._variables[variable]]
        return value

    def operands(self, bound: Mapping[str, Any]) -> list[onnx_ir.Value]:
        """Return what the variables are bound to, in the order of ``tensor_vars``."""
        return [bound[name] for name in self._variables.values()]

    def leaves(self, bound: Mapping[str, Any]) -> Iterator[onnx_ir.Value]:
        """Yield what variables are bound to, and the constants that the source names."""
        yield from self.operands(bound)
        for node in self._nodes:
            if node.op == "fill":
                yield bound[self._names[node]]
            elif node.op == "smul":
                yield from filter(None, bound[self._names[node]].producer().inputs)

    def read(self, bound: Mapping[str, Any], opset: int) -> SourceMatch | None:
        """Return what the nodes of a match are; None where they are not the source, or types are not known.

        Args:
            bound: the values of the match by the names of the pattern.
            opset: the version of ONNX's operators.
        """
        var_types = []
        for value in self.operands(bound):
            kind = None if value is None else type_of(value)
            if kind is None:
                return None
            var_types.append(kind)
        symbols: dict[Apply, Symbol] = {}
        for node in self._nodes:
            symbol = self._symbol(node, bound, opset)
            if symbol is None:
                return None
            symbols[node] = symbol
        result = self._type(self._root, symbols, dict(zip(self._variables, var_types, strict=True)))
        declared = type_of(bound[self._names[self._root]])
        if result is None or declared not in (None, result):
            return None
        return SourceMatch([symbols[node] for node in self._nodes], tuple(var_types), result)

    def _symbol(self, term: Apply, bound: Mapping[str, Any], opset: int) -> Symbol | None:
        """Return what the node of an operator is; None where it is another one."""
        value = bound[self._names[term]]
        if term.op == "part":
            return "part", {"index": value.index()}
        if term.op == "fill":
            return _number(value)
        node = IrNode(value.producer(), opset)
        operands = tuple(token(self._bound(child, bound)) for child in term.children)
        try:
            if term.op == "smul":
                return _scale(node, operands[0])
            mapped = map_onnx(get_operator(term.op), node)
        except ShapeError:
            return None
        if mapped is None or mapped.op != term.op:
            return None
        are_exchanged = term.op in _COMMUTATIVE and mapped.inputs == operands[::-1]
        return (term.op, mapped.attrs) if mapped.inputs == operands or are_exchanged else None

    def _bound(self, term: Term, bound: Mapping[str, Any]) -> onnx_ir.Value:
        name = self._variables[term.name] if isinstance(term, Var) else self._names[term]
        value: onnx_ir.Value = bound[name]
        return value

    def _type(
        self, term: Term, symbols: Mapping[Apply, Symbol], var_types: Mapping[str, TensorType]
    ) -> ValueType | None:
        if isinstance(term, Var):
            return var_types[term.name]
        operands = []
        for child in term.children:
            kind = self._type(child, symbols, var_types)
            if kind is None:
                return None
            operands.append(kind)
        op, attrs = symbols[term]
        typed = typed_application(op, tuple(attrs.items()), tuple(operands))
        return None if typed is None else typed[1]


class _PatternWriter:
    """Writes the pattern of a source with the builder that onnxscript gives."""

    def __init__(
        self,
        op: Any,
        names: Mapping[Apply, str],
        variables: Mapping[str, str],
        known: Mapping[str, Any],
        exchanged: frozenset[Apply],
    ) -> None:
        self._op, self._names, self._variables = op, names, variables
        self._made = dict(known)
        self._exchanged = exchanged

    def term(self, term: Term, types: Sequence[str] = ()) -> Any:
        """Return the pattern of a term: one of several nodes, or of one of these operators."""
        name = self._variables[term.name] if isinstance(term, Var) else self._names[term]
        if name not in self._made:
            assert isinstance(term, Apply)
            if term.op == "part":
                self._make_parts(term.children[0])
            else:
                made = [self._node(each, term, [name]) for each in types or op_types(term)]
                self._made[name] = made[0] if len(made) == 1 else OrValue(made)
        return self._made[name]

    def _make_parts(self, whole: Term) -> None:
        """Make the node of a tuple, and the patterns of all its parts that the source has."""
        assert isinstance(whole, Apply)
        parts = {
            _index(node): name
            for node, name in self._names.items()
            if node.op == "part" and node.children[0] == whole
        }
        outputs = [parts.get(index) for index in range(max(parts) + 1)]
        made = self._node(op_types(whole)[0], whole, outputs)
        results = [made] if len(outputs) == 1 else made
        self._made.update((name, results[index]) for index, name in parts.items())

    def _node(self, op_type: str, term: Apply, outputs: Sequence[str | None]) -> Any:
        operands = [self.term(child) for child in term.children]
        if term.op == "smul":
            operands.append(ANY_VALUE)
        if term in self._exchanged:
            operands.reverse()
        make = getattr(self._op, op_type)
        return make(*operands, _outputs=list(outputs), _allow_other_inputs=True)


def _index(part: Apply) -> int:
    value = dict(part.attrs)["index"]
    assert isinstance(value, Literal)
    assert isinstance(value.value, int)
    return value.value


def _number(value: onnx_ir.Value) -> Symbol | None:
    """Return a constant that is one number as the operator that it is; None where it is another one."""
    kind = type_of(value)
    number = None if kind is None else single_number(Weight(kind, data_of(value)))
    if kind is None or number is None:
        return None
    return "fill", {"value": number, "dtype": kind.dtype, "shape": kind.shape}


def _scale(node: IrNode, operand: str) -> Symbol | None:
    """Return a product with a number as a scale; None for any other node."""
    values = [value for value in node.node.inputs if value is not None and token(value) != operand]
    kinds = {token(value): type_of(value) for value in node.node.inputs if value is not None}
    number = _number(values[0]) if len(values) == 1 else None
    kind, result = kinds[operand], type_of(node.node.outputs[0])
    if number is None or kind is None:
        return None
    rule = _scale_rule()
    instance = instantiate(rule, [("mul", {}), number], (kind,), (result or kind,))
    if instance is None:
        return None
    (target,) = instance.nodes
    return target.op, dict(target.attrs)


@cache
def _scale_rule() -> Rule:
    (rule,) = load_rules(only=[_SCALE_RULE])
    return rule
