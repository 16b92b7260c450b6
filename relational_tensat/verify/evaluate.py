"""Running graphs in NumPy, operator by operator: in float64, or in their own element types.

How much memory that takes at the least is known before anything is allocated.
"""

from __future__ import annotations

import ctypes
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from relational_tensat.base.errors import InputError, nearest
from relational_tensat.tensor import (
    DTYPE_BYTES,
    Array,
    Graph,
    Node,
    TensorType,
    ValueType,
    numpy_dtype,
    tensors_of,
)
from relational_tensat.tensor.graph import describe
from relational_tensat.tensor.operators import get_operator
from relational_tensat.verify.random_values import SeededWeights, random_inputs
from relational_tensat.verify.unknown_operators import UnknownOperators

#: Operators compute with floats in float64.
_FLOAT_BYTES = 8
_GIB = 2**30


def check_memory(graph: Graph, n_runs: int = 1) -> None:
    """Check that the machine has the memory to evaluate a graph, on so many inputs at a time.

    Raises:
        InputError: it has not; gives the least that is needed.
    """
    inputs = sum(map(_bytes, graph.inputs.values()))
    needed = n_runs * (inputs + peak_bytes(graph))
    machine = memory_bytes()
    if machine is not None and needed > machine:
        raise InputError(
            f"computing it takes {needed / _GIB:,.1f} GiB, the machine has {machine / _GIB:,.1f}"
        )


def peak_bytes(
    graph: Graph, nodes: Sequence[Node] | None = None, outputs: Sequence[str] | None = None
) -> int:
    """Return the most bytes that values take at a time, each from its first to its last use.

    Args:
        nodes, outputs: of the graph, instead of all of it.
    """
    nodes = graph.nodes if nodes is None else nodes
    outputs = graph.outputs if outputs is None else outputs
    uses = Counter(outputs)
    for node in nodes:
        uses.update(set(node.inputs))
    alive: dict[str, int] = {}
    current = peak = 0
    for node in nodes:
        for name in (*node.inputs, *node.outputs):
            if name not in alive:
                is_view = name in node.outputs and get_operator(node.op).may_be_view
                alive[name] = (
                    0 if is_view or _is_uniform(graph, name) else _bytes(graph.types[name])
                )
                current += alive[name]
        peak = max(peak, current)
        for name in set(node.inputs):
            uses[name] -= 1
        for name in {*node.inputs, *node.outputs}:
            if not uses[name]:
                current -= alive.pop(name, 0)
    return peak


@contextmanager
def one_product_thread() -> Iterator[None]:
    """Let NumPy's matrix products take one thread each, where its OpenBLAS can be told.

    Several wait for each other by spinning: products of few rows gain little, and lose most of their time
    on cores that are not idle.
    """
    library = _openblas()
    before = library.scipy_openblas_get_num_threads64_() if library else 0
    try:
        if library:
            library.scipy_openblas_set_num_threads64_(1)
        yield
    finally:
        if library:
            library.scipy_openblas_set_num_threads64_(before)


@cache
def _openblas() -> ctypes.CDLL | None:
    """Return the OpenBLAS that NumPy has brought along and loaded; None where it has another library."""
    for path in Path(np.__file__).parents[1].glob("numpy.libs/libscipy_openblas64_*"):
        library = ctypes.CDLL(str(path))
        if hasattr(library, "scipy_openblas_set_num_threads64_"):
            return library
    return None


