"""Kernels for parts of a graph, each timed in onnxruntime beside what that makes of the part itself.

Both are sessions of one call, with all of onnxruntime's own optimizations: one with the kernel's library,
and one of the part's nodes. So a kernel is held against the kernels that onnxruntime has for the part, not
against single operators. Parts are timed without kernels first, which takes a hundredth of what compiling
does; then a kernel is made for the part that may gain most, and so on. No kernel is faster than memory. One
within a larger part is not made if it cannot gain what the larger one's does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from relational_tensat.base.errors import MissingDependencyError, RelationalTensatError
from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostSource
from relational_tensat.custom_ops.calls import op_of
from relational_tensat.custom_ops.library import sources_of
from relational_tensat.custom_ops.objects import begin, finish
from relational_tensat.custom_ops.overrides import BLOCK, checked_override
from relational_tensat.custom_ops.part_calls import PartCall, graph_of, part_bytes
from relational_tensat.custom_ops.part_candidates import (
    candidates_of,
    is_slow,
    single_operators,
    single_part,
)
from relational_tensat.custom_ops.part_times import PartTime, PartTimes, SessionSetting
from relational_tensat.custom_ops.timed_part import TimedPart, node_of
from relational_tensat.mugraph.fusion.candidates import KernelCandidate, pattern_hash
from relational_tensat.mugraph.fusion.integer_parts import with_integers
from relational_tensat.mugraph.fusion.kernel_builder import KernelBuilder
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
from relational_tensat.mugraph.fusion.savings import SavingsModel
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.kernel_finder import KernelSearcher, SearchEffort
from relational_tensat.mugraph.kernels.emit_c import compiler
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.tensor import Graph, Node, TensorType, build_graph
from relational_tensat.tensor.operators import get_operator

if TYPE_CHECKING:
    from relational_tensat.custom_ops.sized_parts import SizedParts

#: Nothing reads and writes memory faster, caches included.
_MOST_BYTES_PER_US = 150_000
#: Of a part's time a kernel has to save so much, and so many microseconds: less is noise.
_LEAST_SHARE, _LEAST_US = 0.03, 0.3
#: A kernel that cannot save so many microseconds, all calls together, is not made.
_LEAST_HOPE_US = 1.0
#: Nor are those that cannot save this share of the graph's time, all of them together: no race sees less.
_LEAST_OF_WHOLE = 0.005
_LITTLE = f"with all that may save less, it cannot save {_LEAST_OF_WHOLE:.1%} of the model's time"
#: Kernels that are made before one is timed: nothing is compiled while times are taken.
_AT_ONCE = 16
_SLOW = "onnxruntime convolves plain images with strides or wide windows faster"


@dataclass(frozen=True, slots=True)
class PartRow:
    """The outcome of equal parts: their times, or the reason why there is no kernel.

    Attributes:
        operators: of the program.
        places: how many there are.
    """

    operators: tuple[str, ...]
    places: int
    kernel_us: float | None = None
    plain_us: float | None = None
    reason: str = ""


def timed_parts(
    graph: Graph,
    costs: CostSource,
    setting: SessionSetting,
    watch: Watch,
    rows: list[PartRow],
    times: PartTimes,
    sized: SizedParts | None = None,
    whole_us: float = 0.0,
) -> Iterator[TimedPart]:
    """Yield kernels for parts of a graph, those of the most elements first, until a watch ends it.

    Of a part that was timed before nothing is run, and no kernel is made that saves nothing.

    Args:
        graph: with weights of one number where it has numbers.
        costs: the prices that builders of kernels ask for.
        setting: as the file is run.
        watch: ends it.
        rows: the outcome of each is added here.
        times: of runs before, and of this one for those to come.
        sized: the parts of a graph with dynamic dims, in place of those of ``graph``.
        whole_us: the modelled time of the graph; no kernels are made that cannot save ``_LEAST_OF_WHOLE``
            of it, all together.

    Raises:
        MissingDependencyError: there is no C compiler.
    """
    builder = builder_of(costs)
    make = partial(builder.make, effort=SearchEffort(1, 0)) if sized is None else sized.make
    parts: dict[str, list[KernelCandidate]] = {}
    found = candidates_of(graph if sized is None else sized.searched)
    if sized is None:
        found = with_integers(graph, found, single_operators(graph))
    for candidate in found:
        if is_slow(candidate):
            rows.append(PartRow(_operators(candidate), 1, reason=_SLOW))
            continue
        try:
            place = candidate if sized is None else sized.at_base(candidate)
        except RelationalTensatError as error:
            rows.append(PartRow(_operators(candidate), 1, reason=str(error)))
            continue
        pattern = pattern_hash(place) if sized is None else sized.pattern(place)
        parts.setdefault(pattern, []).append(place)
    times.look_up([_SESSION, *parts])
    session_us = _session_us(setting, times)
    hopes: list[_Hope] = []
    for pattern, places in sorted(parts.items(), key=lambda each: -_elements(each[1])):
        row = PartRow(_operators(places[0]), len(places))
        if watch.is_over:
            rows.append(replace(row, reason=_NO_TIME))
            continue
        # as before there was a kernel: a run that repeats this one goes on in the same order
        plain, plain_us = None, times.rough_us(pattern)
        if plain_us is None:
            try:
                plain = PartCall(places[0], places[0].nodes, setting)
            except RelationalTensatError as error:
                rows.append(replace(row, reason=str(error)))
                continue
            plain_us = plain.time_us()
            times.learn_rough(pattern, plain_us)
        least_us = session_us + part_bytes(places[0]) / _MOST_BYTES_PER_US
        row = replace(row, plain_us=plain_us)
        hopes.append(_Hope(pattern, places, row, plain_us - least_us, plain))
    gains: dict[str, float] = {}  # of larger parts, by the values that they give
    worth = _without_little(hopes, _LEAST_OF_WHOLE * whole_us, rows)
    for batch in _batches(worth, gains, rows, watch):
        made: list[tuple[_Hope, OwnKernel | None]] = []
        for hope in batch:
            if watch.is_over:
                rows.append(replace(hope.row, reason=_NO_TIME))
                continue
            try:
                made.append((hope, _kernel(hope, make, times)))
            except RelationalTensatError as error:
                rows.append(_refused(hope, error))
        finish()
        for hope, kernel in made:
            try:
                part = None if kernel is None else _timed(hope, kernel, session_us, setting, times)
            except RelationalTensatError as error:
                rows.append(_refused(hope, error))
                continue
            time = (
                times.of(hope.pattern) if part is None else PartTime(part.plain_us, part.kernel_us)
            )
            assert time is not None
            rows.append(replace(hope.row, kernel_us=time.kernel_us, plain_us=time.plain_us))
            for name in hope.values:
                gains[name] = max(gains.get(name, 0.0), time.plain_us - time.kernel_us)
            if part is not None:
                yield part


def gain_us(plain_us: float, kernel_us: float) -> float:
    """Return what one kernel of a part saves; 0 where that is not beyond the noise."""
    saved_us = plain_us - kernel_us
    return saved_us if saved_us > max(_LEAST_US, _LEAST_SHARE * plain_us) else 0.0


def _refused(hope: _Hope, error: RelationalTensatError) -> PartRow:
    """Return why a part has no kernel.

    Raises:
        MissingDependencyError: no part has one.
    """
    if isinstance(error, MissingDependencyError):
        raise error
    return replace(hope.row, reason=str(error))


def _kernel(hope: _Hope, make: Callable[..., OwnKernel], times: PartTimes) -> OwnKernel | None:
    """Return the kernel of parts, verified, while its C is compiled; None where it saves nothing.

    Raises:
        RelationalTensatError: no kernel can be made, or it computes something else.
        MissingDependencyError: there is no C compiler.
    """
    place, known = hope.places[0], times.of(hope.pattern)
    if known is not None:
        is_gaining = gain_us(known.plain_us, known.kernel_us) > 0
        return make(place, was_verified=True) if is_gaining else None
    begin(sources_of([op_of(make(place, was_verified=True))]), compiler())
    return make(place, was_verified=False)


def _timed(
    hope: _Hope, kernel: OwnKernel, session_us: float, setting: SessionSetting, times: PartTimes
) -> TimedPart:
    """Return the kernel of parts with its time: the known one, or of a session.

    Raises:
        RelationalTensatError: it computes something else, or onnxruntime does not run it.
        MissingDependencyError: there is no C compiler.
    """
    place, known = hope.places[0], times.of(hope.pattern)
    nodes = tuple(node_of(each, kernel.key) for each in hope.places)
    if known is None:
        call = PartCall(place, nodes[:1], setting, kernel)
        samples = call.beside_us(hope.plain or PartCall(place, place.nodes, setting))
        times.learn(hope.pattern, *samples)
        known = PartTime(*map(median, samples))
    return TimedPart(
        tuple(hope.places), nodes, kernel, known.kernel_us, known.plain_us,
        session_us, graph_of(place, place.nodes),
    )  # fmt: skip


_NO_TIME = "the time was over before its turn"
_NOT_FASTER = "it takes no longer than memory does"


@dataclass(frozen=True, slots=True)
class _Hope:
    """Equal parts without a kernel.

    Attributes:
        pattern: that they share.
        row: the known facts of them.
        saving_us: the most that a kernel saves in one.
        plain: one of them, in onnxruntime; None where it was timed before.
    """

    pattern: str
    places: Sequence[KernelCandidate]
    row: PartRow
    saving_us: float
    plain: PartCall | None

    @property
    def most_us(self) -> float:
        """The most that kernels save in all of the parts."""
        return self.saving_us * len(self.places)

    @property
    def values(self) -> set[str]:
        """All that the nodes of the parts give."""
        return {name for place in self.places for node in place.nodes for name in node.outputs}


def _without_little(hopes: Sequence[_Hope], least_us: float, rows: list[PartRow]) -> list[_Hope]:
    """Return parts in the order of what they may save, without the last ones that may save little together.

    Args:
        least_us: those that are left out save less, all of them together.
        rows: the outcome of each that is left out is added here.
    """
    in_order = sorted(hopes, key=lambda each: -each.most_us)
    left_us = 0.0
    while in_order and (left_us := left_us + max(0.0, in_order[-1].most_us)) < least_us:
        hope = in_order.pop()
        is_nothing = hope.most_us < _LEAST_HOPE_US
        rows.append(replace(hope.row, reason=_NOT_FASTER if is_nothing else _LITTLE))
    return in_order


def _batches(
    hopes: Sequence[_Hope], gains: Mapping[str, float], rows: list[PartRow], watch: Watch
) -> Iterator[list[_Hope]]:
    """Yield parts that need a kernel, several at once, so that one is compiled while another is verified.

    A part waits for the gains of larger ones only if these decide whether it needs one.

    Args:
        hopes: in the order of what they may save.
        gains: they grow meanwhile.
        rows: the outcome of those that need none is added here.
    """
    batch: list[_Hope] = []
    pending: set[str] = set()
    for hope in hopes:
        if len(batch) == _AT_ONCE or (
            hope.values <= pending | gains.keys() and not pending.isdisjoint(hope.values)
        ):
            yield batch
            batch, pending = [], set()
        if reason := _why_no_kernel(hope, gains, watch):
            rows.append(replace(hope.row, reason=reason))
        else:
            batch.append(hope)
            pending |= hope.values
    if batch:
        yield batch


def _why_no_kernel(hope: _Hope, gains: Mapping[str, float], watch: Watch) -> str:
    """Return why no kernel is made for parts; empty where one is.

    Args:
        gains: the savings of kernels that give values, or have them within.
    """
    if watch.is_over:
        return _NO_TIME
    if hope.most_us < _LEAST_HOPE_US:
        return _NOT_FASTER
    within = min(gains.get(name, 0.0) for name in hope.values)
    return "a larger part's kernel saves more" if hope.saving_us <= within else ""


def builder_of(costs: CostSource) -> KernelBuilder:
    """Return what makes kernels for a processor; nothing is searched without products."""
    searcher = KernelSearcher(SearchOptions(), Watch(), None)
    return KernelBuilder(SavingsModel(costs), searcher, is_for_one=True)


def override_kernel(name: str, costs: CostSource) -> MuGraph:
    """Return the kernel that replaces an operator of onnxruntime, for a block of elements.

    Raises:
        RelationalTensatError: the part cannot be overridden.
    """
    kind = TensorType("float32", (BLOCK,))
    operator = get_operator(name.lower())
    node = Node(operator.name, ("x",), ("y",), operator.canonical((kind,), {}))
    graph = build_graph(name, {"x": kind}, {}, [node], ["y"])
    builder = builder_of(costs)
    return checked_override(name, builder.make(single_part(node, graph), SearchEffort(1, 0)).graph)


def _operators(part: KernelCandidate) -> tuple[str, ...]:
    return tuple(step.op for step in part.program.operators)


def _elements(places: Sequence[KernelCandidate]) -> int:
    """Return how many elements the nodes of equal parts give, all together."""
    graph = places[0].graph
    kinds = (graph.types[name] for node in places[0].nodes for name in node.outputs)
    return len(places) * sum(kind.size for kind in kinds if isinstance(kind, TensorType))


#: The key of times of a session that does nearly nothing.
_SESSION = "nothing"


def _session_us(setting: SessionSetting, times: PartTimes) -> float:
    """Return the microseconds that a session takes of which the only node does nearly nothing."""
    if (known_us := times.rough_us(_SESSION)) is not None:
        return known_us
    kind = TensorType("float32", (1,))
    node = Node("neg", ("x",), ("y",), {})
    graph = build_graph("nothing", {"x": kind}, {}, [node], ["y"])
    time_us = PartCall(single_part(node, graph), [node], setting).time_us()
    times.learn_rough(_SESSION, time_us)
    return time_us
