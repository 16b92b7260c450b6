"""Rounding alone moves a graph's outputs so far: no comparison of rounded values can beat that.

Networks whose weights are all alike give huge logits, whose last digits decide a softmax. There two
correct files differ visibly in float32, and comparing them proves nothing about either.

Some graphs are not continuous. Behind a floor, a ceiling, a conversion to integers or a comparison, values
that lie on a step (whole numbers times 0.1 times 10) come out one off where a product is computed in
another order. No tolerance covers that, and no random input shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import (
    DTYPE_BYTES,
    Array,
    Graph,
    Node,
    TensorType,
    ValueType,
    Weight,
    tensors_of,
)
from relational_tensat.tensor.floats import FLOAT_FORMATS
from relational_tensat.tensor.mask_inputs import find_masks
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import CARRIED
from relational_tensat.verify.comparison import Comparison, relative_error
from relational_tensat.verify.evaluate import (
    Weights,
    evaluate_as_typed,
    evaluate_disturbed,
    weight_of,
)
from relational_tensat.verify.inputs import draw_inputs
from relational_tensat.verify.outputs import compute_outputs, compute_typed_outputs, flat_outputs
from relational_tensat.verify.unknown_operators import UnknownOperators

_COMPARISONS = frozenset({"less", "less_or_equal", "equal"})
#: ONNX's operators that make steps of floats.
_LAST_DIGIT = frozenset({"Floor", "Ceil", "Round", "Sign", "Mod"})
#: Those that make integers by the order of floats: there values would have to be equal, not on a step.
_ORDERING = frozenset({"ArgMax", "ArgMin", "TopK", "NonMaxSuppression", "Hardmax", "MaxPool"})
#: Those that quantize: the kernels and outputs of these are compared elsewhere.
_QUANTIZING = frozenset({"quantize", "dynamic_quantize", "QuantizeLinear", "DynamicQuantizeLinear"})
#: So many floats are compared bit by bit, of an input's random and its whole numbers each, in few draws.
_FLOATS, _MOST_DRAWS = 2048, 64
#: Elements that are computed for that, but in the first two draws.
_MOST_ELEMENTS = 20_000_000
#: Whole numbers are mostly this large.
_SPREAD = 30.0


@dataclass(frozen=True, slots=True)
class Crossings:
    """Discontinuities that a graph reaches with other floats than the original.

    Attributes:
        to_integers: those that outputs of integers depend on, each by operator and value.
        to_floats: all others, those that only order floats among them.
    """

    to_integers: tuple[str, ...] = ()
    to_floats: tuple[str, ...] = ()


def behind_integers(graph: Graph) -> tuple[str, ...]:
    """Return the results of discontinuities that outputs of integers depend on, in order."""
    reached = _leading_to_integers(graph)
    return tuple(
        name
        for node in graph.nodes
        if _is_step(graph, node)
        for name in node.outputs
        if name in reached
    )


def crossings(
    original: Graph, optimized: Graph, draws: Iterable[Mapping[str, Array]], weights: Weights
) -> Crossings:
    """Return where an optimized graph has discontinuities behind other floats than its original.

    Other floats are those of other operators that come out different on the inputs drawn, in their own
    element types.

    Args:
        draws: inputs of both, by name.
        weights: of both.
    """
    terms = _Terms()
    known = {terms.operands(original, node) for node in original.nodes if _is_any(original, node)}
    others = [
        node
        for node in optimized.nodes
        if _is_any(optimized, node) and terms.operands(optimized, node) not in known
    ]
    others = _that_differ(original, optimized, others, draws, weights)
    reached = _leading_to_integers(optimized)
    found: tuple[list[str], list[str]] = [], []
    for node in others:
        is_hard = _is_step(optimized, node) and not reached.isdisjoint(node.outputs)
        found[0 if is_hard else 1].append(_label(node))
    return Crossings(tuple(found[0]), tuple(found[1]))


def crossing_draws(
    graph: Graph, seed: int, inputs: Mapping[str, Array]
) -> Iterator[Mapping[str, Array]]:
    """Draw inputs until there are many floats; every other time whole numbers, where steps lie.

    Args:
        inputs: given ones, which stay as they are.
    """
    size = max((kind.size for kind in graph.inputs.values()), default=1)
    work = sum(part.size for kind in graph.types.values() for part in tensors_of(kind))
    wanted = min(_MOST_DRAWS, 2 * _FLOATS // max(1, size), _MOST_ELEMENTS // max(1, work))
    for number in range(max(2, wanted)):
        drawn = draw_inputs(graph, seed + number, 0, inputs)
        if number % 2:
            drawn = {
                name: array if name in inputs else _whole_numbers(array)
                for name, array in drawn.items()
            }
        yield drawn


def _whole_numbers(array: Array) -> Array:
    if array.dtype.kind != "f":
        return array
    return np.asarray(np.round(np.multiply(array, _SPREAD)))


def _is_step(graph: Graph, node: Node) -> bool:
    """Whether a node makes steps of floats."""
    op = _operator(node)
    if not _floats(graph, node) or op in _QUANTIZING or op in _ORDERING:
        return False
    makes_others = not all(_has_floats(graph.types[name]) for name in node.outputs)
    return op in _COMPARISONS | _LAST_DIGIT or (node.op in ("cast", "opaque") and makes_others)


def _is_any(graph: Graph, node: Node) -> bool:
    return _operator(node) in _ORDERING or _is_step(graph, node)


def _operator(node: Node) -> str:
    """Return the name of an operator, ONNX's where it is carried as it is."""
    return str(node.attrs["op_type"]) if node.op == "opaque" else node.op


