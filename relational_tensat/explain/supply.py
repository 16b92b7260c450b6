"""Operands that an application needs and the graph does not show where it is applied.

A rule of two sources speaks, at one of them, of operands of the other; a law read backward may speak of
operands that its target does not have. Any form of theirs will do: what the graph has is taken, or built.
"""

from __future__ import annotations

from collections.abc import Mapping

from relational_tensat.explain.match import Match
from relational_tensat.explain.proof import ProofGraph
from relational_tensat.explain.state import Node, State


class Supply:
    """Finds or builds nodes of given classes.

    Args:
        chosen: the extracted e-node of each class that the result needs.
    """

    def __init__(self, graph: ProofGraph, state: State, chosen: Mapping[int, int]) -> None:
        self._graph = graph
        self._state = state
        self._form = _smallest(graph)
        self._form |= {owner: graph.first_form(enode) for owner, enode in chosen.items()}

    def bind_others(self, match: Match) -> None:
        """Bind the variables of a rule that nothing is known of yet."""
        missing = [n for n in range(match.law.variables) if n not in match.bound]
        if not missing:
            return
        match.local = False
        nodes = self._state.nodes()
        for new in (True, False):  # the other root may be there in its new form, or in its old one
            side, _ = match.new_side if new else match.old_side
            for output, root in enumerate(side.roots):
                if output in match.places or root < match.law.variables:
                    continue
                bindings = (match.fits(node, output, new=new) for node in nodes)
                match.bound.update(
                    next((binding for binding in bindings if binding is not None), {})
                )
        by_class = {self._graph.owner(node.form): node for node in nodes}
        by_class.update({self._graph.owner(node.form): node for node in nodes if node.final})
        for variable in missing:
            if variable not in match.bound:
                match.bound[variable] = self._node(match.edge.operands[variable], by_class)

    def keep_apart(self, match: Match) -> None:
        """Copy what operands have in common with the nodes that are about to change.

        A node that becomes a form of its own operand must leave a copy of itself as that operand.
        """
        if not match.local:
            changing = set(match.places.values())
            for variable in range(match.law.variables):
                match.bound[variable] = self._apart(match.bound[variable].now(), changing)

    def _apart(self, start: Node, changing: set[Node]) -> Node:
        copies: dict[Node, Node] = {}
        for node in self._state.nodes([start]):
            operands = node.operands()
            moved = [copies.get(operand, operand) for operand in operands]
            if node in changing or moved != operands:
                copies[node] = Node(node.form, moved)
        return copies.get(start, start)

    def _node(self, owner: int, by_class: Mapping[int, Node]) -> Node:
        """Return a node of a class: one of the graph, or a new one in the form that the result has."""
        node_of: dict[int, Node] = dict(by_class)
        stack = [owner]
        while stack:
            current = stack[-1]
            children = self._graph.nodes[self._form[current]].children
            waiting = [child for child in children if child not in node_of]
            if current in node_of or not waiting:
                stack.pop()
                if current not in node_of:
                    node_of[current] = Node(self._form[current], [node_of[c] for c in children])
            else:
                stack.extend(waiting)
        return node_of[owner]


def _smallest(graph: ProofGraph) -> dict[int, int]:
    """Return, per class, a form such that following them ends: the first found from the leaves up."""
    waiting = {n.id: len(set(n.children)) for n in graph.nodes.values()}
    users: dict[int, list[int]] = {}
    for node in graph.nodes.values():
        for child in set(node.children):
            users.setdefault(child, []).append(node.id)
    form: dict[int, int] = {}
    ready = [n for n, count in waiting.items() if count == 0]
    while ready:
        following: list[int] = []
        for ready_form in ready:
            owner = graph.owner(ready_form)
            if owner in form:
                continue
            form[owner] = ready_form
            for user in users.get(owner, ()):
                waiting[user] -= 1
                if waiting[user] == 0:
                    following.append(user)
        ready = following
    return form
