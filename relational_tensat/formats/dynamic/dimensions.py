"""The dynamic dimensions of a model: found in its inputs, and the sizes that they are given.

A dimension has a symbol: the name that the model gives it, or ``INPUT:AXIS`` where it has none. A name that
is arithmetic over other names (``past + sequence``) is no symbol of its own: its size follows from theirs.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt

import onnx

from relational_tensat.base.errors import InputError, UsageError, nearest
from relational_tensat.base.option import SizeRange
from relational_tensat.formats.dynamic.expressions import Expression, Sizes
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
        UsageError: the model has no dimension of a name in ``dims``, or a size is negative.
        InputError: a dimension stays without a size.
    """
    check_names(inputs, dims, where)
    for name, axis, dim in [*_axes(inputs), *_axes(values)]:
        if _is_dynamic(dim):
            size = dims.get(f"{name}:{axis}", dims.get(dim.dim_param))
            if size is not None:
                dim.dim_value = size
    for name, axis, dim in _axes(inputs):
        if _is_dynamic(dim):
            key = dim.dim_param or f"{name}:{axis}"
            raise InputError(
                f"{where}: dimension {key!r} of input {name!r} is dynamic; fix it: --dim {key}=1"
            )


def check_names(inputs: Sequence[onnx.ValueInfoProto], dims: Mapping[str, int], where: str) -> None:
    """Check that what sizes are given for are dynamic dimensions of the inputs.

    Raises:
        UsageError: the model has no dimension of a name in ``dims``, or a size is negative or another one.
    """
    dimensions: dict[str, onnx.TensorShapeProto.Dimension] = {}
    for name, axis, dim in _axes(inputs):
        dimensions[f"{name}:{axis}"] = dim
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
) -> Iterator[tuple[str, int, onnx.TensorShapeProto.Dimension]]:
    """Yield input name, axis and the dimension, for every dimension of every tensor."""
    for value in values:
        if value.type.HasField("tensor_type"):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                yield value.name, axis, dim


def _is_dynamic(dim: onnx.TensorShapeProto.Dimension) -> bool:
    return not is_fixed(dim)


#: Sizes to try a model at: primes, so that no product of them is taken for another.
_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83)
#: By default: of a batch, of a sequence (or the next prime that the model has not), of an image's sides.
_BATCH, _SEQUENCE = 3, 61
#: Of a sequence that comes to a cache of keys and values: once the first part is there, a token at a time.
_TOKENS = 7
_SIDES = (224, 192, 160, 128, 96, 256, 288, 320)
#: Ranges of fewer sizes are too few to tell expressions of these apart.
_FEW = 12
#: Sizes from here on may be those of images, which are often multiples of 32 only.
_LARGE, _MULTIPLE = 96, 32