def memory_bytes() -> int | None:
    """Return the memory of the machine; None where the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _is_uniform(graph: Graph, name: str) -> bool:
    """Whether a value is a weight that is held as one number."""
    weight = graph.weights.get(name)
    return weight is not None and weight.data is not None and not any(weight.data.strides)


def _bytes(kind: ValueType) -> int:
    parts = tensors_of(kind)
    return sum(part.size * _FLOAT_BYTES if part.is_float else part.nbytes for part in parts)


__all__ = ["SeededWeights", "Weights", "evaluate_graph", "random_inputs"]

#: Weights by name, or a function that gives them one at a time.
Weights: TypeAlias = Mapping[str, Array] | Callable[[str, TensorType], Array]


def weight_of(weights: Weights, name: str, kind: TensorType) -> Array:
    """Return a weight, of those that are given."""
    return weights[name] if isinstance(weights, Mapping) else weights(name, kind)


def evaluate_graph(
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    unknown: UnknownOperators | None = None,
) -> dict[str, Any]:
    """Compute all outputs of a graph, floats in float64 and integers in their own type.

    A weight is requested at its first use and dropped after its last, as are all values.

    Args:
        inputs: by name; names that the graph does not know are not looked at.
        unknown: computes opaque operators; without, they are computed in onnxruntime or not at all.

    Returns:
        An array for every output name; for an output that is a tuple, a tuple of arrays.

    Raises:
        InputError: an input or weight is missing or of the wrong shape, or an operator cannot be
            computed for these values.
        MissingDependencyError: the graph has opaque operators, and onnxruntime is not installed.
    """
    return evaluate_together(graph, [inputs], weights, unknown)[0]


def evaluate_together(
    graph: Graph,
    draws: Sequence[Mapping[str, Array]],
    weights: Weights,
    unknown: UnknownOperators | None = None,
) -> list[dict[str, Any]]:
    """Compute all outputs as ``evaluate_graph``, on several inputs at a time: weights are taken once."""
    once = _TakenOnce(_Run(graph, {}, weights), len(draws))
    runs = [_Run(graph, inputs, once, unknown=unknown) for inputs in draws]
    with np.errstate(all="ignore"):  # what overflows is infinite in the result
        for _ in zip(*(run.steps(graph.nodes, graph.outputs) for run in runs), strict=True):
            pass
        return [run.outputs(graph.outputs) for run in runs]


def evaluate_as_typed(
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    unknown: UnknownOperators | None = None,
    *,
    skips_nan: bool = False,
) -> dict[str, Any]:
    """Compute all outputs as ``evaluate_graph``, every result rounded to its own element type.

    Args:
        skips_nan: extrema pass over NaN; without, one that is NaN makes the result NaN.
    """
    with np.errstate(all="ignore"):
        run = _Run(graph, inputs, weights, rounds=True, skips_nan=skips_nan, unknown=unknown)
        return run.run(graph.nodes, graph.outputs)


def evaluate_disturbed(
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    unknown: UnknownOperators | None,
    disturb: Callable[[Array, TensorType], Array],
) -> dict[str, Any]:
    """Compute all outputs as ``evaluate_graph``, with what ``disturb`` makes of floats to be quantized."""
    with np.errstate(all="ignore"):
        return _Run(graph, inputs, weights, unknown=unknown, disturb=disturb).run(
            graph.nodes, graph.outputs
        )


def evaluate_nodes(
    graph: Graph, nodes: Sequence[Node], names: Sequence[str], weights: Mapping[str, Array]
) -> dict[str, Any]:
    """Compute values of some nodes that depend on weights only, each result in its own element type.

    Every operator's result is rounded to its own element type before the next one takes it, as where the
    model runs. In float64, values that are then cut to whole numbers would come out different.

    Args:
        nodes: in order, all that the values depend on.
        names: of the values, which are tensors of numbers.

    Returns:
        Values by name, in their declared element types (bfloat16 as float32).

    Raises:
        InputError: an operator cannot be computed for these values.
    """
    with np.errstate(all="ignore"):  # a type has infinities for what it cannot hold
        values = _Run(graph, {}, weights, rounds=True, keeps_types=True).run(nodes, names)
        return {
            name: converted(value, numpy_dtype(tensors_of(graph.types[name])[0].dtype))
            for name, value in values.items()
        }


class _Run:
    """One evaluation: the values that are still needed.

    Args:
        rounds: round every result to its element type; without, floats are computed in float64.
        keeps_types: values that operators only move stay in their element types, and are no copies.
        skips_nan: extrema do not see NaN.
        unknown: computes opaque operators.
        disturb: replaces floats that are to be quantized; None for nothing.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[str, Array],
        weights: Weights,
        *,
        rounds: bool = False,
        keeps_types: bool = False,
        skips_nan: bool = False,
        unknown: UnknownOperators | None = None,
        disturb: Callable[[Array, TensorType], Array] | None = None,
    ) -> None:
        self.keeps_types = keeps_types
        self.graph = graph
        self.inputs = inputs
        self.weights = weights
        self.rounds = rounds
        self.skips_nan = skips_nan
        self.unknown = unknown
        self.disturb = disturb
        self.values: dict[str, Any] = {}

    def run(self, nodes: Sequence[Node], outputs: Sequence[str]) -> dict[str, Any]:
        for _ in self.steps(nodes, outputs):
            pass
        return self.outputs(outputs)

    def steps(self, nodes: Sequence[Node], outputs: Sequence[str]) -> Iterator[None]:
        """Compute one node after the other, and drop what is not needed any more."""
        uses = Counter(outputs)
        for node in nodes:
            uses.update(set(node.inputs))
        for node in nodes:
            self._compute(node)
            for name in set(node.inputs):
                uses[name] -= 1
            for name in (*node.inputs, *node.outputs):
                if not uses[name]:
                    self.values.pop(name, None)
            yield

    def outputs(self, names: Sequence[str]) -> dict[str, Any]:
        """Return values that were computed, or are inputs or weights."""
        return {name: self._value(name) for name in names}

    def _compute(self, node: Node) -> None:
        operator = get_operator(node.op)
        operands = [self._value(name) for name in node.inputs]
        if self.skips_nan:
            operands = [operator.skipping_nan(operand) for operand in operands]
        types = tuple(self.graph.types[name] for name in node.inputs)
        attrs = operator.normalize(node.attrs)
        if self.keeps_types and not self._moves(node):
            pairs = zip(operands, types, strict=True)
            operands = [_as_computed(value, kind) for value, kind in pairs]
        if self.disturb is not None and node.op == "quantize":
            kind = types[0]
            assert isinstance(kind, TensorType)
            operands[0] = self.disturb(operands[0], kind)
        try:
            if self.unknown is not None and node.op == "opaque":
                result = self.unknown.compute(operands, types, attrs)
            elif self.rounds:
                from relational_tensat.tensor.machine import computed  # few evaluations round

                result = computed(node.op, operands, types, attrs, self._type(node))
            else:
                result = operator.evaluate_typed(operands, types, attrs)
        except InputError as error:
            raise InputError(f"{describe(node)}: {error}") from error
        parts = result if operator.multi_output else (result,)
        for name, part in zip(node.outputs, parts, strict=True):
            self.values[name] = part if isinstance(part, tuple | list) else np.asarray(part)

    def _moves(self, node: Node) -> bool:
        """Whether a node gives the elements of one operand elsewhere, and nothing else."""
        operator = get_operator(node.op)
        if not (operator.may_be_view and operator.is_exact) or operator.multi_output:
            return False
        kinds = [self.graph.types[name] for name in (*node.inputs, *node.outputs)]
        dtypes = {kind.dtype if isinstance(kind, TensorType) else "" for kind in kinds}
        return len(kinds) == 2 and len(dtypes - {""}) == len(dtypes) == 1

    def _type(self, node: Node) -> ValueType:
        kinds = [self.graph.types[name] for name in node.outputs]
        if not get_operator(node.op).multi_output:
            return kinds[0]
        return tuple(part for kind in kinds for part in tensors_of(kind))

    def _value(self, name: str) -> Any:
        if name not in self.values:
            if name in self.graph.inputs:
                value, kind = self._input(name), self.graph.inputs[name]
            else:
                value, kind = self.weight(name), self.graph.weights[name].type
            self.values[name] = _as_evaluated(value, kind, name, keeps_type=self.keeps_types)
        return self.values[name]

    def _input(self, name: str) -> Any:
        if name not in self.inputs:
            raise InputError(f"the input {name!r} is not given{nearest(name, self.inputs)}")
        return self.inputs[name]

    def weight(self, name: str) -> Any:
        """Return a weight, as it was given.

        Raises:
            InputError: it was not.
        """
        if not isinstance(self.weights, Mapping):
            return self.weights(name, self.graph.weights[name].type)
        if name not in self.weights:
            raise InputError(f"the weight {name!r} is not given{nearest(name, self.weights)}")
        return self.weights[name]


