"""What the result would cost if other e-nodes were chosen in some of its classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relational_tensat.base.resources import sql
from relational_tensat.explain.stored import StoredEGraph, StoredNode


@dataclass(frozen=True, slots=True)
class _Choice:
    """An e-node that can be chosen: its cost in microseconds and the classes that it needs."""

    cost_us: float
    children: tuple[int, ...]


class Swaps:
    """The chosen graph, and its cost after changes to it.

    Attributes:
        chosen: the chosen e-node of each class that the result needs; empty if nothing was extracted.
        chosen_us: the result's modelled cost, as the table ``cost`` says.
    """

    def __init__(self, stored: StoredEGraph) -> None:
        connection = stored.connection
        self._choices: dict[int, _Choice] = {}
        by_class: dict[int, list[int]] = {}
        rows = connection.execute(sql("extract/extraction_nodes")).fetchall()
        for node, owner, *children, _, _, cost_us in rows:
            needed = tuple(dict.fromkeys(child for child in children if child))
            self._choices[node] = _Choice(cost_us, needed)
            by_class.setdefault(owner, []).append(node)
        self._by_class = by_class
        rows = connection.execute("SELECT class, enode FROM chosen").fetchall()
        self.chosen = {owner: stored.nodes[node] for owner, node in rows}
        rows = connection.execute(sql("egraph/output_classes")).fetchall()
        self._outputs = [int(owner) for _, owner in rows]
        self._children: dict[int, set[int]] = {}
        for node in stored.nodes.values():
            if not node.filtered:
                self._children.setdefault(node.owner, set()).update(node.children)
        self._below: dict[int, set[int]] = {}
        self._cheapest = self._cheapest_trees()
        self.chosen_us = self.cost_with([]) or 0.0

    def cost_with(self, nodes: Sequence[StoredNode]) -> float | None:
        """Return the cost of the result with these e-nodes in their classes.

        Everything else stays as chosen; what is needed besides is taken as its cheapest tree.
        None where that closes a cycle, or where an e-node cannot be chosen at all.
        """
        choice = {owner: node.id for owner, node in self.chosen.items()}
        choice.update((node.owner, node.id) for node in nodes)
        total = 0.0
        is_complete: dict[int, bool] = {}  # whether a class is done; False while it is below itself
        stack = [(owner, False) for owner in self._outputs]
        while stack:
            owner, is_exit = stack.pop()
            if is_exit:
                is_complete[owner] = True
                continue
            if owner in is_complete:
                if not is_complete[owner]:
                    return None
                continue
            candidate = self._choices.get(choice.get(owner, self._cheapest.get(owner, 0)))
            if candidate is None:
                return None
            is_complete[owner] = False
            total += candidate.cost_us
            stack.append((owner, True))
            stack += [(child, False) for child in candidate.children]
        return total

    def depends(self, owner: int, on: int) -> bool:
        """Whether a class is another one or can depend on it, by e-nodes that are not filtered."""
        if owner not in self._below:
            reachable: set[int] = set()
            waiting = [owner]
            while waiting:
                current = waiting.pop()
                if current not in reachable:
                    reachable.add(current)
                    waiting += self._children.get(current, ())
            self._below[owner] = reachable
        return on in self._below[owner]

    def _cheapest_trees(self) -> dict[int, int]:
        """Return, per class, the e-node whose tree of cheapest e-nodes costs least."""
        cost: dict[int, float] = {}
        best: dict[int, int] = {}
        changed = True
        while changed:
            changed = False
            for owner, nodes in self._by_class.items():
                for node in nodes:
                    choice = self._choices[node]
                    if not all(child in cost for child in choice.children):
                        continue
                    total = choice.cost_us + sum(cost[child] for child in choice.children)
                    if total < cost.get(owner, float("inf")):
                        cost[owner], best[owner] = total, node
                        changed = True
        return best