def _floats(graph: Graph, node: Node) -> list[str]:
    """Return a node's operands that have floats."""
    return [name for name in node.inputs if _has_floats(graph.types[name])]


def _has_floats(kind: ValueType) -> bool:
    return any(part.is_float or _has_unknown_floats(part) for part in tensors_of(kind))


def _has_unknown_floats(kind: TensorType) -> bool:
    """Whether a tensor has floats whose shape is not known."""
    if kind.dtype in DTYPE_BYTES:
        return False
    from relational_tensat.formats.onnx_types import element_type  # few graphs have these

    return TensorType(element_type(kind), ()).is_float


def _leading_to_integers(graph: Graph) -> set[str]:
    """Return the values that an output depends on that is not of floats, nor has any in it."""
    kinds = {name: tensors_of(graph.types[name]) for name in graph.outputs}
    reached = {name for name, parts in kinds.items() if not any(map(_may_hold_floats, parts))}
    for node in reversed(graph.nodes):
        if not reached.isdisjoint(node.outputs):
            reached.update(node.inputs)
    return reached


def _may_hold_floats(kind: TensorType) -> bool:
    """Whether a tensor is of floats, or a sequence, a map or a tensor of unknown shape has some."""
    if not kind.dtype.startswith(CARRIED):
        return kind.is_float
    from relational_tensat.formats.onnx_types import holds_floats  # only models of ONNX have these

    return holds_floats(kind)


class _Terms:
    """Numbers for what values are computed as: the same in several graphs for the same operators."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._of_graphs: dict[int, dict[str, int]] = {}

    def operands(self, graph: Graph, node: Node) -> frozenset[int]:
        """Return the numbers of a node's floats; their order does not matter."""
        if id(graph) not in self._of_graphs:
            self._of_graphs[id(graph)] = self._terms(graph)
        terms = self._of_graphs[id(graph)]
        return frozenset(terms[name] for name in _floats(graph, node))

    def _terms(self, graph: Graph) -> dict[str, int]:
        terms = {name: self._number(name) for name in graph.inputs}
        for name, weight in graph.weights.items():
            terms[name] = self._number(_number_of(weight) or name)
        for node in graph.nodes:
            if node.op == "fill":
                kind = graph.types[node.outputs[0]]
                terms[node.outputs[0]] = self._number((repr(node.attrs["value"]), kind))
                continue
            kinds = tuple(graph.types[name] for name in node.inputs)
            attrs = get_operator(node.op).canonical(kinds, node.attrs)
            key = (node.op, repr(sorted(attrs.items())), tuple(terms[n] for n in node.inputs))
            for index, name in enumerate(node.outputs):
                terms[name] = self._number((key, index))
        return terms

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _number_of(weight: Weight) -> object:
    """Return what a weight of equal elements is as a ``fill``; None for others."""
    if weight.data is None:
        return None
    array = np.asarray(weight.data)
    if array.dtype.kind not in "fiub" or not array.size or (array != array.flat[0]).any():
        return None
    return repr(float(array.flat[0])), weight.type


def _that_differ(
    original: Graph,
    optimized: Graph,
    nodes: Sequence[Node],
    draws: Iterable[Mapping[str, Array]],
    weights: Weights,
) -> list[Node]:
    """Return nodes of the optimized graph with other floats than any discontinuity of the original has."""
    if not nodes:
        return []
    unknown = UnknownOperators()
    before = {name for node in original.nodes if _is_any(original, node) for name in node.inputs}
    after = {name for node in nodes for name in node.inputs}
    different: set[str] = set()
    found: list[Node] = []
    try:
        for inputs in draws:
            if len(found) == len(nodes):
                break
            known, computed = (
                {
                    name: _content(value)
                    for name, value in evaluate_as_typed(
                        _computing(graph, names), inputs, weights, unknown
                    ).items()
                }
                for graph, names in ((original, before), (optimized, after))
            )
            contents = set(known.values())
            different |= {name for name, each in computed.items() if each not in contents}
            found = [node for node in nodes if not different.isdisjoint(_floats(optimized, node))]
    except InputError:
        return list(nodes)  # it cannot be told: they may be others
    return found


def _computing(graph: Graph, names: Iterable[str]) -> Graph:
    """Return the part of a graph that computes some of its values."""
    outputs = tuple(dict.fromkeys(names))
    needed, nodes = set(outputs), list[Node]()
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            nodes.append(node)
            needed.update(node.inputs)
    return replace(graph, nodes=tuple(reversed(nodes)), outputs=outputs)


def _content(value: Any) -> bytes:
    array = np.asarray(value)
    return array.tobytes() if array.dtype.kind != "f" else (array + 0.0).tobytes()  # -0 is 0


