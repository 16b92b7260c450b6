"""Which parts are sought: those that the cheapest graph could have, and no others."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from bench.models.builder import GraphBuilder
from relational_tensat.cost import open_source
from relational_tensat.mugraph.fusion import kernel_fusion
from relational_tensat.mugraph.fusion.candidates import (
    CheapestPlan,
    FusionPlan,
    KernelCandidate,
    Key,
    Version,
)
from relational_tensat.mugraph.fusion.kernel_fusion import FusionResult, own_kernels
from relational_tensat.mugraph.fusion.own_kernel import KernelCosts
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.tensor import Graph

_LAUNCH_US = 5.0


def _part(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> KernelCandidate:
    return cast(KernelCandidate, SimpleNamespace(inputs=inputs, outputs=outputs))


def _cheapest(
    graph: Graph, parts: list[tuple[str, KernelCandidate]], costs_us: dict[Key, float]
) -> CheapestPlan:
    plan = FusionPlan(lambda node, graph: 4.0)
    plan.add(Version(graph), parts)
    return plan.cheapest(costs_us)


def _row(length: int) -> Graph:
    b = GraphBuilder("row")
    value = b.input("x", 2, 2)
    for _ in range(length):
        value = b.op("tanh", value)
    return b.build(value)


def test_the_cheapest_graph_is_the_shortest_path_along_a_row() -> None:
    draw = random.Random(0)
    for _ in range(20):
        length = draw.randrange(2, 7)
        graph = _row(length)
        values = ["x", *(node.outputs[0] for node in graph.nodes)]
        parts, costs_us = [], cast(dict[Key, float], {})
        best = [0.0, *(float("inf") for _ in graph.nodes)]
        steps = {(place, place + 1): 4.0 for place in range(length)}
        for start in range(length):
            for end in range(start + 2, length + 1):
                pattern = f"{start}-{end}"
                parts.append((pattern, _part((values[start],), (values[end],))))
                if draw.random() < 0.7:
                    costs_us[pattern, draw.choice((1, 2))] = draw.uniform(3, 12)
        steps |= {
            (int(pattern[0]), int(pattern[2])): cost_us
            for (pattern, _), cost_us in costs_us.items()
        }
        for (start, end), cost_us in sorted(steps.items()):
            best[end] = min(best[end], best[start] + cost_us)
        planned = _cheapest(graph, parts, costs_us)
        assert planned.cost_us == pytest.approx(best[-1])
        operators = length - sum(int(p[2]) - int(p[0]) for p, _ in planned.keys)
        assert planned.cost_us == pytest.approx(
            4.0 * operators + sum(costs_us[key] for key in planned.keys)
        )


def test_a_kernel_of_two_values_is_paid_once() -> None:
    b = GraphBuilder("two")
    x = b.input("x", 2, 2)
    one, other = b.op("tanh", x), b.op("relu", x)
    graph = b.build(b.op("add", one, other))
    both = [("both", _part(("x",), (one, other)))]
    for cost_us, expected in ((7.0, 11.0), (9.0, 12.0)):
        planned = _cheapest(graph, both, {("both", 1): cost_us})
        assert planned.cost_us == expected
        assert planned.keys == ({("both", 1)} if cost_us < 8 else set())


def _products() -> Graph:
    """Two products one after the other, with functions between and after them."""
    b = GraphBuilder("products")
    first = b.op("tanh", b.op("matmul", b.input("x", 8, 16), b.weight("v", 16, 16)))
    return b.build(b.op("relu", b.op("matmul", first, b.weight("w", 16, 16))))


def _sought(graph: Graph) -> FusionResult:
    return own_kernels(
        [[Version(graph)]], open_source("t4"), SearchOptions(max_operators=4, max_kernels=1)
    )


@pytest.mark.nightly
def test_the_graph_is_as_cheap_as_with_all_parts_and_fewer_are_sought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = _sought(_products())
    left = [row for row in few.regions if row.reason == kernel_fusion._NO_GAIN]
    assert left and few.parts == few.total
    monkeypatch.setattr(
        kernel_fusion._KernelFusion, "_wanted", lambda self, plan, least_us: {*least_us}
    )
    every = _sought(_products())
    assert every.parts == few.parts + len(left)
    assert {kernel.key for kernel in few.kernels} < {kernel.key for kernel in every.kernels}
    least_us = [
        min(row.kernel_us or 0 for row in sought.regions if len(row.operators) == 4)
        for sought in (few, every)
    ]
    assert _LAUNCH_US < least_us[0] == least_us[1] < 2 * _LAUNCH_US  # no other graph has one launch


def test_the_cheapest_graph_may_have_parts_of_several_versions() -> None:
    one, other = _row(4), _row(3)  # the second has another way from the first value to the last
    ends = {"x": 0, one.nodes[0].outputs[0]: 1, one.nodes[-1].outputs[0]: 2}
    shared = {other.nodes[0].outputs[0]: 1, other.nodes[-1].outputs[0]: 2}
    begun = ("begun", _part(("x",), (one.nodes[0].outputs[0],)))
    ended = ("ended", _part((other.nodes[0].outputs[0],), (other.nodes[-1].outputs[0],)))
    costs_us: dict[Key, float] = {("begun", 1): 1.0, ("ended", 1): 3.0}
    found = []
    for classes in (shared, {}):  # without, what gives other values is of no use
        plan = FusionPlan(lambda node, graph: 4.0)
        plan.add(Version(one, "model", ends), [begun])
        plan.add(Version(other, "cheapest", classes), [ended])
        found.append(plan.cheapest(costs_us))
    assert [planned.cost_us for planned in found] == [1.0 + 3.0, 1.0 + 3 * 4.0]
    assert found[0].keys == costs_us.keys()


def test_what_only_weights_give_is_free() -> None:
    b = GraphBuilder("folded")
    weights = [b.weight(name, 4, 4) for name in "vw"]
    graph = b.build(b.op("matmul", b.input("x", 4, 4), b.op("add", *weights)))
    assert _cheapest(graph, [], {}).cost_us == 4.0


def test_parts_of_later_graphs_are_sought_when_those_before_are_settled() -> None:
    b = GraphBuilder("other")
    x = b.input("x", 8, 16)
    far = b.op("tanh", b.op("matmul", x, b.op("add", b.weight("v", 16, 16), b.weight("w", 16, 16))))
    other = b.build(far)
    first = _products()
    classes = {graph.outputs[0]: 1 for graph in (first, other)}
    asked: list[str] = []

    def rounds() -> Iterator[list[Version]]:
        for graph, source in ((first, "model"), (other, "other")):
            asked.append(source)
            yield [Version(graph, source, {graph.outputs[0]: classes[graph.outputs[0]]})]

    options = SearchOptions(max_operators=4, max_kernels=1)
    sought = own_kernels(rounds(), open_source("t4"), options)
    assert sought.is_complete and asked == ["model", "other"]
    assert {row.source for row in sought.regions} == {"model", "other"}
    asked.clear()
    late = own_kernels(rounds(), open_source("t4"), replace(options, time_limit_s=0.0))
    assert not late.is_complete and asked == ["model"]
    assert {row.fate for row in late.regions} >= {"no time"}
    asked.clear()
    assert own_kernels(rounds(), open_source("analytic:cpu"), options).is_complete
    assert asked == ["model"]


def test_costs_with_kernels_say_of_a_run_what_those_without_say() -> None:
    operators = open_source("analytic:cpu:threads=2")
    costs = KernelCosts(operators)
    assert (costs.n_threads, costs.run_us(3, 2)) == (2, operators.run_us(3, 2))
    assert operators.run_us(3, 2) > 0
