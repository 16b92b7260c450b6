"""The inputs and weights that graphs are compared on: random ones, masks, weights made to differ, files.

A network without normalization (attention without softmax is cubic in its input) can leave even
float64 at ordinary sizes, and an output that is infinite everywhere proves nothing. Step ``k`` has
inputs of ``8**-k`` and random weights of ``2**-k`` times their ordinary size.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from relational_tensat.base.errors import InputError, UsageError, nearest
from relational_tensat.base.files import check_file
from relational_tensat.tensor import DTYPE_BYTES, Array, Graph, TensorType, Weight, numpy_dtype
from relational_tensat.tensor.mask_inputs import MaskInput, find_masks
from relational_tensat.tensor.uses import weight_bytes
from relational_tensat.verify.evaluate import SeededWeights, Weights, converted, random_inputs


def load_inputs(graph: Graph, files: Mapping[str, Path]) -> dict[str, Array]:
    """Return the arrays of ``.npy`` files by graph input.

    Raises:
        UsageError: the graph has no such input; names the nearest.
        InputError: a file is missing or malformed, or holds another shape or element type.
    """
    return {name: _load(graph, name, path) for name, path in files.items()}


def _load(graph: Graph, name: str, path: Path) -> Array:
    if name not in graph.inputs:
        names = ", ".join(graph.inputs) or "none"
        hint = nearest(name, graph.inputs)
        raise UsageError(f"the model has no input {name!r}, its inputs are {names}{hint}")
    kind, array = graph.inputs[name], read_array(path)
    is_number = kind.dtype in DTYPE_BYTES  # strings come in many widths
    if array.shape != kind.shape or (is_number and array.dtype != numpy_dtype(kind.dtype)):
        actual = f"{array.dtype}[{','.join(map(str, array.shape))}]"
        raise InputError(f"{path}: holds {actual}, the input {name!r} is {kind}")
    return array


def read_array(path: Path) -> Array:
    """Return the array of a ``.npy`` file.

    Raises:
        InputError: the file is missing or malformed.
    """
    check_file(path, "a .npy file")
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise InputError(f"{path}: not a .npy file of numbers: {error}") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: an archive of arrays, expected a .npy file of one")
    return array


#: More steps than this do not help.
LAST_STEP = 4

_INPUTS = 1 / 8
_WEIGHTS = 1 / 2

#: Random weights of at most so many bytes, as they are stored, are drawn once instead of for each run.
_FEW_BYTES = 1 << 29


def draw_inputs(
    graph: Graph, seed: int, step: int, real_inputs: Mapping[str, Array]
) -> dict[str, Array]:
    """Return the real inputs, and random ones for the others, smaller by ``step``.

    Raises:
        InputError: an input that is missing cannot be drawn.
    """
    missing = {name: kind for name, kind in graph.inputs.items() if name not in real_inputs}
    open_graph = Graph(graph.name, missing, graph.weights, graph.nodes, graph.outputs, graph.types)
    random_arrays = random_inputs(open_graph, seed)
    return {
        **{name: _smaller(array, _INPUTS**step) for name, array in random_arrays.items()},
        **real_inputs,
    }


class RandomWeights:
    """Random weights for a graph and for all that was made of it; drawn on access.

    ``[name]`` is a weight as it is stored; called, it is the same in the element type that operators
    are computed in.
    """

    def __init__(self, graph: Graph, seed: int, step: int = 0, *, keep: bool = True) -> None:
        """Prepare to draw.

        Args:
            step: how many times they are made smaller.
            keep: whether they will be used again, and may be cached unless they are large.
        """
        self._weights = SeededWeights(graph, seed)
        self._factor = _WEIGHTS**step
        kinds = [weight.type for weight in graph.weights.values()]
        self._cache: dict[str, Array] | None = None
        if keep and sum(map(_stored_bytes, kinds)) <= _FEW_BYTES:
            self._cache = {}

    def draw_ahead(self) -> None:
        """Draw all that are cached, before they are asked for."""
        if (cache := self._cache) is None:
            return
        for name in self._weights:
            with suppress(InputError):  # said where it is asked for
                cache[name] = self[name]

    def __call__(self, name: str, kind: TensorType) -> Array:
        """Return the weight of that name for computing with it: floats in float64."""
        if self._cache is None:
            return self._weights.draw(name, self._factor, "float64")
        return converted(self[name], np.dtype("float64")) if kind.is_float else self[name]

    def __getitem__(self, name: str) -> Array:
        if self._cache is None:
            return self._weights.draw(name, self._factor)
        if name not in self._cache:
            self._cache[name] = self._weights.draw(name, self._factor)
        return self._cache[name]


def _stored_bytes(kind: TensorType) -> int:
    """Return how much a weight takes: bfloat16 is held as float32."""
    return kind.size * (4 if kind.dtype == "bfloat16" else DTYPE_BYTES.get(kind.dtype, 1))


def own_weights(graph: Graph, random_weights: RandomWeights) -> Weights:
    """Return the weights that the graph has, and random ones where it has no data."""

    def value(name: str, kind: TensorType) -> Array:
        data = graph.weights[name].data
        return random_weights(name, kind) if data is None else data

    return value


def describe_step(step: int, *, weights: bool) -> str:
    """Return how the inputs (and weights) of a step are called in reports; "" for step 0."""
    if not step:
        return ""
    return f" times {_INPUTS**step:g}" + (f", weights times {_WEIGHTS**step:g}" if weights else "")


def _smaller(array: Array, factor: float) -> Array:
    if factor == 1.0 or array.dtype.kind != "f":
        return array
    return np.asarray(array * array.dtype.type(factor))  # type: ignore[operator]


#: More than this is not written as a model only to be run once.
_MOST_BYTES = 1 << 28


def is_small(graph: Graph) -> bool:
    """Whether the graph's weights are small enough to be written for a check."""
    return weight_bytes(graph) <= _MOST_BYTES


def can_reseed(graph: Graph) -> bool:
    """Whether the graph has weights, small enough to be written again for a check."""
    return weight_bytes(graph) > 0 and is_small(graph)


def reseed(graph: Graph, weights: RandomWeights) -> Graph:
    """Return the graph with other data for its weights; it may use a part of them only."""
    changed = {name: Weight(w.type, weights[name]) for name, w in graph.weights.items()}
    return replace(graph, weights=changed, origin=None)


class Masking:
    """The masks of a graph in runs of their own.

    Args:
        given: names of inputs that stay as they are.

    Attributes:
        has_runs: whether there are masks.
        label: the masked elements of these runs, for reports.
    """

    def __init__(self, graph: Graph, given: Container[str]) -> None:
        masks = find_masks(graph)
        self._masks: dict[str, MaskInput] = {
            name: mask for name, mask in masks.items() if name not in given
        }
        self.has_runs = bool(self._masks)
        names = ", ".join(map(repr, self._masks)).replace(":", "/")  # one ends what is compared
        self.label = f"rows of {names}"

    def runs(self, inputs: Mapping[str, Array]) -> list[dict[str, Array]]:
        """Return inputs with rows masked, until each mask had rows of all sorts; none without masks.

        Args:
            inputs: all other inputs, and kept elements of masks that are added.
        """
        draws = {
            name: list(mask.draws(inputs[name], first=number))
            for number, (name, mask) in enumerate(self._masks.items())
        }
        return [
            {**inputs, **{name: few[run % len(few)] for name, few in draws.items()}}
            for run in range(max(map(len, draws.values()), default=0))
        ]
