"""Relations between the sizes of a model's inputs, derived from what its nodes do with them.

A model is read at sizes that have nothing to do with each other. Where the operands of a node do not fit,
their sizes are expressions of the inputs' sizes. Some two of these have to be one: ``mask`` is ``past +
sequence`` where it is added to scores. Where indices are known, the indexed dimension is at least as long.
Facts that types do not give are tried: whether the model runs on ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import onnx

from relational_tensat.base.errors import InputError, ModelError
from relational_tensat.formats.dynamic.dimensions import DynamicDimensions, taken_to_be
from relational_tensat.formats.dynamic.expressions import Expression, Sizes, find_expression
from relational_tensat.formats.onnx_node import MisfitError, NodeOracle, attribute_value
from relational_tensat.formats.onnx_read import Reading
from relational_tensat.tensor import Array, TensorType, Weight

#: Sizes to read at are these at first: the smallest that tell something; then the defaults.
_SMALL = 5
#: It is read at so many sizes more than it has.
_MORE_READINGS = 3
#: So many relations are derived at most, each from a reading of its own.
_MOST_RELATIONS = 16
#: So many equations of a node are tried, alone, and two at a time.
_MOST_EQUATIONS, _MOST_PAIRS = 60, 200
#: So many relations that no types tell are tried by running the model.
_MOST_TRIED = 40
#: Possible divisors of sizes.
_MULTIPLES = (2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 32, 64)
#: Possible divisors of all sizes but batches.
_POWERS = (2, 4, 8, 16, 32, 64)
#: Integers of so many elements are shapes.
_MOST_SIZES = 16


class RelationFinder:
    """Derives relations between sizes.

    Args:
        read: reads the model at sizes of its dimensions; raises ``MisfitError`` where operands do not fit.
        frame: the model, for its nodes.
        where: its file, for messages.
        dims: the sizes that are given.
    """

    def __init__(
        self,
        read: Callable[[Mapping[str, int]], Reading],
        frame: onnx.ModelProto,
        where: str,
        dims: Mapping[str, int],
    ) -> None:
        self._read = read
        self._frame = frame
        self._oracle = NodeOracle({item.domain: item.version for item in frame.opset_import}, where)
        self._dims = dims

    def related(self, dimensions: DynamicDimensions) -> DynamicDimensions:
        """Return the dimensions with all relations that types and known indices tell."""
        for _ in range(_MOST_RELATIONS):
            small = dict.fromkeys(dimensions.symbols, _SMALL)
            for base in (small, dimensions.base({}, set())):
                sizes, readings, misfits = self._readings(dimensions, base)
                further = self._fitting(dimensions, misfits) if misfits else None
                if further is not None:
                    dimensions = further
                    break
                if readings:
                    return self._long_enough(dimensions, sizes, readings)
            else:
                break
        return dimensions

    def _readings(
        self, dimensions: DynamicDimensions, base: Sizes
    ) -> tuple[list[Sizes], list[Reading], list[tuple[Sizes, MisfitError]]]:
        """Read the model at sizes that have nothing to do with each other.

        Returns:
            Sizes and what was read there; or where operands do not fit, so that none of this is all.
        """
        sizes: list[Sizes] = []
        readings: list[Reading] = []
        misfits: list[tuple[Sizes, MisfitError]] = []
        for at in dimensions.others(base, len(dimensions.symbols) + _MORE_READINGS):
            try:
                readings.append(self._read(dimensions.at(at)))
                sizes.append(at)
            except MisfitError as error:
                misfits.append((at, error))
            except InputError:
                continue
        return sizes, readings, misfits

    def _fitting(
        self, dimensions: DynamicDimensions, misfits: Sequence[tuple[Sizes, MisfitError]]
    ) -> DynamicDimensions | None:
        """Return the dimensions with a relation by which the operands of a node fit."""
        outputs = [tuple(error.node.output) for _, error in misfits]
        most = max(outputs, key=outputs.count)
        same = [pair for pair, output in zip(misfits, outputs, strict=True) if output == most]
        operands = _operands(same)
        if operands is None:
            return self._all_multiples(dimensions)
        node = same[0][1].node
        between, to_numbers = (
            [
                further
                for one, other in _pairs(operands)
                if bool(one.terms and other.terms) is has_two
                and (further := self._equated(dimensions, one, other, node.op_type)) is not None
            ][:_MOST_EQUATIONS]
            for has_two in (True, False)
        )
        between = list({tuple(one.derived.items()): one for one in between}.values())
        pairs = [_both(dimensions, *pair) for pair in combinations(between, 2)][:_MOST_PAIRS]
        both = [further for further in pairs if further is not None]
        tried = (*between, *both, *_multiples(dimensions), *to_numbers)
        fitting = (further for further in tried if self._fits(node, operands, further))
        return next(fitting, None) or self._all_multiples(dimensions)

    def _all_multiples(self, dimensions: DynamicDimensions) -> DynamicDimensions | None:
        """Return the dimensions with multiples of a power of two, which is read where others are not.

        So it is where strides halve a size that is doubled again, and meets what it was.
        """
        rest = [symbol for symbol in dimensions.symbols if not dimensions.is_batch(symbol)]
        for step in _POWERS if rest else ():
            further = replace(
                dimensions, multiples={**dimensions.multiples, **dict.fromkeys(rest, step)}
            )
            if not self._is_read(further):
                continue
            for symbol in rest:
                others = {key: size for key, size in further.multiples.items() if key != symbol}
                if self._is_read(fewer := replace(further, multiples=others)):
                    further = fewer
            notes = (_multiple_note(symbol, step) for symbol in rest if symbol in further.multiples)
            return replace(further, notes=(*dimensions.notes, *notes))
        return None

    def _is_read(self, dimensions: DynamicDimensions) -> bool:
        """Whether the model is read at some sizes of its dimensions."""
        base = dict.fromkeys(dimensions.symbols, _SMALL)
        for sizes in dimensions.others(base, _MORE_READINGS):
            try:
                self._read(dimensions.at(sizes))
            except InputError:
                return False
        return True

    def _equated(
        self, dimensions: DynamicDimensions, one: Expression, other: Expression, op_type: str
    ) -> DynamicDimensions | None:
        """Return the dimensions with a symbol that follows from two expressions being the same."""
        given = dimensions.chosen(self._dims)
        solutions = [
            (symbol, found)
            for symbol in sorted((one - other).symbols & set(dimensions.symbols))
            if (found := (one - other).solved_for(symbol)) is not None
        ]
        if not solutions:
            return None
        order = dimensions.symbols.index
        symbol, found = min(
            solutions,
            key=lambda pair: (
                any(f < 0 for f, _ in pair[1].terms) or pair[1].number < 0,
                pair[0] in given,
                -order(pair[0]),
            ),
        )
        return dimensions.deriving(
            symbol, found, f"{symbol} is taken to be {found}: operands of {op_type} fit then only"
        )

    def _fits(
        self, node: onnx.NodeProto, operands: Sequence[_Operand], dimensions: DynamicDimensions
    ) -> bool:
        """Whether the operands of a node fit at sizes that are related so."""
        base = dict.fromkeys(dimensions.symbols, _SMALL)
        trials = [*dimensions.others(base, 2)] or [dimensions.fitted(base)]
        for sizes in trials:
            values = {**sizes, **{k: found.value(sizes) for k, found in dimensions.derived.items()}}
            if min(values.values()) < 1:
                return False
            types = {operand.name: operand.kind_at(values) for operand in operands}
            weights = {o.name: o.weight_at(values) for o in operands if o.data is not None}
            try:
                self._oracle.output_types(node, types, weights)
            except ModelError:
                return False
        return True

    def _long_enough(
        self, dimensions: DynamicDimensions, sizes: Sequence[Sizes], readings: Sequence[Reading]
    ) -> DynamicDimensions:
        """Return the dimensions, each at least what is taken out of it by known indices."""
        for node in self._frame.graph.node:
            for needs, lengths in _indexed(node, readings):
                need, length = find_expression(needs, sizes), find_expression(lengths, sizes)
                if need is None or length is None:
                    continue
                symbol = next(iter(length.symbols), "")
                is_alone = length == Expression.of(symbol) and symbol not in need.symbols
                if not is_alone or symbol in dimensions.least:
                    continue
                note = f"{symbol} is at least {need}: {node.output[0]!r} takes so many of it"
                dimensions = replace(
                    dimensions,
                    least={**dimensions.least, symbol: need},
                    notes=(*dimensions.notes, note),
                )
        return dimensions


def candidates(
    dimensions: DynamicDimensions, dims: Mapping[str, int]
) -> Iterator[DynamicDimensions]:
    """Yield relations to try, where types do not tell any by which the model runs: the likeliest first.

    Args:
        dims: the sizes that are given.
    """
    if dimensions.least:
        equal = dimensions
        for symbol, bound in dimensions.least.items():
            equal = equal.deriving(symbol, bound, taken_to_be(symbol, bound))
        yield equal
    tied = dimensions.tied(dims)
    if tied is not None:
        yield tied
    given = dimensions.chosen(dims)
    count = 0
    symbols = [symbol for symbol in dimensions.symbols if symbol not in given]
    for symbol in reversed(symbols):
        rest = [Expression.of(other) for other in dimensions.symbols if other != symbol]
        sums = [a + b for a, b in combinations(rest, 2)]
        for found in (*rest, *sums, *(one + 1 for one in rest)):
            count += 1
            if count > _MOST_TRIED:
                return
            yield dimensions.deriving(symbol, found, taken_to_be(symbol, found))


class _Operand(NamedTuple):
    """An operand of a node whose sizes are known as expressions.

    Attributes:
        data: its elements, where they are sizes; numbers where they are always the same.
    """

    name: str
    dtype: str
    shape: tuple[Expression, ...]
    data: tuple[Expression, ...] | None

    def kind_at(self, sizes: Sizes) -> TensorType:
        return TensorType(self.dtype, tuple(size.value(sizes) for size in self.shape))

    def weight_at(self, sizes: Sizes) -> Weight:
        kind = self.kind_at(sizes)
        numbers = [number.value(sizes) for number in self.data or ()]
        return Weight(kind, np.array(numbers, self.dtype).reshape(kind.shape))


def _operands(misfits: Sequence[tuple[Sizes, MisfitError]]) -> list[_Operand] | None:
    """Return a node's operands; None where a size is no expression that is known."""
    sizes = [at for at, _ in misfits]
    operands = []
    for name in dict.fromkeys(filter(None, misfits[0][1].node.input)):
        kinds = [error.types[name] for _, error in misfits]
        if len({(kind.dtype, kind.rank) for kind in kinds}) > 1:
            return None
        shape = [_found(column, sizes) for column in zip(*(k.shape for k in kinds), strict=True)]
        arrays = [error.known.get(name) for _, error in misfits]
        data = _shape_data([array for array in arrays if array is not None], sizes)
        if any(size is None for size in shape):
            return None
        known = tuple(size for size in shape if size is not None)
        operands.append(_Operand(name, kinds[0].dtype, known, data))
    return operands


