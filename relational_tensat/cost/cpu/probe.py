"""The graph that is run to measure one operator, and the graph without it that is taken off.

Inside a graph an operator costs less than a session of its own. Calling a session takes longer than a small
kernel. A reshape of a graph's input copies elements where it is a view else, and activations work in place.
So every operand that is an activation comes from a node before it, and both graphs are timed:

    x0_0 → abs → op → reshape     x0_0 → abs → reshape
    x0_1 → abs → op → reshape     x0_1 → abs → reshape      as often as there are copies
     z → relu → out                z → relu → out

The difference, divided by the number of copies, is the operator as a graph has it. Its operand was just
written. Its weights were not touched since the last run, or are in the cache, where a graph's all stay
there. Its result is in memory that others have used. Absolute values are taken because onnxruntime fuses
them with nothing; equal ones of one input it would compute once.

Some node has to read a result. onnxruntime never uses the memory of a result that nobody reads again. The
graph without the operator would write to fresh memory all the time and take longer than the one with it. A
reshape is a view: it takes as long for any tensor. Both graphs have the same number, of something small
where need be.

A configuration is ready to be timed as as many copies as fill a sample. An operator of a graph finds its
weights in the L2 cache, in the L3 cache, or in main memory. Weights of a small graph stay in the L2 cache
from one run to the next. Those of a larger one are fetched from the L3 cache, which others use, too, and
where that has no room left for them, from main memory: a product of 32 rows with a matrix of 2.4 MB took
153 us from the one and 240 us from the other (285 in a graph of 42 MB; AMD EPYC, 2026-11-24).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from relational_tensat.cost.cpu.quiet import clock_of, thread_us
from relational_tensat.cost.cpu.samples import Evictor, Pair
from relational_tensat.cost.cpu.session import l2_bytes, l3_bytes, prepare
from relational_tensat.cost.device import Configuration
from relational_tensat.tensor import (
    Array,
    Graph,
    Node,
    TensorType,
    ValueType,
    Weight,
    build_graph,
    numpy_dtype,
    tensors_of,
)
from relational_tensat.tensor.operators import Use, get_operator
from relational_tensat.tensor.operators.opaque import array_of_constant, constants_of
from relational_tensat.tensor.operators.shapes import NUMBER_DTYPES

#: A graph has to return something: both return the least there is. A graph that has fewer results than the
#: other reads the small one.
_TRIGGER, _OUTPUT, _SMALL = "z", "out", "small"
_TRIGGER_TYPE = TensorType("float32", (1,))
#: The exponent that powers have; onnxruntime has kernels of its own for small integers.
_EXPONENT = 2.0
#: Operators of ONNX that are kept as they are and take their result's shape as this operand.
_TAKE_SHAPE = {"Expand": 1, "Reshape": 1}
#: Element types for which onnxruntime takes absolute values; others are copied.
_HAVE_ABS = NUMBER_DTYPES - {"float16", "bfloat16"}
#: Larger tensors repeat so many numbers: drawing takes longer than the operator. It is prime.
_BLOCK = 1_048_583


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """Two graphs that differ in ``copies`` applications of one operator, and what both are run on.

    Attributes:
        feeds: the graph inputs' values, the same for both.
    """

    with_operator: Graph
    without: Graph
    feeds: Mapping[str, Array]
    copies: int


def make_probe(configuration: Configuration, copies: int) -> Probe:
    """Return the graphs that measure a configuration; every copy has weights of its own.

    Raises:
        InputError: the operator does not take its operands.
    """
    builder = _ProbeBuilder(configuration)
    for copy in range(copies):
        builder.add(copy)
    return Probe(builder.graph(), builder.graph_without(), builder.feeds, copies)


class _ProbeBuilder:
    """Collects the nodes, inputs and weights of both graphs, copy by copy."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._operator = get_operator(configuration.op)
        attrs = dict(configuration.attrs)
        is_opaque = configuration.op == "opaque"
        self._constants = constants_of(attrs) if is_opaque else {}
        weights = (*self._operator.weight_operands(configuration.inputs), *self._constants)
        self._weight_operands = frozenset(weights).difference(configuration.computed)
        self._rng = np.random.default_rng(0)
        self._inputs: dict[str, TensorType] = {_TRIGGER: _TRIGGER_TYPE}
        self._weights: dict[str, Weight] = {}
        small = Node("abs", (_TRIGGER,), (_SMALL,))
        self._nodes, self._producers = [small], [small]
        self.feeds: dict[str, Array] = {_TRIGGER: np.ones(_TRIGGER_TYPE.shape, np.float32)}

    def add(self, copy: int) -> None:
        """Add one application of the operator, and what produces its operands, right before it."""
        configuration = self._configuration
        produced: list[tuple[str, TensorType]] = []
        operands = tuple(
            self._operand(place, kind, copy, produced)
            for place, kind in enumerate(configuration.inputs)
        )
        results = [
            (f"y_{index}_{copy}", part)
            for index, part in enumerate(tensors_of(configuration.output))
        ]
        names = tuple(name for name, _ in results)
        self._nodes.append(Node(configuration.op, operands, names, dict(configuration.attrs)))
        readers = max(len(results), len(produced))
        self._nodes += _read(results, readers, copy)
        self._producers += _read(produced, readers, copy)

    def graph(self) -> Graph:
        return self._build("with", self._nodes, self._weights)

    def graph_without(self) -> Graph:
        """Return the graph without it: only what produces its operands."""
        return self._build("without", self._producers, {})

    def _build(self, name: str, nodes: list[Node], weights: Mapping[str, Weight]) -> Graph:
        trigger = Node("relu", (_TRIGGER,), (_OUTPUT,))
        return build_graph(name, self._inputs, weights, [*nodes, trigger], [_OUTPUT])

    def _operand(
        self, index: int, kind: ValueType, copy: int, produced: list[tuple[str, TensorType]]
    ) -> str:
        """Return the name of one copy's operand: a weight, or what a node has just produced.

        Args:
            produced: the latter are added.
        """
        names = []
        for part, tensor_type in enumerate(tensors_of(kind)):
            if index in self._weight_operands:
                names.append(f"w{index}_{part}_{copy}")
                self._weights[names[-1]] = Weight(tensor_type, self._draw(index, tensor_type))
            else:
                names.append(self._produced(index, part, tensor_type, copy))
                produced.append((names[-1], tensor_type))
        if not isinstance(kind, tuple):
            return names[0]
        self._nodes.append(Node("noop", tuple(names), (f"t{index}_{copy}",)))
        return f"t{index}_{copy}"

    def _produced(self, index: int, part: int, kind: TensorType, copy: int) -> str:
        """Return the name of a value that a node computes from an input of its own."""
        input_name, output_name = f"x{index}_{part}_{copy}", f"p{index}_{part}_{copy}"
        first = f"x{index}_{part}_0"
        self._inputs[input_name] = kind
        self.feeds[input_name] = self.feeds[first] if copy else self._draw(index, kind)
        op = "abs" if kind.dtype in _HAVE_ABS else "identity"
        self._producers.append(Node(op, (input_name,), (output_name,)))
        self._nodes.append(self._producers[-1])
        return output_name

    def _draw(self, index: int, kind: TensorType) -> Array:
        """Return a constant of the file's, or random numbers.

        Floats are in 0.5 to 1.5, which no operator overflows or dislikes. Integers for a whole tensor or
        its slices are 0, as the zero points of weights: kernels on integers have faster ways for these.
        """
        shape = kind.shape
        if index in self._constants:
            return array_of_constant(dict(self._configuration.attrs), index, kind)
        if _TAKE_SHAPE.get(str(dict(self._configuration.attrs).get("op_type"))) == index:
            (output,) = tensors_of(self._configuration.output)
            return np.array(output.shape, numpy_dtype(kind.dtype))
        if self._operator.use_of(index) is Use.EXPONENT:
            return np.full(shape, _EXPONENT, numpy_dtype(kind.dtype))
        if kind.is_float:
            block = self._rng.random(min(kind.size, _BLOCK), dtype=np.float32) + np.float32(0.5)
            return np.resize(block.astype(numpy_dtype(kind.dtype)), shape)
        if kind.rank <= 1 and index in self._weight_operands:
            return np.zeros(shape, numpy_dtype(kind.dtype))
        return self._rng.integers(0, self._integers_below(index), shape).astype(kind.dtype)

    def _integers_below(self, index: int) -> int:
        """Return how many values integers may have: an axis's length where they index it."""
        if self._operator.use_of(index) is not Use.INDEX:
            return 2
        configuration = self._configuration
        return self._operator.index_range(configuration.inputs, dict(configuration.attrs))