def _label(node: Node) -> str:
    name = _operator(node) if node.op == "opaque" else " or ".join(get_operator(node.op).onnx)
    return f"{name} at {node.outputs[0]!r}"


#: Computed numbers are off by so many roundings: sums of many terms round at each.
_COARSER = 32.0
#: Runs that are rounded otherwise.
_RUNS = 4
#: The relative error of rounding to an element type.
_ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def excuse_rounding(
    comparison: Comparison,
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    seed: int,
    unknown: UnknownOperators | None = None,
    *,
    large_sums: bool = False,
) -> None:
    """Take errors that rounding alone explains out of a comparison; these outputs prove nothing.

    Args:
        graph, inputs, weights: the original, and what it was compared on.
        seed: of the rounding errors.
        unknown: computes opaque operators.
        large_sums: count what another order of sums moves, too: a summand that is large in a whole row (a
            mask of -10000) leaves few digits to others. One that leaves none to them moves nothing.
    """
    if comparison.ok:
        return
    try:
        moved = moved_by_rounding(graph, inputs, weights, seed, unknown)
        if large_sums:
            exact = compute_typed_outputs(graph, inputs, weights, unknown)
            for operand in (0, 1):
                halved = _added_in_halves(graph, operand)
                other = compute_typed_outputs(halved, inputs, weights, unknown)
                errors = [relative_error(a, b) for a, b in zip(exact, other, strict=True)]
                moved = [max(pair) for pair in zip(moved, errors, strict=True)]
        comparison.excuse(moved, "rounding alone")
    except InputError:
        return  # an operator cannot be computed here: nothing is known, nothing is excused


def moved_by_rounding(
    graph: Graph,
    inputs: Mapping[str, Array],
    weights: Weights,
    seed: int,
    unknown: UnknownOperators | None = None,
) -> list[float]:
    """Return, per output, how far two runs are apart at most, of which all or one rounds otherwise.

    Inputs, weights and what is to be quantized are off by ``_COARSER`` roundings; no smaller difference
    passes a quantization. The error is what comes out, never a multiple of it: one step is no sign of two.

    Masks are not moved: with a mask near 1, (1 - mask) times the lowest number is far from 0.

    Raises:
        InputError: an operator cannot be computed.
    """
    # Of opaque operators: the next number to a factor of Resize is another size.
    fixed = {name for node in graph.nodes if node.op == "opaque" for name in node.inputs}
    masks = find_masks(graph)
    results = [compute_outputs(graph, inputs, weights, unknown)]
    for number in range(_RUNS):
        rng = np.random.default_rng([seed, number])

        def value(name: str, kind: TensorType, rng: np.random.Generator = rng) -> Array:
            weight = weight_of(weights, name, kind)
            return weight if name in fixed else _perturb(weight, kind, rng)

        moved_inputs = {
            name: inputs[name] if name in masks else _perturb(inputs[name], kind, rng)
            for name, kind in graph.inputs.items()
        }
        disturbed = evaluate_disturbed(
            graph, moved_inputs, value, unknown, partial(_perturb, rng=rng)
        )
        results.append(flat_outputs(graph, disturbed))
    return [
        max(relative_error(a, b) for a, b in combinations(outputs, 2))
        for outputs in zip(*results, strict=True)
    ]


def _added_in_halves(graph: Graph, operand: int) -> Graph:
    """Return a graph whose sums and differences of floats take in one of their operands half by half."""
    nodes: list[Node] = []
    types = dict(graph.types)
    for node in graph.nodes:
        kind = graph.types[node.outputs[0]]
        if node.op not in ("add", "sub") or not (isinstance(kind, TensorType) and kind.is_float):
            nodes.append(node)
            continue
        other = node.inputs[1 - operand]
        half, first = (f"{node.outputs[0]}'{part}" for part in ("half", "first"))
        types |= {half: graph.types[node.inputs[operand]], first: kind}
        operands = (half, other) if operand == 0 else (other, half)
        nodes += [
            Node("smul", (node.inputs[operand],), (half,), {"value": 0.5}),
            Node(node.op, operands, (first,)),
            Node("add" if operand == 0 else node.op, (first, half), node.outputs),
        ]
    return replace(graph, nodes=tuple(nodes), types=types)


def _perturb(array: Any, kind: TensorType, rng: np.random.Generator) -> Array:
    """Return an array with each row and each column off by roundings, up or down.

    Infinities and numbers about the lowest of the type stay as they are: they are masks, and what
    tells one such number from the next is no rounding.
    """
    if not kind.is_float:
        return np.asarray(array)
    moved = exact = np.asarray(array, dtype=np.float64)
    for axis in {0, kind.rank - 1} if kind.rank else ():
        shape = [1] * kind.rank
        shape[axis] = kind.shape[axis]
        signs = rng.choice((-1.0, 1.0), size=shape)
        moved = moved * (1.0 + _COARSER * _ROUNDING[kind.dtype] * signs)
    return np.where(FLOAT_FORMATS[kind.dtype].is_mask(exact), exact, moved)