class _TakenOnce:
    """Weights, floats in float64, for several runs that each take a weight once, at about the same time."""

    def __init__(self, run: _Run, n_runs: int) -> None:
        self._run = run
        self._n_runs = n_runs
        self._held: dict[str, tuple[Array, int]] = {}

    def __call__(self, name: str, kind: TensorType) -> Array:
        """Return a weight; the last run lets it go."""
        if name not in self._held:
            value = _as_evaluated(self._run.weight(name), kind, name)
            self._held[name] = value, self._n_runs
        value, left = self._held.pop(name)
        if left > 1:
            self._held[name] = value, left - 1
        return value


def _as_evaluated(value: Any, kind: TensorType, name: str, *, keeps_type: bool = False) -> Any:
    """Return a value as operators compute with it: floats in float64, unless it keeps its type.

    Raises:
        InputError: its shape is not the declared one.
    """
    if kind.dtype not in DTYPE_BYTES:
        return value  # strings and sequences, which opaque operators take as they are
    array = np.asarray(value)
    if array.shape != kind.shape:
        raise InputError(f"{name!r} has shape {list(array.shape)}, expected {kind}")
    return array if keeps_type else _as_computed(array, kind)


def _as_computed(array: Any, kind: ValueType) -> Any:
    """Return a tensor as operators compute with it; any other value as it is."""
    if not isinstance(kind, TensorType) or kind.dtype not in DTYPE_BYTES:
        return array
    return converted(array, np.dtype("float64") if kind.is_float else numpy_dtype(kind.dtype))


def converted(array: Array, dtype: np.dtype[np.generic]) -> Array:
    """Return the array in another element type; a view of one number stays one."""
    if array.dtype == dtype:
        return array
    if array.size > 1 and not any(array.strides):  # one number, however large the tensor
        return np.broadcast_to(array[(0,) * array.ndim].astype(dtype), array.shape)
    return array.astype(dtype)