_OPERATIONS: Mapping[type[ast.operator], Callable[[Expression, Expression], Expression]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
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
        derived: names that follow from symbols: the model says so, or runs with no other sizes.
        least: the least sizes of symbols, if the model does not run with less.
        multiples: numbers that divide the sizes of symbols, if the model runs with no others.
        promised: the least and the most that symbols are, where that was said; of few sizes, all are
            looked at as if it was not.
        notes: sentences on the findings.
    """

    dimensions: tuple[DynamicDimension, ...]
    symbols: tuple[str, ...]
    derived: Mapping[str, Expression] = field(default_factory=dict)
    least: Mapping[str, Expression] = field(default_factory=dict)
    multiples: Mapping[str, int] = field(default_factory=dict)
    promised: Mapping[str, SizeRange] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, inputs: Sequence[onnx.ValueInfoProto]) -> DynamicDimensions:
        """Return those of graph inputs."""
        dimensions = tuple(_dynamic(inputs))
        names = list(dict.fromkeys(item.symbol for item in dimensions))
        derived = {name: found for name in names if (found := _arithmetic(name)) is not None}
        parts = [part for found in derived.values() for part in sorted(found.symbols)]
        symbols = [name for name in (*names, *parts) if name not in derived]
        return cls(dimensions, tuple(dict.fromkeys(symbols)), derived)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.dimensions)

    def at(self, sizes: Sizes) -> dict[str, int]:
        """Return sizes for every name that the model has, as ``fix_dims`` takes them."""
        names = {item.symbol for item in self.dimensions}
        all_sizes = {**sizes, **{name: found.value(sizes) for name, found in self.derived.items()}}
        return {name: size for name, size in all_sizes.items() if name in names}

    def promising(self, dims: Mapping[str, int]) -> DynamicDimensions:
        """Return the same with what ranges in given sizes promise."""
        ranges = {
            symbol: size
            for symbol, size in self.chosen(dims).items()
            if isinstance(size, SizeRange) and size.most - size.least >= _FEW
        }
        return replace(self, promised=ranges)

    @property
    def may_be_related(self) -> bool:
        """Whether inputs have sizes of different names on one axis."""
        axis = {item.symbol: item.axis for item in reversed(self.dimensions)}
        axes = [axis[symbol] for symbol in self.symbols if symbol in axis]
        return len(set(axes)) < len(axes)

    def deriving(self, name: str, expression: Expression, note: str) -> DynamicDimensions:
        """Return the same where a symbol follows from others."""
        values = {name: expression}
        return replace(
            self,
            symbols=tuple(symbol for symbol in self.symbols if symbol != name),
            derived={
                **{key: found.replaced(values) for key, found in self.derived.items()},
                name: expression,
            },
            least={key: bound.replaced(values) for key, bound in self.least.items() if key != name},
            multiples={key: step for key, step in self.multiples.items() if key != name},
            promised={key: few for key, few in self.promised.items() if key != name},
            notes=(*self.notes, note),
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
        result = self
        for symbol in sorted(self.symbols, key=lambda symbol: symbol not in given):
            other = first.setdefault(axis.get(symbol, -1), symbol)
            if other != symbol and given.get(symbol, given.get(other)) == given.get(other):
                result = result.deriving(symbol, Expression.of(other), taken_to_be(symbol, other))
        return result if result is not self else None

    def chosen(self, dims: Mapping[str, int]) -> dict[str, int]:
        """Return the sizes that were given, by symbol; they may be given as ``INPUT:AXIS`` too."""
        by_place = {f"{item.input}:{item.axis}": item.symbol for item in self.dimensions}
        given = {by_place.get(key, key): size for key, size in dims.items()}
        sizes = {symbol: size for symbol, size in given.items() if symbol in self.symbols}
        for name, expression in self.derived.items():
            if name in given:  # it says what the one symbol is that was not given
                missing = sorted(expression.symbols - sizes.keys())
                found = (expression - given[name]).solved_for(missing[0]) if missing else None
                if found is not None and found.symbols <= sizes.keys():
                    sizes[missing[0]] = found.value(sizes)
        return sizes

    def base(self, dims: Mapping[str, int], fixed: set[int], scale: float = 1) -> dict[str, int]:
        """Return the sizes to optimize at: those that are given, and defaults.

        Args:
            fixed: sizes that the model has itself. A default is not one of them: equal sizes can make
                equalities that others need not have.
            scale: defaults are so many times as large, but for batches.

        Raises:
            InputError: given sizes do not go with each other.
        """
        sizes = self.chosen(dims)
        for symbol in sorted(self.symbols, key=lambda symbol: symbol in self.least):
            if symbol not in sizes:
                sizes[symbol] = self._default(symbol, fixed, sizes, scale)
        self._check_given(dims, sizes)
        return {symbol: sizes[symbol] for symbol in self.symbols}

    def _check_given(self, dims: Mapping[str, int], sizes: Sizes) -> None:
        """Check that sizes are those that were given, and go with each other."""
        by_place = {f"{item.input}:{item.axis}": item.symbol for item in self.dimensions}
        for key, size in dims.items():
            name = by_place.get(key, key)
            if name in self.derived and (follows := self.derived[name].value(sizes)) != size:
                text = ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())
                raise InputError(
                    f"dimension {key!r} = {size}, expected {self.derived[name]} = {follows}, "
                    f"as {text}"
                )
        fitted = self.fitted(sizes)
        for symbol, size in sizes.items():
            if fitted[symbol] != size:
                bound = self.least.get(symbol, "")
                demand = f"at least {bound} = " if bound else "a multiple: "
                raise InputError(
                    f"dimension {symbol!r} = {size}, expected {demand}{fitted[symbol]}"
                )

    def fitted(self, sizes: Sizes) -> dict[str, int]:
        """Return sizes that are large enough, and multiples of what they have to be."""
        fitted = dict(sizes)
        for symbol, few in self.promised.items():
            fitted[symbol] = min(max(fitted[symbol], few.least), few.most)
        for symbol in sorted(fitted, key=lambda symbol: symbol in self.least):
            if symbol in self.least:
                fitted[symbol] = max(fitted[symbol], self.least[symbol].value(fitted))
            step = self.multiples.get(symbol, 1)
            fitted[symbol] = -(-fitted[symbol] // step) * step
        return fitted

    def others(self, base: Sizes, trials: int) -> Iterator[dict[str, int]]:
        """Yield other sizes to try: of small primes, and of multiples of 32 for what is large.

        Batches are the smallest; which other symbol has the larger size alternates. A size of at least so
        much is that and a little more.
        """
        batches = [symbol for symbol in self.symbols if self.is_batch(symbol)]
        rest = [symbol for symbol in self.symbols if symbol not in batches]
        tried = [dict(base)]
        for trial in range(trials):
            sizes: dict[str, int] = {}
            order = 1 if trial % 2 else -1
            for place, symbol in enumerate((*batches[::order], *rest[::order])):
                if base[symbol] >= _LARGE and trial % 2 == 0:
                    steps = _MULTIPLE * ((trial * len(self.symbols) + place) // 2 + 1)
                    smaller = base[symbol] - steps
                    sizes[symbol] = smaller if smaller >= _MULTIPLE else base[symbol] + steps
                else:
                    sizes[symbol] = _next_prime(trial + place, base[symbol])
                sizes[symbol] *= self.multiples.get(symbol, 1)
                if few := self.promised.get(symbol):
                    sizes[symbol] = few.least + sizes[symbol] % (few.most - few.least)
            for index, (symbol, bound) in enumerate(self.least.items()):
                sizes[symbol] = bound.value(sizes) + trial // (index + 1)
            sizes = self.fitted({symbol: sizes[symbol] for symbol in self.symbols})
            if sizes not in tried:
                tried.append(sizes)
                yield sizes

    def smallest(self, avoided: Collection[int]) -> dict[str, int]:
        """Return sizes that are little work: the smallest primes that are not avoided, all different.

        A size of at least so much is that.
        """
        primes = [prime for prime in (2, *_PRIMES) if prime not in avoided] or _PRIMES
        batches = sorted(self.symbols, key=lambda symbol: not self.is_batch(symbol))
        sizes = {
            symbol: primes[place % len(primes)] * self.multiples.get(symbol, 1)
            for place, symbol in enumerate(batches)
        }
        sizes |= {symbol: bound.value(sizes) for symbol, bound in self.least.items()}
        return self.fitted(sizes)

    def larger(self, base: Sizes) -> dict[str, int]:
        """Return sizes that are larger than the base, as most others are smaller."""
        return self.fitted({symbol: 2 * size + 1 for symbol, size in base.items()})

    def ends(self, base: Sizes) -> list[dict[str, int]]:
        """Return the sizes at both ends of what is promised; none where nothing is."""
        least = {symbol: few.least for symbol, few in self.promised.items()}
        most = {symbol: few.most for symbol, few in self.promised.items()}
        both = [self.fitted({**base, **least}), self.fitted({**base, **most})]
        return both if self.promised else []

    def ones(self, other: Sizes) -> Iterator[dict[str, int]]:
        """Yield sizes of 1: for each symbol alone, and for all; or the least that is possible."""
        single = [self.fitted({**other, symbol: 1}) for symbol in self.symbols]
        single = single if len(self.symbols) > 1 else []
        single = [sizes for place, sizes in enumerate(single) if sizes not in single[:place]]
        yield from (sizes for sizes in single if sizes != other)
        yield self.fitted(dict.fromkeys(self.symbols, 1))

    def _default(self, symbol: str, fixed: set[int], sizes: Sizes, scale: float) -> int:
        avoided = fixed | set(sizes.values())
        places = [item for item in self.dimensions if item.symbol == symbol]
        step = self.multiples.get(symbol, 1)
        if places and all(self._is_side(item) for item in places) and step == 1:
            sides = (int(scale * side) for side in _SIDES)
            return next(side for side in sides if side not in avoided)
        start = _TOKENS if self._comes_to_cache(symbol) else int(scale * _SEQUENCE)
        if self.is_batch(symbol):
            start = _BATCH
        if symbol in self.least and self.least[symbol].symbols <= sizes.keys():
            start = self.least[symbol].value(sizes) + 1
        while start * step in avoided or not _is_prime(start):
            start += 1
        return start * step

    def is_batch(self, symbol: str) -> bool:
        """Whether a symbol is how many inputs there are at a time."""
        axes = [item.axis for item in self.dimensions if item.symbol == symbol]
        return "batch" in symbol.lower() or 0 in axes

    def _comes_to_cache(self, symbol: str) -> bool:
        """Whether there are so many more than a cache has: something is as long as both together."""
        cached = {item.symbol for item in self.dimensions if item.rank == 4 and item.axis > 0}
        sums = [found.symbols for found in (*self.derived.values(), *self.least.values())]
        return symbol not in cached and any(symbol in of and of & cached for of in sums)

    def _is_side(self, item: DynamicDimension) -> bool:
        """Whether a dimension is one of an image's sides; a cache of keys has a dynamic axis of the two."""
        axes = {other.axis for other in self.dimensions if other.input == item.input}
        return item.rank == 4 and item.axis >= 2 and {2, 3} <= axes


def taken_to_be(name: str, other: object) -> str:
    """Return what is said of a dimension that follows from others."""
    return f"{name} is taken to be {other}: the model does not run with different sizes"


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


def _arithmetic(name: str) -> Expression | None:
    """Return a name that is arithmetic over other names; None for one that is not."""
    try:
        tree = ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(tree, ast.BinOp):
        return None
    expression = _expression(tree)
    return expression if expression is not None and expression.symbols else None


def _expression(node: ast.expr) -> Expression | None:
    match node:
        case ast.Name(symbol):
            return Expression.of(symbol)
        case ast.Constant(int() as number):
            return Expression(number)
        case ast.BinOp(left, ast.FloorDiv(), ast.Constant(int() as divisor)) if divisor > 0:
            divided = _expression(left)
            return None if divided is None else divided // divisor
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATIONS:
            a, b = _expression(left), _expression(right)
            return None if a is None or b is None else _OPERATIONS[type(operation)](a, b)
    return None


def own_inputs(model: onnx.ModelProto, overridable: Collection[str]) -> list[onnx.ValueInfoProto]:
    """Return the graph inputs that are no initializers, or may be replaced."""
    initialized = {tensor.name for tensor in model.graph.initializer}
    initialized |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    initialized.difference_update(overridable)
    return [value for value in model.graph.input if value.name not in initialized]
