"""The search for cycles against networkx, on random edges with random labels."""

from __future__ import annotations

import itertools
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


def breakers_by_age(edges: list[Edge]) -> list[int]:
    """Keep one e-node after the other, unless it closes a cycle."""
    kept, found = nx.DiGraph(), []
    for enode, group in itertools.groupby(edges, key=lambda edge: edge[0]):
        with_it = kept.copy()
        with_it.add_edges_from((c, d) for _, c, d in group)
        if nx.is_directed_acyclic_graph(with_it):
            kept = with_it
        else:
            found.append(enode)
    return found


@pytest.mark.parametrize("seed", range(300))
def test_an_enode_goes_if_it_closes_a_cycle_with_older_ones(seed: int) -> None:
    edges, height = random_edges(seed)
    expected = breakers_by_age(edges)
    random.Random(seed).shuffle(edges)  # what is filtered depends on ages alone
    assert cycle_breakers(columns(edges, height), never) == expected


def test_the_oldest_enode_of_each_class_stays() -> None:
    """Where an operand is older than what has it as an operand."""
    for seed in range(100):
        draw = random.Random(seed)
        merged = [draw.randint(0, 9) for _ in range(40)]  # an e-node's class, unions carried out
        edges = [
            (enode, merged[enode], merged[draw.randrange(enode)])
            for enode in range(1, 40)
            for _ in range(2)
        ]
        oldest = {merged.index(each) for each in merged}
        assert oldest.isdisjoint(cycle_breakers(columns(edges, dict.fromkeys(range(10), 1)), never))


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
    assert before >= looks + size  # besides, one for each e-node and each class that was reached


def test_a_ring_of_many_classes() -> None:
    """Without recursion: deeper than Python's stack."""
    size = 20_000
    ring = [(enode, enode, enode % size + 1) for enode in range(1, size + 1)]
    height = {each: size - each for each in range(1, size + 1)}
    assert cycle_breakers(columns(ring, height), never) == [size]
