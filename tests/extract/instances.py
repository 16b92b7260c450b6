"""Random e-graphs for the tests, and their optimum by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.extract import UNUSED, ExtractionProblem
from relational_tensat.extract.greedy.bottom_up import tree_greedy

NodeSpec = tuple[int, float, list[int]]


def build(nodes: list[NodeSpec], n_classes: int, root: int = 0) -> ExtractionProblem:
    """Build an e-graph from (class, cost, child classes) per e-node, without an original."""
    children = [sorted(set(part)) for _, _, part in nodes]
    return ExtractionProblem(
        cost_us=np.array([cost for _, cost, _ in nodes], dtype=np.float64),
        node_class=np.array([klass for klass, _, _ in nodes], dtype=np.int32),
        child_ptr=np.concatenate([[0], np.cumsum([len(part) for part in children])]).astype(
            np.int32
        ),
        child_idx=np.array([child for part in children for child in part], dtype=np.int32),
        n_classes=n_classes,
        root=root,
        original=np.full(n_classes, UNUSED, dtype=np.int32),
    )


def with_original(problem: ExtractionProblem, choice: np.ndarray) -> ExtractionProblem:
    """Return the e-graph with this choice as the graph that it was grown from."""
    return replace(problem, original=choice)


def random_problem(seed: int, max_classes: int = 8) -> ExtractionProblem:
    """Return a small e-graph with a derivable root: cyclic, shared, with zero costs and ties."""
    rng = np.random.default_rng(seed)
    while True:
        n_classes = int(rng.integers(1, max_classes + 1))
        costliest = int(rng.choice([1, 3, 10]))
        free = float(rng.choice([0.0, 0.3, 0.7]))
        nodes: list[NodeSpec] = []
        for klass in range(n_classes):
            for _ in range(int(rng.integers(1, 5))):
                cost = 0.0 if rng.random() < free else float(rng.integers(1, costliest + 1))
                arity = int(rng.choice([0, 1, 2, 3], p=[0.2, 0.35, 0.3, 0.15]))
                nodes.append((klass, cost, rng.integers(0, n_classes, arity).tolist()))
        problem = build(nodes, n_classes, int(rng.integers(0, n_classes)))
        try:
            original = tree_greedy(problem)
        except RelationalTensatError:
            continue
        return with_original(problem, original) if rng.random() < 0.7 else problem


def brute_force_us(problem: ExtractionProblem) -> float:
    """Return the least cost of an acyclic choice, by trying all that could be cheaper."""
    members: list[list[int]] = [[] for _ in range(problem.n_classes)]
    for node, klass in enumerate(problem.node_class.tolist()):
        members[klass].append(node)
    children = [set(problem.children(node).tolist()) for node in range(problem.n_nodes)]
    best = [np.inf]
    chosen: dict[int, int] = {}
    least = problem.cost_us[problem.cost_us < 0].sum()  # what is below may still save so much

    def needs(start: int, target: int) -> bool:
        """Whether class ``start`` depends on ``target`` under the choices made so far."""
        seen, stack = {start}, [start]
        while stack:
            klass = stack.pop()
            if klass == target:
                return True
            for child in children[chosen[klass]] if klass in chosen else ():
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return False

    def search(pending: frozenset[int], cost: float) -> None:
        if cost + least >= best[0]:
            return
        if not pending:
            best[0] = min(best[0], cost)
            return
        klass = min(pending)
        for node in members[klass]:
            if any(needs(child, klass) for child in children[node]):
                continue
            chosen[klass] = node
            added = {child for child in children[node] if child not in chosen}
            search(pending - {klass} | added, cost + problem.cost_us[node])
            del chosen[klass]

    search(frozenset([problem.root]), 0.0)
    return best[0]


def layered_problem(layers: int, width: int, seed: int) -> ExtractionProblem:
    """Return an e-graph like those of merged matrix products.

    Each layer has ``width`` products of the layer's input. Any two products may be computed
    as one (a pair, split), any two disjoint pairs as one again; the layer's output adds the
    products up. A pair is also the concatenation of its two halves, which makes cycles.
    """
    rng = np.random.default_rng(seed)
    nodes: list[NodeSpec] = []
    original: list[int] = []

    def new_class(*members: tuple[float, list[int]]) -> int:
        klass = len(original)
        original.append(len(nodes))
        nodes.extend((klass, cost, part) for cost, part in members)
        return klass

    entry = new_class((0.0, []))
    for _ in range(layers):
        weight = float(rng.integers(1, 9))
        singles = [new_class((5 + weight, [entry])) for _ in range(width)]
        pairs: dict[tuple[int, int], int] = {}
        for i in range(width):
            for j in range(i + 1, width):
                product = (5 + 1.7 * weight, [entry])
                pairs[i, j] = new_class(product, (5.5, [singles[i], singles[j]]))
                nodes.extend((singles[k], 0.0, [pairs[i, j]]) for k in (i, j))
        for (first, pair), (second, other) in (
            (a, b) for a in pairs.items() for b in pairs.items() if a[0] < b[0]
        ):
            if not set(first) & set(second):
                quad = new_class((5 + 3.0 * weight, [entry]))
                nodes.extend((klass, 0.0, [quad]) for klass in (pair, other))
        while len(singles) > 1:
            singles.append(new_class((5.0, [singles.pop(0), singles.pop(0)])))
        entry = singles[0]
    return with_original(build(nodes, len(original), entry), np.array(original, dtype=np.int32))