def _found(values: Sequence[int], sizes: Sequence[Sizes]) -> Expression | None:
    return find_expression([int(value) for value in values], sizes)


def _shape_data(arrays: Sequence[Array], sizes: Sequence[Sizes]) -> tuple[Expression, ...] | None:
    """Return the elements of integers that are known at each size."""
    if len(arrays) < len(sizes) or len({array.shape for array in arrays}) > 1:
        return None
    if arrays[0].size > _MOST_SIZES or arrays[0].dtype.kind != "i":
        return None
    columns = np.stack([array.reshape(-1) for array in arrays], axis=1).tolist()
    elements = [_found(column, sizes) for column in columns]
    known = tuple(element for element in elements if element is not None)
    return known if len(known) == len(elements) else None


def _pairs(operands: Sequence[_Operand]) -> Iterator[tuple[Expression, Expression]]:
    """Yield expressions that may have to be one, those of the same axes first."""
    rows = [operand.shape for operand in operands]
    rows += [operand.data for operand in operands if operand.data is not None]
    pairs = [
        pair
        for one, other in combinations(rows, 2)
        for pair in (
            *zip(reversed(one), reversed(other), strict=False),
            *zip(one, other, strict=False),
        )
    ]
    pairs += [(a, b) for one, other in permutations(rows, 2) for a in one for b in other]
    yield from ((one, other) for one, other in dict.fromkeys(pairs) if one != other)


