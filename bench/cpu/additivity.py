"""Do single operators add up to their graph? Both are timed round by round, in the same moments.

Times of a graph and of its operators that were measured minutes apart differ by whatever others did to
the machine in between. So every round takes each distinct operator once, in random order, and the whole
graph several times in between, and the two sums are compared within the round.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from relational_tensat.cost.cpu.graph_times import RepeatedGraph, repeated
from relational_tensat.cost.cpu.onnxruntime_device import KIND, OnnxRuntimeDevice
from relational_tensat.cost.cpu.probe import Prepared
from relational_tensat.cost.cpu.quiet import thread_us
from relational_tensat.cost.cpu.samples import warm
from relational_tensat.cost.cpu.session import prepare, refusals
from relational_tensat.cost.device import PROTOCOLS, Configuration
from relational_tensat.cost.key import graph_configurations, nodes_of
from relational_tensat.tensor import Array, Graph, Node, TensorType, build_graph

#: The whole graph is timed so often in a round, spread over it.
_WHOLES = 6
#: Rounds that there are at least, however long they take.
_LEAST_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Additivity:
    """The sum of a graph's single operators over the whole, less what calling a session takes.

    Attributes:
        median, p10, p90: over the rounds.
        unmeasured: operators that onnxruntime cannot run alone; they are missing in the sum.
    """

    median: float
    p10: float
    p90: float
    rounds: int
    unmeasured: int


def additivity(
    graph: Graph, feeds: Mapping[str, Array], device: OnnxRuntimeDevice, seconds: float
) -> Additivity:
    """Time a graph and its operators, interleaved, onnxruntime's graph optimizations off.

    Args:
        graph: what depends on weights only is folded.
        seconds: wall seconds after which no further round begins.
    """
    counts = operator_counts(graph)
    prepared: dict[Configuration, Prepared] = {}
    for configuration in counts:
        with suppress(*refusals()):  # counted below
            prepared[configuration] = device.prepare(configuration)
    graph_runner, call = repeated(prepare(graph, feeds)), empty_session()
    rng = np.random.default_rng(0)
    nodes, ratios = list(prepared), list[float]()
    start_s = time.perf_counter()
    while len(ratios) < _LEAST_ROUNDS or time.perf_counter() < start_s + seconds:
        order = [nodes[index] for index in rng.permutation(len(nodes))]
        ratios.append(_round(order, prepared, counts, graph_runner, call))
    p10, median, p90 = np.percentile(ratios, (10, 50, 90)).tolist()
    return Additivity(median, p10, p90, len(ratios), len(counts) - len(prepared))


def operator_counts(graph: Graph) -> Counter[Configuration]:
    """Return how often each configuration that is one ONNX node, and runs, is in a graph."""
    return Counter(
        part
        for configuration in graph_configurations(graph)
        for part in nodes_of(configuration)
        if not PROTOCOLS[KIND].is_free(part)
    )


def _round(
    order: Sequence[Configuration],
    prepared: Mapping[Configuration, Prepared],
    counts: Mapping[Configuration, int],
    graph_runner: RepeatedGraph,
    call: RepeatedGraph,
) -> float:
    """Return one round's ratio."""
    total_us = 0.0
    wholes_us: list[float] = []
    for part in _parts(order):
        wholes_us.append(thread_us(graph_runner.run) / graph_runner.times)
        total_us += sum(
            counts[configuration] * _once_us(prepared[configuration]) for configuration in part
        )
    return total_us / (float(np.mean(wholes_us)) - thread_us(call.run) / call.times)


def _once_us(prepared: Prepared) -> float:
    """Return what one application takes, timed once."""
    pair, taken_us = prepared.pair, []
    for function in (pair.longer, pair.shorter):
        warm(function, pair.before)
        taken_us.append(thread_us(function))
    return (taken_us[0] - taken_us[1]) / prepared.copies


def _parts(order: Sequence[Configuration]) -> Iterator[Sequence[Configuration]]:
    size = -(-len(order) // _WHOLES)
    return (order[start : start + size] for start in range(0, len(order), size))


def empty_session() -> RepeatedGraph:
    """Return a session that does next to nothing: what it takes is what calling one takes."""
    number = TensorType("float32", (1,))
    graph = build_graph("call", {"x": number}, {}, [Node("relu", ("x",), ("y",))], ["y"])
    return repeated(prepare(graph, {"x": np.ones(number.shape, np.float32)}))
