"""Small random e-graphs of every kind, for comparison with brute force, and what is in them."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.extract import ExtractionProblem
from relational_tensat.extract.greedy.bottom_up import tree_greedy
from tests.extract.instances import NodeSpec, build, random_problem, with_original

#: What takes turns; the first kind is by far the quickest to solve.
KINDS = (*["anything"] * 5, "suppliers", "cycles")


def small_problem(seed: int) -> ExtractionProblem:
    """Return a small e-graph with a derivable root; the kinds take turns."""
    kind = KINDS[seed % len(KINDS)]
    if kind == "anything":
        return random_problem(seed)
    rng = np.random.default_rng(seed)
    while True:
        problem = _suppliers(rng, cycles=kind == "cycles")
        try:
            original = tree_greedy(problem)
        except RelationalTensatError:
            continue
        return with_original(problem, original) if rng.random() < 0.5 else problem


def _suppliers(rng: np.random.Generator, *, cycles: bool) -> ExtractionProblem:
    """Consumers, each with a choice of suppliers that others may share: joint decisions.

    Reductions leave a core of it, which only the solver settles. With cycles, a supplier may also
    be had from other suppliers or consumers. The root needs all consumers: these are several roots.
    """
    n_consumers, n_suppliers = int(rng.integers(3, 6)), int(rng.integers(3, 6))
    costliest = int(rng.choice([1, 2, 9]))  # 1: all suppliers tie
    consumers = list(range(1, n_consumers + 1))
    suppliers = list(range(n_consumers + 1, n_consumers + n_suppliers + 1))
    nodes: list[NodeSpec] = [(0, 0.0, consumers)]
    for klass in consumers:
        for _ in range(int(rng.integers(2, 4))):
            needs = rng.choice(suppliers, size=int(rng.choice([1, 1, 2])), replace=False)
            nodes.append((klass, float(rng.choice([0, 0, 1])), needs.tolist()))
    for klass in suppliers:
        nodes.append((klass, float(rng.integers(1, costliest + 1)), []))
        while cycles and rng.random() < 0.6:
            needs = rng.choice(suppliers + consumers, size=int(rng.choice([1, 1, 2])))
            nodes.append((klass, float(rng.choice([0, 0, 0.5])), needs.tolist()))
    order = rng.permutation(len(nodes)).tolist()
    return build([nodes[index] for index in order], n_consumers + n_suppliers + 1)


def features(problem: ExtractionProblem) -> set[str]:
    """Return what is in an e-graph, among ``FEATURES``."""
    kinds = set()
    edges = [
        (int(problem.node_class[node]), child)
        for node in range(problem.n_nodes)
        for child in problem.children(node).tolist()
    ]
    if not nx.is_directed_acyclic_graph(nx.DiGraph(edges)):
        kinds.add("cyclic")
    users = np.bincount(problem.child_idx, minlength=problem.n_classes)
    if users.max(initial=0) > 1:
        kinds.add("shared")
    if np.any(problem.cost_us == 0):
        kinds.add("zero costs")
    pairs = set(zip(problem.node_class.tolist(), problem.cost_us.tolist(), strict=True))
    if len(pairs) < problem.n_nodes:
        kinds.add("ties")
    (above, *others) = np.flatnonzero(problem.node_class == problem.root)
    if not others and problem.cost_us[above] == 0 and len(problem.children(above)) > 1:
        kinds.add("several roots")
    if problem.has_original:
        kinds.add("original")
    return kinds


FEATURES = ("cyclic", "shared", "zero costs", "ties", "several roots", "original")


def cheapest_choice(problem: ExtractionProblem) -> tuple[float, dict[int, int]]:
    """Return the least cost and a choice of it (class to e-node), by trying every choice.

    Plain enumeration, an oracle for ``brute_force_us``: every e-node for every class, and only at
    the end is it asked whether the choice is acyclic. Infinite where there is none.
    """
    members: list[list[int]] = [[] for _ in range(problem.n_classes)]
    for node, klass in enumerate(problem.node_class.tolist()):
        members[klass].append(node)
    best: tuple[float, dict[int, int]] = (float("inf"), {})
    for picked in itertools.product(*([*part, None] for part in members)):
        choice = {klass: node for klass, node in enumerate(picked) if node is not None}
        edges = [(k, child) for k, node in choice.items() for child in problem.children(node)]
        if problem.root not in choice or any(child not in choice for _, child in edges):
            continue
        if nx.is_directed_acyclic_graph(nx.DiGraph(edges)):
            cost = sum(problem.cost_us[node] for node in choice.values())
            best = min(best, (float(cost), choice), key=lambda candidate: candidate[0])
    return best


@st.composite
def egraphs(draw: st.DrawFn, max_classes: int = 6) -> ExtractionProblem:
    """Draw an e-graph with a derivable root; Hypothesis shrinks its classes, e-nodes and costs."""
    n_classes = draw(st.integers(1, max_classes))
    classes = st.integers(0, n_classes - 1)
    children = st.lists(classes, max_size=3, unique=True)
    node = st.tuples(classes, st.sampled_from([0.0, 1.0, 2.0, 0.5, 5.0]), children)
    leaf = st.tuples(classes, st.sampled_from([1.0, 3.0, 0.0]), st.just([]))
    nodes = [
        *draw(st.lists(leaf, min_size=1, max_size=n_classes)),
        *draw(st.lists(node, max_size=3 * n_classes)),
    ]
    problem = build([(k, c, list(part)) for k, c, part in nodes], n_classes)
    try:
        original = tree_greedy(problem)
    except RelationalTensatError:
        reject()
    return with_original(problem, original) if draw(st.booleans()) else problem
