"""The search for cycles against networkx and thresholds, on random edges with random labels."""

from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest

from relational_tensat.egraph.components import cyclic_components
from relational_tensat.egraph.cycle_search import cycle_breakers
from relational_tensat.egraph.database import Interrupted

Edge = tuple[int, int, int]  # e-node, class, child


def never() -> None:
    """Let the search go on."""


def random_edges(seed: int) -> tuple[list[Edge], dict[int, int]]:
    """Return edges among up to 12 classes, e-nodes with up to three children, and a label per class."""
    draw = random.Random(seed)
    classes = draw.randint(1, 12)
    edges = [
        (enode, owner, draw.randint(1, classes))
        for enode in range(1, draw.randint(1, 25))
        for owner in [draw.randint(1, classes)]
        for _ in range(draw.randint(1, 3))
    ]
    return edges, {each: draw.randint(1, classes) for each in range(1, classes + 1)}


def columns(edges: list[Edge], height: dict[int, int]) -> dict[str, np.ndarray]:
    names = ("enode", "class", "child", "height", "child_height")
    rows = [(e, c, d, height[c], height[d]) for e, c, d in edges]
    array = np.array(rows, dtype=np.int32).reshape(-1, 5)
    return {name: array[:, place] for place, name in enumerate(names)}


def breakers_by_thresholds(edges: list[Edge], height: dict[int, int]) -> list[int]:
    """Per e-node that breaks a label: the smallest age that leaves a way back when all younger go."""
    found: list[int] = []
    while True:
        kept = [edge for edge in edges if edge[0] not in found]
        youngest = set()
        for enode in {e for e, c, d in kept if height[d] >= height[c]}:
            ages = sorted(e for e, _, _ in kept if e >= enode)
            closing = (age for age in ages if closes(enode, age, kept, height))
            youngest.update([age for age in [next(closing, None)] if age is not None])
        if not youngest:
            return found
        found += sorted(youngest)


def closes(enode: int, age: int, kept: list[Edge], height: dict[int, int]) -> bool:
    """Whether an e-node that breaks a label is on a cycle of e-nodes no younger than an age."""
    (goal,) = {c for e, c, _ in kept if e == enode}
    graph = nx.DiGraph()
    graph.add_nodes_from(c for c in height if height[c] >= height[goal])
    graph.add_edges_from(
        (c, d) for e, c, d in kept if e <= age and min(height[c], height[d]) >= height[goal]
    )
    children = [d for e, c, d in kept if e == enode and height[d] >= height[c]]
    return any(nx.has_path(graph, child, goal) for child in children)


@pytest.mark.parametrize("seed", range(150))
def test_against_thresholds(seed: int) -> None:
    edges, height = random_edges(seed)
    found = cycle_breakers(columns(edges, height), never)
    assert found == breakers_by_thresholds(edges, height)
    assert nx.is_directed_acyclic_graph(nx.DiGraph((c, d) for e, c, d in edges if e not in found))


@pytest.mark.parametrize("seed", range(50))
def test_components_against_networkx(seed: int) -> None:
    edges, height = random_edges(seed)
    arrays = columns(edges, height)
    suspect = arrays["child_height"] >= arrays["height"]
    found = cyclic_components(arrays["class"], arrays["child"], suspect, never)
    graph = nx.DiGraph((c, d) for _, c, d in edges)
    of = {c: n for n, each in enumerate(nx.strongly_connected_components(graph)) for c in each}
    assert [number >= 0 for number in found] == [of[c] == of[d] for _, c, d in edges]
    pairs = {(number, of[c]) for number, (_, c, _) in zip(found, edges, strict=True) if number >= 0}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def test_a_search_can_be_ended() -> None:
    def stop() -> None:
        raise Interrupted

    ring = [(enode, enode, enode % 5 + 1) for enode in range(1, 6)]
    with pytest.raises(Interrupted):
        cycle_breakers(columns(ring, dict.fromkeys(range(1, 6), 1)), stop)


def test_one_long_search_can_be_ended() -> None:
    """In large components one search takes seconds, so it looks up all the time."""
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1

    size = 20_000
    ring = [(enode, enode, enode % size + 1) for enode in range(1, size + 1)]
    height = {each: size - each for each in range(1, size + 1)}
    cycle_breakers(columns(ring, height), look)  # the ring has one way back, round all of it
    cyclic = columns(ring, height)
    before, looks = looks, 0
    suspect = cyclic["child_height"] >= cyclic["height"]
    cyclic_components(cyclic["class"], cyclic["child"], suspect, look)
    assert before >= 2 * looks + size // 1_024


def test_a_ring_of_many_classes() -> None:
    """Without recursion: deeper than Python's stack."""
    size = 20_000
    ring = [(enode, enode, enode % size + 1) for enode in range(1, size + 1)]
    height = {each: size - each for each in range(1, size + 1)}
    assert cycle_breakers(columns(ring, height), never) == [size]