def _multiples(dimensions: DynamicDimensions) -> Iterator[DynamicDimensions]:
    """Yield the dimensions with one that is a multiple of a number, the smallest numbers first."""
    for step in _MULTIPLES:
        for symbol in dimensions.symbols:
            if step % dimensions.multiples.get(symbol, 1) == 0:
                yield replace(
                    dimensions,
                    multiples={**dimensions.multiples, symbol: step},
                    notes=(*dimensions.notes, _multiple_note(symbol, step)),
                )


def _multiple_note(symbol: str, step: int) -> str:
    return f"{symbol} is a multiple of {step}: the model does not run with other sizes"


def _both(
    dimensions: DynamicDimensions, one: DynamicDimensions, other: DynamicDimensions
) -> DynamicDimensions | None:
    """Return the dimensions with the relation of each of two; None where they are about one symbol."""
    result = one
    for name in other.derived.keys() - dimensions.derived.keys():
        found = other.derived[name].replaced(one.derived)
        if name not in result.symbols or name in found.symbols:
            return None
        result = result.deriving(name, found, other.notes[-1])
    return result


def _indexed(
    node: onnx.NodeProto, readings: Sequence[Reading]
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield how long an axis has to be, and is, at each size, where a node takes parts by known indices."""
    if node.op_type not in ("Gather", "GatherElements", "GatherND") or node.domain:
        return
    weights = [reading.constants.get(node.input[1]) for reading in readings]
    indices = [w.data for w in weights if w is not None and w.data is not None and w.data.size]
    data = [_type(reading, node.input[0]) for reading in readings]
    kinds = [kind for kind in data if kind is not None]
    if len(indices) < len(readings) or len(kinds) < len(readings):
        return
    attributes = {item.name: attribute_value(item) for item in node.attribute}
    if node.op_type == "GatherND":
        first = int(attributes.get("batch_dims", 0))
        parts = [(first + place, place) for place in range(indices[0].shape[-1])]
    else:
        parts = [(int(attributes.get("axis", 0)), -1)]
    for axis, place in parts:
        needs = [
            int((array if place < 0 else array[..., place]).max()) + 1
            for array in map(np.asarray, indices)
        ]
        yield needs, [kind.shape[axis] for kind in kinds]


def _type(reading: Reading, name: str) -> TensorType | None:
    kind = reading.graph.types.get(name)
    if kind is None and name in reading.constants:
        kind = reading.constants[name].type
    return kind if isinstance(kind, TensorType) else None
