"""The search for cycles against networkx, on random edges with random labels."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import numpy as np
import pytest

from relational_tensat.egraph.cycle_search import break_cycles
from relational_tensat.egraph.database import Interrupted
from relational_tensat.egraph.edges import cyclic_core

Edge = tuple[int, int, int]  # e-node, class, child


def never() -> None:
    """Let the search continue."""


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
    return edges, {class_id: draw.randint(1, classes) for class_id in range(1, classes + 1)}


def columns(edges: list[Edge], height: dict[int, int]) -> dict[str, np.ndarray]:
    names = ("enode", "class", "child", "height", "child_height")
    rows = [(e, c, d, height[c], height[d]) for e, c, d in edges]
    array = np.array(rows, dtype=np.int32).reshape(-1, 5)
    return {name: array[:, place] for place, name in enumerate(names)}


def breakers_by_age(edges: list[Edge]) -> list[int]:
    """Keep one e-node after the other, unless it closes a cycle."""
    acyclic, breakers = nx.DiGraph(), []
    for enode, group in itertools.groupby(edges, key=lambda edge: edge[0]):
        with_it = acyclic.copy()
        with_it.add_edges_from((c, d) for _, c, d in group)
        if nx.is_directed_acyclic_graph(with_it):
            acyclic = with_it
        else:
            breakers.append(enode)
    return breakers


def test_an_enode_goes_if_it_closes_a_cycle_with_older_ones() -> None:
    for seed in range(300):
        edges, height = random_edges(seed)
        expected = breakers_by_age(edges)
        random.Random(seed).shuffle(edges)  # what is filtered depends on ages alone
        assert break_cycles(columns(edges, height), never) == expected, seed


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
        oldest = {merged.index(class_id) for class_id in merged}
        assert oldest.isdisjoint(break_cycles(columns(edges, dict.fromkeys(range(10), 1)), never))


def test_the_core_has_all_cycles_and_no_ends() -> None:
    for seed in range(100):
        edges, height = random_edges(seed)
        arrays = columns(edges, height)
        suspect = arrays["child_height"] >= arrays["height"]
        places = set(cyclic_core(arrays["class"], arrays["child"], suspect, never).tolist())
        graph = nx.DiGraph((c, d) for _, c, d in edges)
        of = {c: n for n, part in enumerate(nx.strongly_connected_components(graph)) for c in part}
        assert places >= {place for place, (_, c, d) in enumerate(edges) if of[c] == of[d]}, seed
        core = nx.DiGraph(edges[place][1:] for place in places)
        assert all(core.out_degree(node) and core.in_degree(node) for node in core), seed


def test_a_search_can_be_ended() -> None:
    def stop() -> None:
        raise Interrupted

    ring = [(enode, enode, enode % 5 + 1) for enode in range(1, 6)]
    with pytest.raises(Interrupted):
        break_cycles(columns(ring, dict.fromkeys(range(1, 6), 1)), stop)


def test_one_long_search_can_be_ended() -> None:
    """In large components one search takes seconds, so it checks all the time."""
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1

    size = 20_000
    ring = [(enode, enode, enode % size + 1) for enode in range(1, size + 1)]
    height = {class_id: size - class_id for class_id in range(1, size + 1)}
    break_cycles(columns(ring, height), look)  # the ring has one way back, round all of it
    assert looks >= size + size // 2  # one for each e-node, and each step from both ends of the way


def test_a_ring_of_many_classes() -> None:
    """Without recursion: deeper than Python's stack."""
    size = 20_000
    ring = [(enode, enode, enode % size + 1) for enode in range(1, size + 1)]
    height = {class_id: size - class_id for class_id in range(1, size + 1)}
    assert break_cycles(columns(ring, height), never) == [size]
