"""Rounded quotients of sizes in a model: strides and windows make them of its inputs' sizes.

The shape rules of the operators are carried out on integers that know their expressions. A size that no
rule computes (an operator that is not understood, a shape that is an attribute) is looked for among sums of
products of those before it, and of quotients of the operands' sizes. Each expression is compared with the
size wherever the model was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.formats.dynamic.expressions import (
    Quotient,
    Sizes,
    TracedSize,
    find_expression,
)
from relational_tensat.tensor import Graph, Node, TensorType, ValueType, tensors_of
from relational_tensat.tensor.operators import get_operator


def find_quotients(sizes: Sequence[Sizes], graphs: Sequence[Graph]) -> tuple[Quotient, ...]:
    """Return the quotients of sizes that occur in the shapes of a graph.

    Args:
        graphs: the same graph at each of the sizes.
    """
    return tuple(_traced(sizes, graphs).quotients)


def first_unexpressed(sizes: Sequence[Sizes], graphs: Sequence[Graph]) -> Node | None:
    """Return the first node whose result has a size that is no expression; None where all are.

    Args:
        graphs: the same graph at each of the sizes.
    """
    unknown = _traced(sizes, graphs).unexpressed
    return next((node for node in graphs[0].nodes if unknown.intersection(node.outputs)), None)


def _traced(sizes: Sequence[Sizes], graphs: Sequence[Graph]) -> _Trace:
    trace = _Trace(sizes, graphs)
    for name in graphs[0].inputs:
        trace.keep(name, graphs[0].types[name])
    for node in graphs[0].nodes:
        for name in node.inputs:  # a constant's sizes may be quotients of the nodes before
            if name in graphs[0].weights:
                trace.keep(name, graphs[0].types[name])
        for name, kind in zip(node.outputs, trace.inferred(node), strict=True):
            trace.keep(name, kind, node.inputs)
    return trace


#: Quotients by more are not looked for behind operators that are not understood.
_MOST_STRIDE = 8


class _Trace:
    def __init__(self, sizes: Sequence[Sizes], graphs: Sequence[Graph]) -> None:
        self._sizes = sizes
        self._graphs = graphs
        self._types: dict[str, ValueType] = {}
        self._found: dict[tuple[int, ...], int] = {}
        self.quotients: dict[Quotient, None] = {}
        #: Values with a size that is no expression.
        self.unexpressed: set[str] = set()

    def inferred(self, node: Node) -> Sequence[ValueType]:
        """Return the types of a node's outputs; those that were read where the rule does not take them."""
        operator = get_operator(node.op)
        operands = tuple(self._types[name] for name in node.inputs)
        try:
            result = operator.infer(operands, operator.canonical(operands, node.attrs))
        except RelationalTensatError:  # it takes a size for an integer that it is here only
            return [self._graphs[0].types[name] for name in node.outputs]
        return tensors_of(result) if operator.multi_output else (result,)

    def keep(self, name: str, kind: ValueType, operands: Sequence[str] = ()) -> None:
        """Keep the type of a value, with an expression for each size that has one.

        Args:
            operands: of what computes it.
        """
        there = [tensors_of(graph.types.get(name, kind)) for graph in self._graphs]
        traced = tensors_of(kind)
        ranks = [part.rank for part in traced]
        if any([part.rank for part in kinds] != ranks for kinds in there):
            self._types[name] = kind  # another graph at other sizes
            return
        parts = tuple(
            TensorType(
                part.dtype, tuple(self._sized(part, [kinds[i] for kinds in there], operands))
            )
            for i, part in enumerate(traced)
        )
        self._types[name] = parts[0] if isinstance(kind, TensorType) else parts
        for number, part in enumerate(parts):
            columns = zip(*(kinds[number].shape for kinds in there), strict=True)
            varying = [len(set(map(int, column))) > 1 for column in columns]
            if any(
                varies and not isinstance(size, TracedSize)
                for varies, size in zip(varying, part.shape, strict=True)
            ):
                self.unexpressed.add(name)

    def _sized(
        self, traced: TensorType, kinds: Sequence[TensorType], operands: Sequence[str]
    ) -> Iterator[int]:
        shapes = [kind.shape for kind in kinds]
        for size, *column in zip(traced.shape, *shapes, strict=True):
            values = tuple(map(int, column))
            if len(set(values)) == 1:
                yield values[0]
            elif isinstance(size, TracedSize) and self._is_so(size, values):
                self._note(size)
                yield size
            else:
                if values not in self._found:
                    self._found[values] = self._looked_for(values, operands)
                yield self._found[values]

    def _is_so(self, size: TracedSize, values: Sequence[int]) -> bool:
        claimed = (size.expression.value(sizes) for sizes in self._sizes)
        return all(claim == value for claim, value in zip(claimed, values, strict=True))

    def _looked_for(self, values: Sequence[int], operands: Sequence[str]) -> int:
        expression = find_expression(values, self._sizes, tuple(self.quotients))
        if expression is not None:
            return TracedSize.of(values[0], expression)
        parts = (part for name in operands for part in tensors_of(self._types[name]))
        sizes = (size for part in parts for size in part.shape if isinstance(size, TracedSize))
        for size in dict.fromkeys(sizes):
            quotients = [
                TracedSize.of(values[0], (size.expression + offset) // divisor)
                for divisor in range(2, _MOST_STRIDE + 1)
                for offset in range(divisor)
            ]
            fitting = [quotient for quotient in quotients if self._is_so(quotient, values)]
            for quotient in fitting:  # the model is read at sizes that tell them apart
                self._note(quotient)
            if fitting:
                return fitting[0]
        return values[0]

    def _note(self, size: TracedSize) -> None:
        self.quotients |= dict.fromkeys(size.expression.quotients)
