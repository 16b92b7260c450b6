"""Which parts are sought: those that the cheapest graph could have, and no others."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import cast

import pytest

from relational_tensat.cost import open_source
from relational_tensat.models.builder import GraphBuilder
from relational_tensat.mugraph.fusion import fusing
from relational_tensat.mugraph.fusion.candidates import Candidate
from relational_tensat.mugraph.fusion.fusing import Sought, own_kernels
from relational_tensat.mugraph.fusion.planning import Key, Plan
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.tensor import Graph

_LAUNCH_US = 5.0


def _part(inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Candidate:
    return cast(Candidate, SimpleNamespace(inputs=inputs, outputs=outputs))


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
        planned = Plan(graph, lambda node: 4.0, parts).cheapest(costs_us)
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
        planned = Plan(graph, lambda node: 4.0, both).cheapest({("both", 1): cost_us})
        assert planned.cost_us == expected
        assert planned.keys == ({("both", 1)} if cost_us < 8 else set())


def _products() -> Graph:
    """Two products one after the other, with functions between and after them."""
    b = GraphBuilder("products")
    first = b.op("tanh", b.op("matmul", b.input("x", 8, 16), b.weight("v", 16, 16)))
    return b.build(b.op("relu", b.op("matmul", first, b.weight("w", 16, 16))))


def _sought(graph: Graph) -> Sought:
    return own_kernels([graph], open_source("t4"), SearchOptions(max_operators=4, max_kernels=1))


def test_the_graph_is_as_cheap_as_with_all_parts_and_fewer_are_sought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = _sought(_products())
    left = [row for row in few.regions if row.reason == fusing._NO_GAIN]
    assert left and few.parts == few.total
    monkeypatch.setattr(fusing._Fusing, "_wanted", lambda self, plan, least_us: {*least_us})
    every = _sought(_products())
    assert every.parts == few.parts + len(left)
    assert {kernel.key for kernel in few.kernels} < {kernel.key for kernel in every.kernels}
    least_us = [
        min(row.kernel_us or 0 for row in sought.regions if len(row.operators) == 4)
        for sought in (few, every)
    ]
    assert _LAUNCH_US < least_us[0] == least_us[1] < 2 * _LAUNCH_US  # no other graph has one launch
