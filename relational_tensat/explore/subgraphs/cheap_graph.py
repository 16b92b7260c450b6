"""The cheapest graph of a subgraph that grows, kept by moves: a reward signal that costs what is new.

A subgraph's graph begins as its parent's. Every application that comes into the subgraph is a move: its
target in the place of its source. The price is the new e-nodes' cost less that of nodes that nothing needs
any more then (reference counts, as in ``extract/greedy/improve``). Of an application of two sources both
move together. So merged operators become cheaper than either alone. Changes by a move are offered to those
above: a class that is not needed has an e-node as well, the cheapest at that time, and is tried again where
that changes. A move that saves nothing is made where fewer need what costs something then: the last of them
may do without it.

No graph is ever costlier than the parent's. It is no optimum: see ``extract``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import inf
from typing import NamedTuple

from relational_tensat.explore.subgraphs.node_arrays import Ints
from relational_tensat.explore.subgraphs.node_costs import NodeCosts
from relational_tensat.explore.subgraphs.universe import Universe

#: A graph counts as cheaper by more than this part of a µs.
_LEAST_GAIN_US = 1e-9

#: So many e-nodes are tried at the most for each that comes into a subgraph: where changes reach far, some
#: are not followed.
_TRIED_PER_NODE = 12


class Move(NamedTuple):
    """An application that comes into a subgraph.

    Attributes:
        targets: its e-nodes, operands first.
        pair: of two sources, the e-nodes that are to take the places of their roots.
    """

    targets: tuple[int, ...]
    pair: tuple[int, int] | None = None


class CheapGraph:
    """A graph of a subgraph, and which e-nodes the subgraph has.

    Attributes:
        prices: the universe's e-nodes, for which it holds.
        members: the e-nodes that the subgraph has.
        cost_us: its cost.
    """

    def __init__(
        self,
        prices: NodeCosts,
        members: Iterable[int],
        choice: dict[int, int],
        pairs: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Begin with a graph.

        Args:
            members: the e-nodes of the subgraph.
            choice: by class, its e-node; those that the root needs form no cycle.
            pairs: e-nodes of the subgraph that may move together later.
        """
        self.cost_us = 0.0
        self.prices = prices
        self.members = set(members)
        self._choice = choice
        self._users = [0] * len(prices.users)
        self._pending: dict[int, tuple[tuple[int, int], ...]] = {}
        self._steps = 0
        for pair in pairs:
            self._expect(pair)
        for enode in self.members:
            choice.setdefault(prices.owner[enode], enode)
        self._users[prices.root] = 1
        root_node = choice[prices.root]
        self.cost_us = prices.cost_us[root_node] + self._count(prices.children[root_node], [])

    def copy(self) -> CheapGraph:
        """Return another one that is the same now."""
        other = CheapGraph.__new__(CheapGraph)
        other.cost_us = self.cost_us
        other.prices = self.prices
        other.members = self.members.copy()
        other._choice = self._choice.copy()
        other._users = self._users.copy()
        other._pending = self._pending.copy()
        other._steps = 0
        return other

    @property
    def choice(self) -> dict[int, int]:
        """By class, the e-node that it has or would have."""
        return self._choice

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of e-nodes that may move together later."""
        return list(dict.fromkeys(chain.from_iterable(self._pending.values())))

    def chosen(self) -> dict[int, int]:
        """Return the e-nodes of the graph, by class, children first."""
        prices = self.prices
        order: dict[int, int] = {}
        stack = [prices.root]
        while stack:
            owner = stack[-1]
            enode = self._choice[owner]
            waiting = [child for child in prices.children[enode] if child not in order]
            if owner in order or not waiting:
                stack.pop()
                order.setdefault(owner, enode)
            else:
                stack += waiting
        return order

    def enter(self, moves: Iterable[Move]) -> None:
        """Let applications come into the subgraph, in order."""
        owner, members, choice = self.prices.owner, self.members, self._choice
        for targets, pair in moves:
            alternatives = []
            for enode in targets:
                if enode in members:
                    continue
                members.add(enode)
                if owner[enode] in choice:
                    alternatives.append(enode)
                else:
                    choice[owner[enode]] = enode
            self._steps = _TRIED_PER_NODE * len(targets)
            if pair is not None and self._expect(pair):
                self._exchange(pair)
            if alternatives:
                self._try(alternatives)

    def _expect(self, pair: tuple[int, int]) -> bool:
        """Let two e-nodes move together once their classes are needed; return whether they have two."""
        one, other = pair
        owners, pending = self.prices.owner, self._pending
        if owners[one] == owners[other]:
            return False
        for owner in (owners[one], owners[other]):
            pending[owner] = (*pending.get(owner, ()), pair)
        return True

    def _try(self, enodes: list[int]) -> None:
        """Let classes have these e-nodes, where that makes the graph or the class cheaper; then follow."""
        owner, choice, users = self.prices.owner, self._choice, self._users
        cost_us = self.prices.cost_us
        while enodes and self._steps > 0:
            self._steps -= 1
            enode = enodes.pop()
            place = owner[enode]
            if choice[place] == enode:
                if not users[place]:
                    continue
            elif users[place]:
                self._exchange((enode,))
            else:
                most_us = self._price(choice[place])
                if cost_us[enode] >= most_us:
                    continue
                if self._price(enode, most_us) < most_us - _LEAST_GAIN_US:
                    old, choice[place] = choice[place], enode
                    if self._leads_back(place):
                        choice[place] = old
                    else:
                        enodes += self._above(place)

    def _above(self, place: int) -> list[int]:
        """Return the e-nodes of the subgraph that a class is a child of."""
        members = self.members
        return [enode for enode in self.prices.users[place] if enode in members]

    def _exchange(self, enodes: Sequence[int]) -> bool:
        """Let needed classes have other e-nodes, all of them, if that is cheaper; return whether."""
        prices, choice, users = self.prices, self._choice, self._users
        cost_us, children = prices.cost_us, prices.children
        places, old, gain_us = [], [], 0.0
        for enode in enodes:
            place = prices.owner[enode]
            if not users[place]:
                return False
            before = choice[place]
            places.append(place)
            old.append(before)
            gain_us += cost_us[before] - cost_us[enode]
        if old == list(enodes):
            return False
        # Where nothing goes with them, counting ends once what comes in costs more than is saved.
        most_us = inf if self._may_drop(old) else gain_us + 2 * _LEAST_GAIN_US
        if self._costs_as_much(enodes, most_us):
            return False
        added: list[int] = []
        dropped: list[int] = []
        added_us = 0.0
        for place, enode in zip(places, enodes, strict=True):
            choice[place] = enode
            added_us += self._count(children[enode], added, most_us - added_us)
        gain_us -= added_us
        is_better = added_us < most_us
        if is_better:
            for before in old:
                gain_us += self._count_down(children[before], dropped)
            is_better = gain_us > _LEAST_GAIN_US or (
                gain_us > -_LEAST_GAIN_US and self._shares_less(added, dropped)
            )
        if is_better and not any(map(self._is_cyclic, places)):
            self.cost_us -= gain_us
            self._follow(added, dropped)
            return True
        for child in added:
            users[child] -= 1
        for child in dropped:
            users[child] += 1
        for place, before in zip(places, old, strict=True):
            choice[place] = before
        return False

    def _may_drop(self, old: Sequence[int]) -> bool:
        """Whether a class that may cost something is needed by these e-nodes alone."""
        children, users, free = self.prices.children, self._users, self.prices.weight_only
        read = children[old[0]] if len(old) == 1 else [c for enode in old for c in children[enode]]
        for child in read:
            if users[child] <= len(old) and not free[child] and users[child] <= read.count(child):
                return True
        return False

    def _costs_as_much(self, enodes: Sequence[int], most_us: float) -> bool:
        """Whether a class below one of these e-nodes costs ``most_us`` or more: told without counting."""
        if most_us <= 0:
            return True
        if most_us == inf:
            return False
        prices, choice, users = self.prices, self._choice, self._users
        for enode in enodes:
            for child in prices.children[enode]:
                if not users[child] and prices.cost_us[choice[child]] >= most_us:
                    return True
        return False

    def _shares_less(self, added: list[int], dropped: list[int]) -> bool:
        """Whether what costs something is needed by fewer: so that the last of these can do without it."""
        more_us, less_us = sum(map(self._paid, added)), sum(map(self._paid, dropped))
        return less_us > more_us + _LEAST_GAIN_US

    def _paid(self, place: int, above: tuple[int, ...] = ()) -> float:
        """Return what the e-node of a class costs; of one that is free, those below it.

        Args:
            above: free classes that it is below: in a cycle of these nothing is paid.
        """
        enode = self._choice[place]
        cost_us = self.prices.cost_us[enode]
        if cost_us or self.prices.weight_only[place] or place in above:
            return cost_us
        above = (*above, place)
        return sum(self._paid(child, above) for child in self.prices.children[enode])

    def _follow(self, added: list[int], dropped: list[int]) -> None:
        """Try again what may be cheaper now that classes are needed, or by one only."""
        prices, choice, users = self.prices, self._choice, self._users
        new = [place for place in dict.fromkeys(added) if users[place] == 1]
        again = [
            e for place in new if prices.cost_us[choice[place]] > 0 for e in self._above(place)
        ]
        for place in dict.fromkeys(dropped):
            if users[place] == 1:
                for enode in self._above(place):
                    owner = prices.owner[enode]
                    if choice[owner] == enode and users[owner]:
                        new.append(owner)
                        again += [e for e in prices.members[owner] if e in self.members]
        for pair in [pair for place in new for pair in self._pending.get(place, ())]:
            if self._steps > 0:
                self._steps -= 1
                self._exchange(pair)
        self._try(again)

    def _price(self, enode: int, most: float = inf) -> float:
        """Return what the graph would cost more with an e-node beside it, or something from ``most`` on."""
        total = self.prices.cost_us[enode]
        if total >= most:
            return total
        users, children = self._users, self.prices.children[enode]
        for child in children:
            if not users[child]:
                added: list[int] = []
                total += self._count(children, added, most - total)
                for each in added:
                    users[each] -= 1
                break
        return total

    def _count(self, classes: Sequence[int], trail: list[int], most: float = inf) -> float:
        """Count one more user of these classes, and so on below those that come in; return their cost.

        It ends where that is ``most`` or more.
        """
        users, choice = self._users, self._choice
        cost_us, children = self.prices.cost_us, self.prices.children
        total, stack = 0.0, list(classes)
        while stack and total < most:
            place = stack.pop()
            trail.append(place)
            if users[place]:
                users[place] += 1
            else:
                users[place] = 1
                enode = choice[place]
                total += cost_us[enode]
                stack += children[enode]
        return total

    def _count_down(self, classes: Sequence[int], trail: list[int]) -> float:
        """Count one user less of these classes, and so on below those that go; return their cost."""
        users, choice = self._users, self._choice
        cost_us, children = self.prices.cost_us, self.prices.children
        total, stack = 0.0, list(classes)
        while stack:
            place = stack.pop()
            trail.append(place)
            users[place] -= 1
            if not users[place]:
                enode = choice[place]
                total += cost_us[enode]
                stack += children[enode]
        return total

    def _leads_back(self, start: int) -> bool:
        """Whether a class that is not needed is below itself: by others that are not needed, if it is."""
        children, choice, users = self.prices.children, self._choice, self._users
        seen: set[int] = set()
        stack = list(children[choice[start]])
        while stack:
            place = stack.pop()
            if place == start:
                return True
            if place not in seen and not users[place]:
                seen.add(place)
                stack += children[choice[place]]
        return False

    def _is_cyclic(self, start: int) -> bool:
        """Whether there is a cycle at a class or below it."""
        children, choice = self.prices.children, self._choice
        is_open: dict[int, bool] = {}
        stack = [start]
        while stack:
            place = stack[-1]
            if place in is_open:
                stack.pop()
                is_open[place] = False
                continue
            is_open[place] = True
            for child in children[choice[place]]:
                if child not in is_open:
                    stack.append(child)
                elif is_open[child]:
                    return True
        return False


def moved(graph: CheapGraph, prices: NodeCosts) -> CheapGraph:
    """Return the same graph after the universe has changed: classes and e-nodes may have become equal.

    Of a class that was two, the e-node that stands lower in the graph stands for both.
    """
    arrays = prices.arrays
    choice: dict[int, int] = {}
    for enodes in (graph.chosen().values(), graph.choice.values()):
        for enode in enodes:
            now = int(arrays.became[enode])
            choice.setdefault(int(arrays.owner[now]), now)
    members = {int(arrays.became[enode]) for enode in graph.members}
    pairs = [(int(arrays.became[one]), int(arrays.became[other])) for one, other in graph.pairs]
    return CheapGraph(prices, members, choice, dict.fromkeys(pairs))


def moves_of(universe: Universe, places: Ints) -> dict[int, Move]:
    """Return what applications that are built do to a graph, by their places."""
    compiled, applications = universe.subgraph.rules, universe.applications
    targets = applications.targets[places].tolist()
    roots = universe.templates.roots(applications.instances[places]).tolist()
    bound = 2 * compiled.leaf_columns
    moves = {}
    for place, enodes, (root0, root1) in zip(places.tolist(), targets, roots, strict=True):
        pair = None
        if root1 and root0 > bound and root1 > bound:
            pair = enodes[root0 - bound - 1], enodes[root1 - bound - 1]
        moves[place] = Move(tuple(filter(None, enodes)), pair)
    return moves
