"""Values of inputs that a model runs with only if they fit its sizes: how long a cache is, a shape.

A model that does not run on ones is tried with whole numbers that follow from its sizes, as ``past +
sequence`` if attention sees that much. The values given at the sizes to optimize at say what they are
there, and which of these they are at others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice, product
from pathlib import Path

import numpy as np

from relational_tensat.formats.dynamic.dimensions import DynamicDimensions
from relational_tensat.formats.dynamic.expressions import Expression, Sizes
from relational_tensat.formats.onnx_node import OnesRunner
from relational_tensat.tensor import Array, TensorType, numpy_dtype

#: So many values of all such inputs together are tried at each size.
_MOST_TRIED = 300
#: Values of so many inputs are looked for.
_MOST_INPUTS = 3
#: The element types of such inputs.
_WHOLE_NUMBERS = ("int32", "int64")


class InputValues:
    """Finds, size by size, values that a model runs with.

    Args:
        given: arrays by input, for the sizes to optimize at.
    """

    def __init__(self, path: Path, given: Mapping[str, Array]) -> None:
        self._runner = OnesRunner(path)
        self._given = given
        #: The sizes that the given ones are for.
        self._base: Sizes = {}
        #: The last finding is tried first.
        self._last: Sequence[Sequence[Expression]] = ()
        self._found: dict[tuple[tuple[str, int], ...], Mapping[str, Array]] = {}

    def begin(self, base: Sizes) -> None:
        """Say at which sizes the given values are."""
        self._base = dict(base)

    def at(self, sizes: Sizes) -> Mapping[str, Array]:
        """Return the values that the model ran with at some sizes, if any had to be found or were given."""
        return self._found.get(_key(sizes), {})

    def refusal(
        self, dimensions: DynamicDimensions, sizes: Sizes, inputs: Mapping[str, TensorType]
    ) -> str:
        """Run the model at some sizes; return why that is refused, with any values, "" if it is not."""
        given = self._given if sizes == self._base else {}
        fitting = {name: array for name, array in given.items() if _fits(array, inputs.get(name))}
        names = [
            name
            for name, kind in inputs.items()
            if kind.dtype in _WHOLE_NUMBERS and kind.rank <= 1 and name not in fitting
        ]
        names = names if len(names) <= _MOST_INPUTS else []
        refusal = ""
        if not (names and self._given):  # else ones are not what it is meant for
            refusal = self._runner.refusal(inputs, fitting)
            if not refusal and self._found:
                ones = {name: _array((Expression(1),), inputs[name], sizes) for name in names}
                fitting = {**fitting, **ones}
            if not refusal and fitting:
                self._found[_key(sizes)] = fitting
            if not refusal or not names:
                return refusal
        for chosen in islice(self._choices(dimensions, names, inputs), _MOST_TRIED):
            arrays = {
                name: _array(elements, inputs[name], sizes)
                for name, elements in zip(names, chosen, strict=True)
            }
            refused = self._runner.refusal(inputs, {**fitting, **arrays})
            if not refused:
                self._last = chosen
                self._found[_key(sizes)] = {**fitting, **arrays}
                return ""
            refusal = refusal or refused
        flags = ", ".join(f"--input {name}=FILE.npy" for name in names)
        return f"{refusal}; if it needs certain numbers in an input, give them: {flags}"

    def _choices(
        self, dimensions: DynamicDimensions, names: Sequence[str], inputs: Mapping[str, TensorType]
    ) -> Iterator[Sequence[Sequence[Expression]]]:
        """Yield the elements of each input, one for all of it or one each: the likeliest first."""
        if len(self._last) == len(names) and not self._given:
            yield self._last
        uniform = [(expression,) for expression in _expressions(dimensions)]
        choices: list[list[Sequence[Expression]]] = []
        for name in names:
            array = self._given.get(name)
            if array is None or not self._base:
                choices.append(list(uniform))
                continue
            numbers = [int(number) for number in np.asarray(array).reshape(-1)]
            alike = [one for one in uniform if {one[0].value(self._base)} == set(numbers)]
            constant = [Expression(number) for number in numbers]
            kept = [constant] if inputs[name].shape == array.shape else []
            choices.append([*alike, *kept, *(one for one in uniform if one not in alike)])
        indices = product(*(range(len(few)) for few in choices))
        for places in sorted(indices, key=lambda places: (sum(places), places)):
            yield [few[place] for few, place in zip(choices, places, strict=True)]


def _key(sizes: Sizes) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(sizes.items()))


def _fits(array: Array, kind: TensorType | None) -> bool:
    return kind is not None and array.shape == kind.shape and array.dtype == numpy_dtype(kind.dtype)


def _array(elements: Sequence[Expression], kind: TensorType, sizes: Sizes) -> Array:
    numbers = np.array([one.value(sizes) for one in elements], numpy_dtype(kind.dtype))
    return np.broadcast_to(numbers if len(elements) > 1 else numbers[0], kind.shape).copy()


def _expressions(dimensions: DynamicDimensions) -> list[Expression]:
    """Return what whole numbers of an input may be: lengths and their sums, each as last index, too."""
    batches = [symbol for symbol in dimensions.symbols if dimensions.is_batch(symbol)]
    lengths = [Expression.of(symbol) for symbol in dimensions.symbols if symbol not in batches]
    sums = [a + b for a, b in combinations(lengths, 2)]
    known = [*sums, *lengths, *map(Expression.of, batches)]
    return [*(one + less for one in known for less in (0, -1)), Expression(0)]
