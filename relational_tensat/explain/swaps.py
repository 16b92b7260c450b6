"""The result with other e-nodes in some of its classes: how much each swap would cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.files import sql
from relational_tensat.explain.egraph_tables import StoredEGraph, StoredNode
from relational_tensat.extract.greedy.bottom_up import settle_by_tree_cost
from relational_tensat.extract.problem import dag_cost_us
from relational_tensat.extract.tables import problem_of_rows


class Swaps:
    """The chosen graph, and its cost after changes to it.

    Attributes:
        chosen: the chosen e-node of each class that the result needs; empty if nothing was extracted.
        chosen_us: the result's modelled cost, as the table ``cost`` says.
    """

    def __init__(self, stored: StoredEGraph) -> None:
        connection = stored.connection
        rows = connection.execute("SELECT class, enode FROM chosen").fetchall()
        self.chosen = {owner: stored.nodes[node] for owner, node in rows}
        self._children: dict[int, set[int]] = {}
        for node in stored.nodes.values():
            if not node.filtered:
                self._children.setdefault(node.owner, set()).update(node.children)
        self._below: dict[int, set[int]] = {}
        self._places: dict[int, int] = {}
        columns = connection.execute(sql("extract/extraction_nodes")).fetchnumpy()
        if len(columns["id"]):  # else nothing has a cost
            ((root,),) = connection.execute(
                "SELECT parent FROM eclass WHERE id = (" + sql("egraph/root") + ")"
            ).fetchall()
            self._problem = problem_of_rows(columns, root).problem
            self._places = {int(node): place for place, node in enumerate(columns["id"])}
            self._choice = settle_by_tree_cost(self._problem, None)[0]
            if self._places.keys() >= {node.id for node in self.chosen.values()}:
                self._take(self._choice, self.chosen.values())
            else:  # what was chosen cannot be any more
                self._places = {}
        self.chosen_us = self.cost_with([]) or 0.0

    def cost_with(self, nodes: Sequence[StoredNode]) -> float | None:
        """Return the cost of the result with these e-nodes in their classes.

        Everything else stays as chosen; further classes are taken as their cheapest trees. None where that
        closes a cycle, or where an e-node cannot be chosen at all.
        """
        if not self._places:
            return None
        choice = self._choice.copy()
        try:
            self._take(choice, nodes)
            return dag_cost_us(self._problem, choice)
        except (KeyError, RelationalTensatError):
            return None

    def _take(self, choice: NDArray[np.int32], nodes: Iterable[StoredNode]) -> None:
        """Choose e-nodes.

        Raises:
            KeyError: one cannot be chosen.
        """
        for node in nodes:
            place = self._places[node.id]
            choice[self._problem.node_class[place]] = place

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
