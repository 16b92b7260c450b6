"""The e-nodes of a universe with what they cost, as lists: what graphs are kept by moves with."""

from __future__ import annotations

from relational_tensat.explore.worlds.node_arrays import NodeArrays
from relational_tensat.explore.worlds.node_costs import NodeCosts


class GraphPrices:
    """The e-nodes of a universe as lists, for as long as it does not change.

    Attributes:
        root: the class to extract.
        owner, children, cost_us: by e-node: its class, its distinct child classes, what choosing it costs.
        weight_only: by class, whether its value is known before inference.
        members, users: by class, its e-nodes, and those that have it as a child.
    """

    def __init__(self, arrays: NodeArrays, costs: NodeCosts, root: int) -> None:
        self.root = int(arrays.parent[root])
        self.arrays = arrays
        self.owner: list[int] = arrays.owner.tolist()
        self.cost_us: list[float] = costs.cost_us.tolist()
        self.weight_only: list[bool] = costs.weight_only.tolist()
        self.children: list[tuple[int, ...]] = [
            tuple(dict.fromkeys(filter(None, row))) for row in arrays.children.tolist()
        ]
        self.users: list[list[int]] = [[] for _ in range(len(arrays.parent))]
        self.members: list[list[int]] = [[] for _ in range(len(arrays.parent))]
        for enode, row in enumerate(self.children):
            self.members[self.owner[enode]].append(enode)
            for child in row:
                self.users[child].append(enode)
