"""Cutting a graph where a single tensor goes through.

Between two cuts is an *atom*: its e-nodes use the tensor of the first cut and leaves, and what they
compute is used only through the tensor of the second. That makes atoms good places to look for blocks;
nothing that follows depends on it.
"""

from __future__ import annotations

from relational_tensat.explore.strategies.blocks.loaded import LoadedGraph


def cut_into_atoms(graph: LoadedGraph) -> list[list[int]]:
    """Return the e-nodes that are no leaves, atom by atom, in order.

    E-nodes that are known before inference are with the first that uses them, tuples that gather
    what the graph returns with the last atom.
    """
    computed = [
        node
        for node in graph.nodes
        if node in graph.on_inputs and not graph.is_leaf(node) and node not in graph.gathering
    ]
    last_use = {child: node for node in computed for child in graph.nodes[node].children}
    atoms: list[list[int]] = [[]]
    alive: set[int] = set()
    for node in computed:
        atoms[-1].append(node)
        alive.difference_update(
            child for child in graph.nodes[node].children if last_use[child] == node
        )
        if node in last_use:
            alive.add(node)
        if alive == {node} and graph.is_tensor(node):
            atoms.append([])
    if not atoms[-1]:
        atoms.pop()
    return _with_the_rest(graph, atoms)


def _with_the_rest(graph: LoadedGraph, atoms: list[list[int]]) -> list[list[int]]:
    """Add the e-nodes that are not computed from inputs, or only gather."""
    if not atoms:
        return []
    last = len(atoms) - 1
    place = {node: index for index, atom in enumerate(atoms) for node in atom}
    for node in reversed(graph.nodes):
        if not graph.is_leaf(node) and node not in place:
            users = [place[user] for user in graph.consumers[node]]
            place[node] = min(users, default=last)
            atoms[place[node]].append(node)
    return [sorted(atom) for atom in atoms]