def _read(values: list[tuple[str, TensorType]], readers: int, copy: int) -> list[Node]:
    """Return nodes that read one copy's values, each once; with those that read else, so many."""
    nodes = [
        Node("reshape", (name,), (f"read_{name}",), {"shape": (kind.size,)})
        for name, kind in values
    ]
    nodes += [
        Node("reshape", (_SMALL,), (f"read_{_SMALL}_{index}_{copy}",), {"shape": (1, 1)})
        for index in range(readers - len(values))
    ]
    return nodes


#: So many copies of an operator are run that one sample takes about so long.
_SAMPLE_US = 200.0
_MOST_COPIES = 32
#: The least of so many runs says how many copies that are: the first ones are slow.
_ESTIMATES = 5
#: Tensors of one application together: its weights travel through a protobuf file of 2 GiB at most.
MOST_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Prepared:
    """Two functions whose difference is what ``copies`` applications of an operator take."""

    pair: Pair
    copies: int


def prepare_node(
    configuration: Configuration,
    optimizations: str,
    displace: Callable[[], None],
    most_bytes: int = MOST_BYTES,
    threads: int = 1,
) -> Prepared:
    """Return a configuration ready to be timed.

    Args:
        optimizations: onnxruntime's, ``off`` or ``all``.
        displace: brings the caches into the state that weights find them in; an operator without weights
            does not call it, as activations have just been computed.
        most_bytes: of the operands of all copies together.
        threads: that each operator is run by.

    Raises:
        Exception: onnxruntime cannot run it, one of ``session.refusals``.
    """
    pair = _pair(configuration, 1, optimizations, displace, threads)
    clock = pair.clock or thread_us
    longer, shorter = (
        min(clock(function) for _ in range(_ESTIMATES)) for function in (pair.longer, pair.shorter)
    )
    copies = wanted_copies(longer - shorter, operand_bytes(configuration), most_bytes)
    if copies > 1:
        pair = _pair(configuration, copies, optimizations, displace, threads)
    return Prepared(pair, copies)


