"""Explored and extracted e-graphs for tests of explanations: also with choices that no cost would make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from relational_tensat.egraph import EGraph
from relational_tensat.explain.explanation import Explanation, explain
from relational_tensat.explain.graphs import graph_of
from relational_tensat.explain.terms import Outputs
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract.tables import extraction_problem
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph, Node, build_graph
from tests.egraph.extraction import FlatCost, cheapest_graph
from tests.graphs import f32

UNARY = ("relu", "tanh", "identity", "neg")
BINARY = ("add", "add", "mul", "sub", "matmul")

#: Classes that an e-node needs, by its id.
Options = dict[int, list[int]]


def explored(
    graph: Graph,
    rules: Sequence[Rule],
    limits: ExplorationOptions | None = None,
    cycle_filter: str = "efficient",
) -> EGraph:
    """Return the e-graph that rules make of a graph."""
    egraph = EGraph.create(graph)
    options = replace(limits or ExplorationOptions(), cycle_filter=cycle_filter)
    explore(egraph, rules, options)
    return egraph


def explained(graph: Graph, rules: Sequence[Rule], cost: FlatCost | None = None) -> Explanation:
    """Explore, extract the cheapest graph, and explain it."""
    egraph = explored(graph, rules)
    cheapest_graph(egraph, cost)
    return explain(egraph.connection)


def random_graph(random: Random) -> Graph:
    """Return a graph of unary and binary operators over two inputs; whatever is not used is returned."""
    names = ["x", "y"]
    nodes = []
    for number in range(random.randint(4, 12)):
        op = random.choice(UNARY + BINARY)
        operands = tuple(random.choice(names) for _ in range(1 if op in UNARY else 2))
        nodes.append(Node(op, operands, (f"v{number}",)))
        names.append(f"v{number}")
    used = {name for node in nodes for name in node.inputs}
    outputs = [name for name in names[2:] if name not in used]
    return build_graph("random", dict.fromkeys(("x", "y"), f32(2, 2)), {}, nodes, outputs)


def choose_at_random(egraph: EGraph, random: Random) -> None:
    """Choose a random acyclic graph of the e-graph, filtered e-nodes included: the oddest results."""
    extraction_problem(egraph, FlatCost())  # fills the costs
    members: dict[int, Options] = defaultdict(dict)
    for enode, owner, *children in egraph.connection.execute(
        "SELECT id, class, c0, c1, c2, c3, c4 FROM enode ORDER BY id"
    ).fetchall():
        members[owner][enode] = [child for child in children if child]
    choice = _any_choice(members, random)
    for owner in random.sample(sorted(members), len(members)):
        for enode in random.sample(sorted(members[owner]), len(members[owner])):
            if not _reaches(members[owner][enode], owner, members, choice):
                choice[owner] = enode
                break
    _write(egraph, members, choice)


def graphs_between(explanation: Explanation) -> list[Graph]:
    """Return the graph before the first step and the one after each: building them checks them."""
    states: list[Outputs] = [explanation.original]
    states += [rewrite.after for rewrite in explanation.rewrites]
    return [
        graph_of(outputs, explanation.terms, explanation.stored, explanation.names)
        for outputs in states
    ]


def shape_of(graph: Graph) -> tuple[object, ...]:
    """Return what two graphs share that differ in the names of values and the order of nodes only."""
    terms: dict[str, object] = {name: ("value", name) for name in (*graph.inputs, *graph.weights)}
    for node in graph.nodes:
        operands = tuple(terms[name] for name in node.inputs)
        whole = hash((node.op, tuple(node.attrs.items()), operands))
        for index, name in enumerate(node.outputs):
            terms[name] = operands[0] if node.op == "identity" else (whole, index)
    return tuple(terms[name] for name in graph.outputs)


def _any_choice(members: dict[int, Options], random: Random) -> dict[int, int]:
    """Return a random choice from the leaves up."""
    choice: dict[int, int] = {}
    waiting = sorted(members)
    while waiting:
        blocked = []
        for owner in waiting:
            ready = [e for e, needs in members[owner].items() if all(c in choice for c in needs)]
            if ready:
                choice[owner] = random.choice(ready)
            else:
                blocked.append(owner)
        waiting = blocked
    return choice


def _reaches(
    start: list[int], goal: int, members: dict[int, Options], choice: dict[int, int]
) -> bool:
    pending, seen = list(start), set(start)
    while pending:
        owner = pending.pop()
        if owner == goal:
            return True
        fresh = set(members[owner][choice[owner]]) - seen
        seen |= fresh
        pending += fresh
    return False


def _write(egraph: EGraph, members: dict[int, Options], choice: dict[int, int]) -> None:
    rows = egraph.connection.execute(
        "SELECT c.parent FROM graph_output AS o JOIN eclass AS c ON c.id = o.class"
    ).fetchall()
    pending = [int(owner) for (owner,) in rows]
    needed: set[int] = set()
    while pending:
        owner = pending.pop()
        if owner not in needed:
            needed.add(owner)
            pending += members[owner][choice[owner]]
    egraph.connection.execute("DELETE FROM chosen")
    for owner in sorted(needed):
        egraph.connection.execute("INSERT INTO chosen VALUES (?, ?)", [owner, choice[owner]])
