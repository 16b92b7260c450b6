"""Random cyclic e-graphs of any size whose optimum is known by construction.

*Zones.* Classes come in zones of one to four. An e-node is *inner* if a child is in its own zone, else
*founded*. A zone is needed if one of its classes is. Call an e-graph's *core* what is left when each
zone is drawn together into one class and the inner e-nodes are forgotten. Of an acyclic choice, take
for every zone it needs the e-node of the zone's class that stands lowest in a topological order: no
child of it is in the zone, so it is founded. These e-nodes are a choice of the core, and part of
the other: **the optimum of the e-graph is at least that of the core**. Inner e-nodes may therefore cost
nothing, which is what deceives a linear relaxation: in it, two classes support each other for free.

*Prices.* Zone z has a price p(z) >= 0, and for some pairs a share w(y, z) >= 0 of it is charged to
zone y, with sum over y of w(y, z) <= p(z). If every founded e-node of every zone y costs at least
p(y) - sum over its children's zones z of w(y, z), then **no choice of the core is cheaper than
p(root)**: over the zones of a choice, sum of cost >= sum of p(y) - sum of the shares charged, each zone
z but the root is charged for at most p(z) in all, and what is left is at least p(root).

*The planted choice.* Zones 0 … k-1 form a random directed acyclic graph below the root zone 0; each
has a founded e-node over the zones below, at a cost of its own. From the leaves up, p is that cost plus
the shares charged, and every p(z) is shared out completely among the zones above: then the planted
e-nodes cost p(root) together. The first class of a zone holds the planted e-node, the others reach
the first one by free inner e-nodes. So p(root) is a cost that is reached, and the optimum.

*Decoys.* Founded e-nodes that cost what prices demand (ties with the planted ones, which are better
only together) or more, with children anywhere, above too; zones beyond k that several others may share,
at a price charged to them; free inner e-nodes in cycles.

*Odd rings.* A ring is a class (a leaf zone of the planted graph, price c (L + 1) / 2) whose only
e-node needs L consumer classes, L odd; consumer i has two free e-nodes, one over supplier i and one
over supplier i + 1, and each of the L suppliers costs c. Nothing else uses these classes. One must
have a supplier at each edge of a cycle of L: (L + 1) / 2 of them at the least, where the linear
relaxation takes half of each, L / 2. So the optimum is not the relaxation's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from relational_tensat.extract.problem import UNUSED, ExtractionProblem

_DEAREST = 20
"""Planted e-nodes cost 0 … this: whole numbers, so that sums are exact."""


@dataclass(frozen=True, eq=False)
class Planted:
    """A random e-graph and its optimum.

    Attributes:
        optimum: the least cost of an acyclic choice of ``problem``, exact.
    """

    problem: ExtractionProblem
    optimum: float


#: Kinds of planted e-graphs: zones of one class (cycles only through decoys, and the plain linear
#: relaxation is exact); zones of up to four (it is not); and those with odd rings (nor is the core's).
KINDS = ("prices", "zones", "rings")


def planted(n_nodes: int, seed: int, kind: str = "rings") -> Planted:
    """Return a random cyclic e-graph with ``n_nodes`` e-nodes, or a few more.

    Args:
        n_nodes: how many e-nodes, from about 50.
        seed: equal arguments give equal e-graphs.
        kind: one of ``KINDS``.
    """
    builder = _Builder(np.random.default_rng(seed))
    builder.plant(max(4, n_nodes // 8), 1 if kind == "prices" else 4, rings=kind == "rings")
    builder.lay_decoys(n_nodes)
    return builder.finish()


@dataclass
class _Zone:
    """A zone of the core.

    Attributes:
        classes: its classes; the first is the entry.
        price: p of it.
        shares: per zone that a share of is charged to this one, that share w.
        planted: the zones below that its planted e-node needs; None where nothing is planted.
        cost: of its planted e-node.
        sealed: part of a ring: no decoy may touch it.
    """

    classes: list[int]
    price: int = 0
    shares: dict[int, int] = field(default_factory=dict)
    planted: list[int] | None = None
    cost: int = 0
    sealed: bool = False


class _Builder:
    """Collects e-nodes, and the zones with their prices."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._zones: list[_Zone] = []
        self._nodes: list[tuple[int, float, frozenset[int]]] = []
        self._n_classes = 0

    def plant(self, n_zones: int, largest: int, *, rings: bool) -> None:
        """Make the zones, the planted choice, its prices, and the ways within zones."""
        rng = self._rng
        for index in range(n_zones):
            zone = self._new_zone(min(largest, int(rng.choice([1, 1, 2, 3, 4]))))
            zone.planted, zone.cost = [], int(rng.integers(0, _DEAREST + 1))
            if index:
                nearest = max(0, index - 30)  # deep rather than flat
                for above in {int(rng.integers(nearest, index)) for _ in range(rng.integers(1, 4))}:
                    below = self._zones[above].planted
                    assert below is not None
                    below.append(index)
        if rings:
            for _ in range(max(1, n_zones // 25)):
                self._ring(int(rng.integers(0, n_zones)))
        self._set_prices()
        for zone in self._zones:
            if not zone.sealed:
                below = [self._zones[child].classes[0] for child in zone.planted or ()]
                self._add(zone.classes[0], zone.cost, below)
            self._join(zone.classes)

    def lay_decoys(self, n_nodes: int) -> None:
        """Add shared zones and founded decoys until there are so many e-nodes."""
        open_zones = [index for index, zone in enumerate(self._zones) if not zone.sealed]
        for _ in range(len(open_zones) // 4):
            self._shared_zone(open_zones)
        while len(self._nodes) < n_nodes:
            self._decoy(self._one_of(open_zones))

    def finish(self) -> Planted:
        """Return the e-graph, its e-nodes in random order."""
        order = self._rng.permutation(len(self._nodes)).tolist()
        nodes = [self._nodes[index] for index in order]
        children = [sorted(part) for _, _, part in nodes]
        problem = ExtractionProblem(
            cost_us=np.array([cost for _, cost, _ in nodes], dtype=np.float64),
            node_class=np.array([klass for klass, _, _ in nodes], dtype=np.int32),
            child_ptr=np.cumsum([0, *(len(part) for part in children)]).astype(np.int32),
            child_idx=np.array([child for part in children for child in part], dtype=np.int32),
            n_classes=self._n_classes,
            root=self._zones[0].classes[0],
            original=np.full(self._n_classes, UNUSED, dtype=np.int32),
        )
        return Planted(problem, float(self._zones[0].price))

    def _new_zone(self, size: int) -> _Zone:
        zone = _Zone(self._new_classes(size))
        self._zones.append(zone)
        return zone

    def _new_classes(self, count: int) -> list[int]:
        self._n_classes += count
        return list(range(self._n_classes - count, self._n_classes))

    def _add(self, klass: int, cost: int, children: Sequence[int]) -> None:
        self._nodes.append((klass, float(cost), frozenset(children)))

    def _ring(self, above: int) -> None:
        """Put an odd ring below a planted zone."""
        length, cost = int(self._rng.choice([3, 5, 7])), int(self._rng.integers(1, _DEAREST + 1))
        top = self._new_zone(1)
        top.sealed, top.cost, top.planted = True, cost * (length + 1) // 2, []
        below = self._zones[above].planted
        assert below is not None
        below.append(len(self._zones) - 1)
        consumers, suppliers = self._new_classes(length), self._new_classes(length)
        self._add(top.classes[0], 0, consumers)
        for index in range(length):
            self._add(consumers[index], 0, [suppliers[index]])
            self._add(consumers[index], 0, [suppliers[(index + 1) % length]])
            self._add(suppliers[index], cost, [])

    def _set_prices(self) -> None:
        """From the leaves up, share every price out among the zones above."""
        above: list[list[int]] = [[] for _ in self._zones]
        for index, zone in enumerate(self._zones):
            for below in zone.planted or ():
                above[below].append(index)
        for index in self._leaves_first():
            zone = self._zones[index]
            zone.price = zone.cost + sum(zone.shares.values())
            if above[index]:
                self._share_out(index, above[index], zone.price)

    def _leaves_first(self) -> list[int]:
        """Return the planted zones, children before parents: rings, then from the last zone up."""
        rings = [index for index, zone in enumerate(self._zones) if zone.sealed]
        tree_zones = [index for index, zone in enumerate(self._zones) if not zone.sealed]
        return rings + tree_zones[::-1]

    def _share_out(self, zone: int, above: Sequence[int], price: int) -> None:
        parts = self._rng.multinomial(price, [1 / len(above)] * len(above)).tolist()
        for user, part in zip(above, parts, strict=True):
            self._zones[user].shares[zone] = part

    def _join(self, classes: Sequence[int]) -> None:
        """Free ways from every class of a zone to its entry, and free inner ways in cycles."""
        for index, klass in enumerate(classes[1:], start=1):
            self._add(klass, 0, [self._one_of(classes[:index])])
            self._add(self._one_of(classes[:index]), 0, [klass])

    def _shared_zone(self, open_zones: Sequence[int]) -> None:
        """A zone that is not planted: some others may share it, each for a part of its price."""
        rng = self._rng
        users = sorted({self._one_of(open_zones) for _ in range(4)})
        zone = self._new_zone(1)
        index = len(self._zones) - 1
        zone.price = int(rng.integers(1, _DEAREST + 1))
        self._share_out(index, users, zone.price)
        extra = int(rng.choice([0, 0, 1, 3]))
        self._add(zone.classes[0], zone.price + extra, self._anywhere(open_zones, 0.3))
        self._join(zone.classes)
        for user in users:
            self._decoy(user, (index,))

    def _decoy(self, index: int, also: Sequence[int] = ()) -> None:
        """Another founded e-node of a zone, at least as costly as the prices demand."""
        rng = self._rng
        zone = self._zones[index]
        kept_children = [child for child in zone.planted or () if rng.random() < 0.6]
        needs = {*kept_children, *also} - {index}
        charged = sum(zone.shares.get(child, 0) for child in needs)
        children = {self._class_of(child) for child in needs}
        children |= {
            child
            for child in self._anywhere(range(len(self._zones)), 0.5)
            if child not in zone.classes
        }
        extra = int(rng.choice([0, 1, 2, 5]))
        klass = self._one_of(zone.classes)
        self._add(klass, max(0, zone.price - charged) + extra, sorted(children))

    def _class_of(self, zone: int) -> int:
        """Return some class of a zone: all of them are as cheap."""
        return self._one_of(self._zones[zone].classes)

    def _one_of(self, items: Sequence[int]) -> int:
        return items[int(self._rng.integers(0, len(items)))]

    def _anywhere(self, zones: Sequence[int], chance: float) -> list[int]:
        """Return a class of some zone, above or below, or none."""
        if self._rng.random() >= chance:
            return []
        zone = self._one_of(zones)
        return [] if self._zones[zone].sealed else [self._class_of(zone)]
