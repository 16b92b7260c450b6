"""Which application of which rule made a result wrong: found by bisecting the chain of steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from relational_tensat.base import duckdb
from relational_tensat.base.errors import NoSolutionError
from relational_tensat.explain.explanation import Explanation, Step, explain
from relational_tensat.explain.graphs import graph_of
from relational_tensat.explain.reproduction import reproduce
from relational_tensat.explain.rewrite import Rewrite
from relational_tensat.explain.stored import StoredNode
from relational_tensat.tensor import Graph


@dataclass(frozen=True, slots=True)
class Fault:
    """The first step after which the graph is wrong.

    Attributes:
        step: what it is; ``steps`` how many there are.
        e_nodes: ids of the e-nodes that the application built and that the graph has in place of what
            it replaced; empty where one of these is of the original graph, so that it cannot be left out.
        reproduction: Python that runs what was replaced and what replaced it, alone.
    """

    step: Step
    steps: int
    e_nodes: tuple[int, ...]
    reproduction: tuple[str, ...]

    @property
    def text(self) -> str:
        """The rule, its law, and where it was applied."""
        places = " and ".join(place.tensor for place in self.step.at)
        return (
            f"{self.step.rule} ({self.step.law}) at {places}, step {self.step.number} of "
            f"{self.steps},"
        )


def find_fault(
    connection: duckdb.DuckDBPyConnection, original: Graph, is_right: Callable[[Graph], bool]
) -> Fault:
    """Find a step that leads from a right graph to a wrong one, between original and extracted graph.

    Args:
        connection: to the run's database, which has a chosen graph.
        original: the graph that was explored.
        is_right: whether a graph computes what the original computes.

    Raises:
        InputError, VerificationError: nothing was extracted, or the steps cannot be checked.
        NoSolutionError: no explanation was found, nothing was changed, or no rule is at fault: the original
            is wrong as soon as it is written.
    """
    explanation = explain(connection)
    graphs = [explanation.original, *(rewrite.after for rewrite in explanation.rewrites)]
    right, wrong = 0, len(graphs) - 1
    if right == wrong:
        raise NoSolutionError("no rule was applied")

    def is_right_after(step: int) -> bool:
        graph = graph_of(graphs[step], explanation.terms, explanation.stored, explanation.names)
        return is_right(_with_weights_of(graph, original))

    if not is_right_after(0):
        raise NoSolutionError("the original, read and written without a change, is wrong, too")
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if is_right_after(middle):
            right = middle
        else:
            wrong = middle
    return fault_at(explanation, right, original)


def fault_at(explanation: Explanation, index: int, original: Graph) -> Fault:
    """Return a step of an explanation as a fault.

    Args:
        original: has the data of weights.
    """
    rewrite = explanation.rewrites[index]
    return Fault(
        explanation.steps[index],
        len(explanation.steps),
        _new_enodes(explanation, rewrite),
        reproduce(explanation, rewrite, original),
    )


def _with_weights_of(graph: Graph, original: Graph) -> Graph:
    """Return a graph with the data of the original's weights, of which the tables have the small ones."""
    weights = {name: original.weights[name] for name in graph.weights}
    return replace(graph, weights=weights, metadata=original.metadata, origin=original.origin)


def _new_enodes(explanation: Explanation, rewrite: Rewrite) -> tuple[int, ...]:
    """Return the e-nodes that a step put in place of others; none if one was in the original."""
    nodes = {(node.signature, node.children): node for node in explanation.stored.nodes.values()}
    roots = [replaced.after for replaced in rewrite.replaced]
    node_of: dict[int, StoredNode] = {}
    for term in explanation.terms.of(roots):
        signature, children = explanation.terms[term]
        form = (signature, tuple(node_of[child].owner for child in children))
        if form not in nodes:
            return ()
        node_of[term] = nodes[form]
    enodes = [node_of[root] for root in roots]
    return tuple(node.id for node in enodes) if all(node.iteration for node in enodes) else ()