def operand_bytes(configuration: Configuration) -> int:
    """Return the bytes of an application's operands and result together."""
    kinds = (*configuration.inputs, configuration.output)
    return sum(part.nbytes for kind in kinds for part in tensors_of(kind))


def leave_caches() -> None:
    """Change nothing."""


def _pair(
    configuration: Configuration,
    copies: int,
    optimizations: str,
    displace: Callable[[], None],
    threads: int,
) -> Pair:
    probe = make_probe(configuration, copies)
    return Pair(
        prepare(probe.with_operator, probe.feeds, optimizations, threads),
        prepare(probe.without, probe.feeds, optimizations, threads),
        displace if probe.with_operator.weights else leave_caches,
        clock_of(threads),
    )


def wanted_copies(estimate_us: float, needed_bytes: int, most_bytes: int = MOST_BYTES) -> int:
    """Return how many applications fill a sample, as far as their operands fit.

    Args:
        estimate_us: about the time of one.
        needed_bytes: of its operands and results.
        most_bytes: of those of all copies together.
    """
    most = max(1, min(_MOST_COPIES, most_bytes // max(needed_bytes, 1)))
    return int(np.clip(_SAMPLE_US / max(estimate_us, _SAMPLE_US / most), 1, most))


#: Places of weights; the names of devices end with them. The L3 cache is where those of most graphs are.
IN_L2, IN_L3, IN_MEMORY = "in L2", "", "in memory"
#: Weights of this part of the L2 cache stay there, with the activations.
_STAY_IN_L2 = 0.5
#: Of the L3 cache, which several cores share, and other graphs.
_STAY_IN_L3 = 0.25


def place_of(weights_bytes: int) -> str:
    """Return where a graph finds so many bytes of weights."""
    if weights_bytes <= _STAY_IN_L2 * l2_bytes():
        return IN_L2
    return IN_MEMORY if weights_bytes > _STAY_IN_L3 * l3_bytes() else IN_L3


def displacer(place: str) -> Callable[[], None]:
    """Return what brings the caches into the state in which weights are there."""
    if place == IN_L2:
        return leave_caches
    return Evictor(l2_bytes() if place == IN_L3 else l3_bytes() // 2)


def most_bytes(place: str) -> int:
    """Return how many bytes of operands may be measured at once there."""
    return l2_bytes() if place == IN_L2 else MOST_BYTES
