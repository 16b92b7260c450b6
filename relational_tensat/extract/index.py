"""Adjacency of an e-graph in the other directions: classes to their e-nodes and to their users."""

from __future__ import annotations

import numpy as np

from relational_tensat.extract.problem import ExtractionProblem, Ints


def edge_owner(child_ptr: Ints) -> Ints:
    """Return, per entry of ``child_idx``, the e-node that it belongs to."""
    return np.repeat(np.arange(len(child_ptr) - 1, dtype=np.int32), np.diff(child_ptr))


def group(keys: Ints, values: Ints, n_keys: int) -> list[list[int]]:
    """Return, per key 0 … n_keys-1, the values that stand at it, in their given order."""
    order = np.argsort(keys, kind="stable")
    ordered = values[order].tolist()
    starts = np.searchsorted(keys[order], np.arange(n_keys + 1)).tolist()
    return [ordered[starts[k] : starts[k + 1]] for k in range(n_keys)]


def nodes_by_class(problem: ExtractionProblem) -> list[list[int]]:
    """Return the e-nodes of every class."""
    nodes = np.arange(problem.n_nodes, dtype=np.int32)
    return group(problem.node_class, nodes, problem.n_classes)


def parents_by_class(problem: ExtractionProblem) -> list[list[int]]:
    """Return, per class, the e-nodes that have it as a child."""
    return group(problem.child_idx, edge_owner(problem.child_ptr), problem.n_classes)


def children_by_node(problem: ExtractionProblem) -> list[list[int]]:
    """Return the child classes of every e-node as lists."""
    flat, ends = problem.child_idx.tolist(), problem.child_ptr.tolist()
    return [flat[ends[node] : ends[node + 1]] for node in range(problem.n_nodes)]
