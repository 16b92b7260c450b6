"""The dynamic dimensions of a model: found in its inputs, and the sizes that they are given.

A dimension has a symbol: the name that the model gives it, or ``INPUT:AXIS`` where it has none. A name that
is arithmetic over other names (``past + sequence``) is no symbol of its own: its size follows from theirs.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt

import onnx

from relational_tensat.base.errors import InputError, UsageError, nearest
from relational_tensat.formats.dynamic.expressions import Sizes
from relational_tensat.formats.onnx_types import is_fixed


def fix_dims(
    inputs: Sequence[onnx.ValueInfoProto],
    values: Sequence[onnx.ValueInfoProto],
    dims: Mapping[str, int],
    where: str,
) -> None:
    """Give the dynamic dimensions of ``inputs`` their sizes, in place.

    Args:
        inputs: the graph's inputs.
        values: other declarations, where named dimensions get their sizes too.
        dims: sizes by the dimension's name, or by ``INPUT:AXIS``.

    Raises:
        UsageError: a name in ``dims`` is none of the model's, or a size is negative.
        InputError: a dimension stays without a size.
    """
    check_names(inputs, dims, where)
    for _, axis, dim in [*_axes(inputs), *_axes(values)]:
        size = dims.get(axis, dims.get(dim.dim_param)) if _is_dynamic(dim) else None
        if size is not None:
            dim.dim_value = size
    for name, axis, dim in _axes(inputs):
        if _is_dynamic(dim):
            key = dim.dim_param or axis
            raise InputError(
                f"{where}: dimension {key!r} of input {name!r} is dynamic; fix it: --dim {key}=1"
            )


def check_names(inputs: Sequence[onnx.ValueInfoProto], dims: Mapping[str, int], where: str) -> None:
    """Check that what sizes are given for are dynamic dimensions of the inputs.

    Raises:
        UsageError: a name in ``dims`` is none of the model's, or a size is negative or another one.
    """
    dimensions: dict[str, onnx.TensorShapeProto.Dimension] = {}
    for _, axis, dim in _axes(inputs):
        dimensions[axis] = dim
        if _is_dynamic(dim) and dim.dim_param:
            dimensions[dim.dim_param] = dim
    dynamic = {key: dim for key, dim in dimensions.items() if _is_dynamic(dim)}
    listed = list(dict.fromkeys(dim.dim_param or key for key, dim in dynamic.items()))
    for key, size in dims.items():
        if size < 0:
            raise UsageError(f"dimension {key!r} = {size}, expected a size")
        if key not in dimensions:
            hint = nearest(key, dynamic) or (
                f"; it has {', '.join(listed)}" if listed else "; all its dimensions are fixed"
            )
            raise UsageError(f"{where}: has no dynamic dimension {key!r}{hint}")
        if not _is_dynamic(dimensions[key]) and dimensions[key].dim_value != size:
            raise UsageError(f"{where}: dimension {key!r} is fixed to {dimensions[key].dim_value}")


def _axes(
    values: Sequence[onnx.ValueInfoProto],
) -> Iterator[tuple[str, str, onnx.TensorShapeProto.Dimension]]:
    """Yield input name, ``INPUT:AXIS`` and the dimension, for every dimension of every tensor."""
    for value in values:
        if value.type.HasField("tensor_type"):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                yield value.name, f"{value.name}:{axis}", dim


def _is_dynamic(dim: onnx.TensorShapeProto.Dimension) -> bool:
    return not is_fixed(dim)


#: Sizes to try a model at: primes, so that no product of them is taken for another.
_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83)
#: By default: of a batch, of a sequence (or the next prime that the model has not), of an image's sides.
_BATCH, _SEQUENCE = 3, 61
_SIDES = (224, 192, 160, 128, 96, 256, 288, 320)
#: Sizes from here on may be those of images, which are often multiples of 32 only.
_LARGE, _MULTIPLE = 96, 32

_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True, slots=True)
class DynamicDimension:
    """A dynamic dimension of an input.

    Attributes:
        symbol: its name, or ``INPUT:AXIS``.
    """

    input: str
    axis: int
    rank: int
    symbol: str


@dataclass(frozen=True, slots=True)
class DynamicDimensions:
    """The dynamic dimensions of a model's inputs.

    Attributes:
        symbols: whose sizes can be chosen; those of derived names follow.
        derived: names that are arithmetic over symbols.
        equal: names that are taken to be another symbol's.
    """

    dimensions: tuple[DynamicDimension, ...]
    symbols: tuple[str, ...]
    derived: tuple[str, ...]
    equal: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, inputs: Sequence[onnx.ValueInfoProto]) -> DynamicDimensions:
        """Return those of graph inputs."""
        dimensions = tuple(_dynamic(inputs))
        names = list(dict.fromkeys(item.symbol for item in dimensions))
        derived = tuple(name for name in names if _operands(name))
        parts = [part for name in derived for part in sorted(_operands(name))]
        symbols = [name for name in (*names, *parts) if name not in derived]
        return cls(dimensions, tuple(dict.fromkeys(symbols)), derived)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.dimensions)

    def at(self, sizes: Sizes) -> dict[str, int]:
        """Return sizes for every name that the model has, as ``fix_dims`` takes them."""
        names = {item.symbol for item in self.dimensions}
        all_sizes = {**sizes, **{name: sizes[other] for name, other in self.equal.items()}}
        all_sizes |= {name: _value(name, all_sizes) for name in self.derived}
        return {name: size for name, size in all_sizes.items() if name in names}

    @property
    def ties(self) -> tuple[str, ...]:
        """Sentences on names that are taken to be another symbol's."""
        return tuple(
            f"{name} is taken to be {other}: the model does not run with different sizes"
            for name, other in self.equal.items()
        )

    def tied(self, dims: Mapping[str, int]) -> DynamicDimensions | None:
        """Return the same with equal sizes where symbols are of one axis of several inputs.

        Args:
            dims: the sizes that are given; symbols that are given different ones stay different.

        Returns:
            None where there are no such symbols.
        """
        axis = {item.symbol: item.axis for item in reversed(self.dimensions)}
        given = self.chosen(dims)
        first: dict[int, str] = {}
        equal: dict[str, str] = {}
        for symbol in sorted(self.symbols, key=lambda symbol: symbol not in given):
            other = first.setdefault(axis.get(symbol, -1), symbol)
            if other != symbol and given.get(symbol, given.get(other)) == given.get(other):
                equal[symbol] = other
        symbols = tuple(symbol for symbol in self.symbols if symbol not in equal)
        return replace(self, symbols=symbols, equal=equal) if equal else None

    def chosen(self, dims: Mapping[str, int]) -> dict[str, int]:
        """Return the sizes that were given, by symbol; they may be given as ``INPUT:AXIS`` too."""
        by_place = {f"{item.input}:{item.axis}": item.symbol for item in self.dimensions}
        names = {key: by_place.get(key, key) for key in dims}
        sizes = {self.equal.get(name, name): dims[key] for key, name in names.items()}
        return {symbol: size for symbol, size in sizes.items() if symbol in self.symbols}

    def base(self, dims: Mapping[str, int], fixed: set[int], scale: int = 1) -> dict[str, int]:
        """Return the sizes to optimize at: those that are given, and defaults.

        Args:
            fixed: sizes that the model has itself: a default is none of them, as what holds for equal
                sizes only need not hold for others.
            scale: defaults are so many times as large, but for batches.
        """
        sizes = self.chosen(dims)
        for symbol in self.symbols:
            if symbol not in sizes:
                sizes[symbol] = self._default(symbol, fixed | set(sizes.values()), scale)
        return {symbol: sizes[symbol] for symbol in self.symbols}

    def others(self, base: Sizes, trials: int) -> Iterator[dict[str, int]]:
        """Yield other sizes to try: of small primes, and of multiples of 32 for what is large.

        Which symbol has the larger size alternates.
        """
        n_symbols = len(self.symbols)
        tried = [dict(base)]
        for trial in range(trials):
            sizes = {}
            for index, symbol in enumerate(self.symbols):
                place = trial * n_symbols + (index if trial % 2 else n_symbols - 1 - index)
                if base[symbol] >= _LARGE and trial % 2 == 0:
                    sizes[symbol] = base[symbol] + _MULTIPLE * (-(place // 2 + 1))
                    if sizes[symbol] < _MULTIPLE:
                        sizes[symbol] = base[symbol] + _MULTIPLE * (place // 2 + 1)
                else:
                    sizes[symbol] = _next_prime(place, base[symbol])
            if sizes not in tried:
                tried.append(sizes)
                yield sizes

    def larger(self, base: Sizes) -> dict[str, int]:
        """Return sizes that are larger than the base, as most others are smaller."""
        return {symbol: 2 * size + 1 for symbol, size in base.items()}

    def ones(self, other: Sizes) -> Iterator[dict[str, int]]:
        """Yield sizes of 1: for each symbol alone, and for all."""
        if len(self.symbols) > 1:
            for symbol in self.symbols:
                yield {**other, symbol: 1}
        yield dict.fromkeys(self.symbols, 1)

    def _default(self, symbol: str, avoided: set[int], scale: int) -> int:
        places = [item for item in self.dimensions if item.symbol == symbol]
        if places and all(self._is_side(item) for item in places):
            return scale * next(side for side in _SIDES if scale * side not in avoided)
        is_batch = "batch" in symbol.lower() or any(item.axis == 0 for item in places)
        start = _BATCH if is_batch else scale * _SEQUENCE
        while start in avoided or not _is_prime(start):
            start += 1
        return start

    def _is_side(self, item: DynamicDimension) -> bool:
        """Whether a dimension is one of an image's sides; a cache of keys has a dynamic axis of the two."""
        axes = {other.axis for other in self.dimensions if other.input == item.input}
        return item.rank == 4 and item.axis >= 2 and {2, 3} <= axes


def _dynamic(inputs: Sequence[onnx.ValueInfoProto]) -> Iterator[DynamicDimension]:
    for value in inputs:
        if not value.type.HasField("tensor_type"):
            continue
        dims = value.type.tensor_type.shape.dim
        for axis, dim in enumerate(dims):
            if not is_fixed(dim):
                symbol = dim.dim_param or f"{value.name}:{axis}"
                yield DynamicDimension(value.name, axis, len(dims), symbol)


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, isqrt(number) + 1))


def _next_prime(place: int, other_than: int) -> int:
    size = _PRIMES[(place + 1) % len(_PRIMES)]
    return size if size != other_than else _PRIMES[(place + 2) % len(_PRIMES)]


def _operands(name: str) -> set[str]:
    """Return the names in arithmetic; none where a name is no arithmetic."""
    try:
        tree = ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError):
        return set()
    if not isinstance(tree, ast.BinOp):
        return set()
    nodes = list(ast.walk(tree))
    return (
        {node.id for node in nodes if isinstance(node, ast.Name)}
        if _is_arithmetic(nodes)
        else set()
    )


def _is_arithmetic(nodes: Sequence[ast.AST]) -> bool:
    """Whether nodes of an expression are names, whole numbers, and what is known of operations."""
    is_known = {ast.Name, ast.Load, ast.BinOp, *_OPERATIONS}
    return all(
        isinstance(node.value, int) if isinstance(node, ast.Constant) else type(node) in is_known
        for node in nodes
    )


def _value(name: str, sizes: Sizes) -> int:
    """Return the size of a name that is arithmetic over symbols."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.BinOp(left, operation, right):
                return _OPERATIONS[type(operation)](value(left), value(right))
            case ast.Name(symbol):
                return sizes[symbol]
            case ast.Constant(int() as number):
                return number
        raise AssertionError(f"{name!r} is no arithmetic")

    return value(ast.parse(name, mode="eval").body)
