"""Reading a model at several sizes of its dynamic dimensions, so that it is one graph at all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
from onnx import inliner

from relational_tensat.base.errors import InputError, ShapeError
from relational_tensat.formats.dynamic.dimensions import (
    DynamicDimensions,
    check_names,
    fix_dims,
    own_inputs,
)
from relational_tensat.formats.dynamic.expressions import Sizes, separating_sizes
from relational_tensat.formats.dynamic.sized_model import (
    AlikeReader,
    DynamicModel,
    SizedReading,
    SizeError,
    all_types,
    check_alike,
    has_ones_that_grow,
    has_other_operators,
    has_unknown_shapes,
    is_much_work,
    is_too_much_work,
    quotients_of,
    takes_numbers,
    text_of,
    without_elements,
)
from relational_tensat.formats.onnx_frame import default_inputs
from relational_tensat.formats.onnx_metadata import weights_without_data
from relational_tensat.formats.onnx_node import MisfitError
from relational_tensat.formats.onnx_read import OnnxSource, Reading, parse_onnx, read_in_full
from relational_tensat.formats.onnx_types import from_type_proto
from relational_tensat.tensor import Array, Graph

if TYPE_CHECKING:
    from relational_tensat.formats.dynamic.input_values import InputValues

#: Sizes that tell quotients apart are found in few rounds.
_MOST_ROUNDS = 10
#: So many sizes are tried for each that is needed: a model need not be valid at all of them.
_TRIALS = 4
#: Defaults are multiplied by these in turn, until the model is valid.
_SCALES = (1, 4, 16, 64, 256)
#: The same, until the model is little enough work: attention over an image's latents grows by their square.
_SMALLER_SCALES = (1 / 2, 1 / 4, 1 / 8)


def read_dynamic(
    path: Path,
    dims: Mapping[str, int],
    *,
    keep_overridable: bool = False,
    inputs: Mapping[str, Array] | None = None,
) -> DynamicModel | Graph:
    """Read an ONNX file; as a graph if all its dimensions are fixed.

    Args:
        dims: sizes to optimize at, by symbol or ``INPUT:AXIS``; others get defaults.
        keep_overridable: inputs with a default value stay inputs with one.
        inputs: values of some inputs at the sizes to optimize at.

    Raises:
        UsageError: ``dims`` names a dimension that the model lacks.
        SizeError: it is another graph at other sizes.
        InputError: it cannot be read.
    """
    model, data = parse_onnx(path)
    overridable = default_inputs(model) if keep_overridable else ()
    if not DynamicDimensions.of(own_inputs(model, overridable)):
        return read_in_full(model, dims, str(path), data, overridable=overridable).graph
    if model.functions:
        model = inliner.inline_local_functions(model)
    check_names(own_inputs(model, overridable), dims, str(path))
    return _SizeReader(model, data, path, overridable, inputs or {}).read(dims)


class _SizeReader:
    def __init__(
        self,
        frame: onnx.ModelProto,
        data: Mapping[str, memoryview],
        path: Path,
        overridable: tuple[str, ...],
        given: Mapping[str, Array],
    ) -> None:
        self._frame = frame
        self._source = OnnxSource(frame, str(path), data, overridable)
        self._data = data
        self._path = path
        self._overridable = overridable
        self._dimensions = DynamicDimensions.of(own_inputs(frame, overridable))
        self._initialized = {tensor.name for tensor in frame.graph.initializer}
        self._initialized |= weights_without_data(frame)
        self._initialized.difference_update(overridable)
        self._readings: dict[tuple[tuple[str, int], ...], Reading] = {}
        self._given = given
        self._found_values: InputValues | None = None

    def read(self, dims: Mapping[str, int]) -> DynamicModel:
        self._dimensions = self._dimensions.promising(dims)
        base = self._base(dims)
        try:
            return self._read_at(base, frozenset(self._dimensions.chosen(dims)))
        except SizeError as error:
            error.base = base.reading.graph
            raise

    def _base(self, dims: Mapping[str, int]) -> SizedReading:
        """Read the model at the sizes that are given, and defaults at which it is valid.

        Sizes that are called differently are different ones, unless the model is not valid then, or does
        not run: then some follow from others.

        Raises:
            InputError: no sizes will do.
        """
        try:
            base = self._valid_base(dims)
            if self._dimensions.may_be_related or takes_numbers(base):
                self._check_runs(base.sizes)
            if all(self._is_misfit(at) for at in self._dimensions.others(base.sizes, 2)):
                return self._related_base(dims)
        except InputError:
            return self._related_base(dims)
        return base

    def _is_misfit(self, sizes: Sizes) -> bool:
        try:
            self._read(sizes)
        except MisfitError:
            return True
        except InputError:
            return False
        return False

    def _related_base(self, dims: Mapping[str, int]) -> SizedReading:
        """Read the model with relations between its sizes, by which it is valid, and runs if possible."""
        # few models need it
        from relational_tensat.formats.dynamic.relations import RelationFinder, candidates

        finder = RelationFinder(self._read_at_dims, self._frame, str(self._path), dims)
        related = finder.related(self._dimensions)
        # A table of positions may be too short for defaults. No odd size is the sum of two, or one more.
        small = {**related.smallest({2, *self._fixed_sizes()}), **dims}
        likely = ((found, dims) for found in candidates(related, dims))
        for self._dimensions, given in ((related, dims), (related, small), *likely):
            with suppress(InputError):
                base = self._dimensions.base(given, self._fixed_sizes())
                self._check_runs_beside(base)
                return self._valid_base(given)
        self._dimensions = related.tied(dims) or related  # as types demand it
        return self._valid_base(dims)

    @property
    def _values(self) -> InputValues:
        """Runs the model; few are run."""
        if self._found_values is None:
            from relational_tensat.formats.dynamic.input_values import InputValues

            self._found_values = InputValues(self._path, self._given)
        return self._found_values

    def _values_at(self, sizes: Sizes) -> Mapping[str, Array]:
        return {} if self._found_values is None else self._found_values.at(sizes)

    def _refusal_at(self, sizes: Sizes) -> str:
        """Run the model on ones at some sizes; return why that is refused, "" if it is not."""
        copy = onnx.GraphProto(input=own_inputs(self._frame, self._overridable))
        fix_dims(copy.input, (), self._dimensions.at(sizes), str(self._path))
        kinds = {value.name: from_type_proto(value.type) for value in copy.input}
        known = {name: kind for name, kind in kinds.items() if kind is not None}
        return self._values.refusal(self._dimensions, sizes, known)

    def _valid_base(self, dims: Mapping[str, int]) -> SizedReading:
        """Read the model at the sizes that are given, and the smallest defaults that are large enough.

        It is valid at these, and no size is 1 only because strides and windows have left no more of it.

        Raises:
            InputError: it is valid at no sizes.
        """
        fixed = self._fixed_sizes()
        refusal: InputError | None = None
        smaller: SizedReading | None = None
        for scale in _SCALES:
            sizes = self._dimensions.base(dims, fixed, scale)
            try:
                base = SizedReading(sizes, self._read(sizes))
                empty = without_elements(base.reading.graph.types)
                if empty:
                    larger = self._read(self._dimensions.larger(base.sizes)).graph.types
                    for name in empty:
                        if name in larger and name not in without_elements(larger):
                            raise ShapeError(f"{name!r} has no elements")
                if has_unknown_shapes(base):
                    self._values.begin(sizes)
                    self._check_runs_at(base)
                smaller = smaller or base
                if not self._has_little_left(base):
                    return self._with_less_work(base, dims)
            except InputError as error:
                refusal = refusal or error
            if self._dimensions.chosen(dims).keys() >= set(self._dimensions.symbols):
                break
        if smaller is not None:
            return smaller
        assert refusal is not None
        raise refusal

    def _with_less_work(self, base: SizedReading, dims: Mapping[str, int]) -> SizedReading:
        """Read the model at smaller defaults, where it is too much work at these and valid at those."""
        for scale in _SMALLER_SCALES:
            if not is_too_much_work(base.reading.graph):
                break
            sizes = self._dimensions.base(dims, self._fixed_sizes(), scale)
            with suppress(InputError):
                smaller = self._valid_at(sizes, base)
                if not self._has_little_left(smaller):
                    base = smaller
        return base

    def _has_little_left(self, base: SizedReading) -> bool:
        """Whether a dimension is 1 that is more at larger sizes."""
        try:
            larger = self._read(self._dimensions.larger(base.sizes)).graph.types
        except InputError:
            return False
        return has_ones_that_grow(base.reading.graph.types, larger)

    def _read_at(self, base: SizedReading, chosen: frozenset[str]) -> DynamicModel:
        valid = self._valid(base)
        extremes = list(self._valid_extremes(valid[0].sizes, base))
        valid += self._separating([base, *valid])
        reader = AlikeReader(self._source, self._frame, self._dimensions, self._initialized)
        graphs = reader.expressed([base, *valid, *extremes])
        first, others = graphs[0], graphs[1:]
        notes = list(self._dimensions.notes)
        for other in others:
            try:
                check_alike(first, other)
            except SizeError as error:
                if 1 not in other.sizes.values():
                    raise
                notes.append(f"at {text_of(other.sizes)} no step was checked: {error}")
                graphs.remove(other)
        computed = reader.computed(graphs)
        weights = first.reading.graph.weights
        if self._values_at(base.sizes):  # it does not run without
            for graph in graphs:
                self._values.refusal(self._dimensions, graph.sizes, graph.reading.graph.inputs)
        alike = [
            graph.with_inputs(computed, weights, self._values_at(graph.sizes)) for graph in graphs
        ]
        return DynamicModel(
            self._path,
            self._frame,
            self._data,
            self._dimensions,
            alike[0],
            tuple(alike[1:]),
            chosen,
            tuple(notes),
            quotients_of(graphs),
            self._overridable,
        )

    def _fixed_sizes(self) -> set[int]:
        sizes = {size for tensor in self._frame.graph.initializer for size in tensor.dims}
        for value in own_inputs(self._frame, self._overridable):
            sizes.update(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        return sizes

    def _valid(self, base: SizedReading) -> list[SizedReading]:
        """Read the model at other sizes at which it is valid, enough to tell sums of products apart.

        The first ones are small, where the model is much work: it is compared there.

        Raises:
            SizeError: there are too few.
        """
        graphs: list[SizedReading] = []
        refusal = ""
        small, further = self._other_sizes(base.sizes)
        for sizes in (*small, *further):
            if len(graphs) == self._n_valid:
                break
            try:
                graphs.append(self._valid_at(sizes, base))
            except InputError as error:
                refusal = f": at {text_of(sizes)}, {error}"
        if len(graphs) < self._n_valid:
            raise SizeError(f"{self._path}: is not valid at other sizes{refusal}")
        return graphs

    @property
    def _n_valid(self) -> int:
        """At how many other sizes the model is to be valid."""
        return max(3, len(self._dimensions.symbols) + 2)

    def _other_sizes(self, base: Sizes) -> tuple[list[Sizes], Iterator[Sizes]]:
        """Return other sizes than the base: small ones if the model is much work, and further ones."""
        further = self._dimensions.others(base, self._n_valid * _TRIALS)
        small: list[Sizes] = [self._dimensions.smallest(self._fixed_sizes())]
        return (small if is_much_work(self._read(base).graph) else []), iter(further)

    def _separating(self, graphs: Sequence[SizedReading]) -> list[SizedReading]:
        """Read the model at sizes that tell quotients in its shapes apart, where it is valid."""
        read, tried = list(graphs), [graph.sizes for graph in graphs]
        for _ in range(_MOST_ROUNDS):
            known = [graph.sizes for graph in read]
            further = separating_sizes(quotients_of(read), known)
            sizes = next((sizes for sizes in further if sizes not in tried), None)
            if sizes is None:
                break
            tried.append(sizes)
            with suppress(InputError):
                read.append(self._valid_at(sizes, graphs[0]))
        return read[len(graphs) :]

    def _valid_extremes(self, other: Sizes, base: SizedReading) -> Iterator[SizedReading]:
        """Read the model, where it is valid, at sizes that are larger than the base, and at 1.

        Raises:
            InputError: it is not valid, or does not run, at sizes that are promised.
        """
        for sizes in self._dimensions.ends(base.sizes):
            if sizes != base.sizes:
                end = self._valid_at(sizes, base)
                self._check_runs_at(end)
                yield end
        extremes = [self._dimensions.larger(base.sizes), *self._dimensions.ones(other)]
        for sizes in extremes:
            with suppress(InputError):
                yield self._valid_at(sizes, base)

    def _valid_at(self, sizes: Sizes, base: SizedReading) -> SizedReading:
        """Read the model at other sizes.

        Raises:
            InputError: it is not valid, or a value has no elements that has some at the base sizes.
        """
        reading = self._read(sizes)
        for name in without_elements(all_types(reading)):
            if name not in without_elements(all_types(base.reading)):
                raise ShapeError(f"{name!r} has no elements")
        sized = SizedReading(sizes, reading)
        if has_other_operators(base, sized):  # as where a window is larger than what it slides over
            self._check_runs_at(sized)
        return sized

    def _read(self, sizes: Sizes) -> Reading:
        """Read the model at some sizes; once, as several questions are answered by the same ones."""
        return self._read_at_dims(self._dimensions.at(sizes))

    def _read_at_dims(self, dims: Mapping[str, int]) -> Reading:
        key = tuple(sorted(dims.items()))
        if key not in self._readings:
            self._readings[key] = self._source.read(dims)
        return self._readings[key]

    def _check_runs(self, base: Sizes) -> None:
        """Check that the model runs at these sizes and others: types do not say all that it needs.

        Raises:
            InputError: it does not.
        """
        self._values.begin(base)
        for sizes in (base, *self._dimensions.others(base, _TRIALS)):
            if refusal := self._refusal_at(sizes):
                raise InputError(f"{self._path}: does not run at {text_of(sizes)}: {refusal}")

    def _check_runs_beside(self, base: Sizes) -> None:
        """Check the same while the model is read at sizes at which it will be if it runs."""
        with ThreadPoolExecutor(1) as beside:
            runs = beside.submit(self._check_runs, base)
            with suppress(InputError):  # it is said where it is read again
                small, further = self._other_sizes(base)
                for sizes in (*small, *islice(further, self._n_valid - len(small))):
                    if runs.done():
                        break
                    self._read(sizes)
            runs.result()

    def _check_runs_at(self, sized: SizedReading) -> None:
        inputs = sized.reading.graph.inputs
        refusal = self._values.refusal(self._dimensions, sized.sizes, inputs)
        if refusal:
            raise InputError(f"{self._path}: does not run at {text_of(sized.sizes)}: {refusal}")
