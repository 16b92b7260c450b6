"""Firing: a rule in each of some worlds, all worlds at a time, within each world's limit of e-nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.worlds.applications import BUILT, REJECTED, WAITING
from relational_tensat.explore.worlds.masks import Bits, Flags, Masks, packed, some_world, unpacked
from relational_tensat.explore.worlds.node_arrays import Ints
from relational_tensat.explore.worlds.pairs import Looked
from relational_tensat.explore.worlds.universe import Universe

#: Stands for no rule: a world in which nothing fires.
NO_RULE = 0

#: So many times at the most, what fits into worlds is built, and then looked what else does: of what is not
#: built, it is not known how much of it the worlds have.
_MOST_ROUNDS = 4

#: So many applications at a time are tried on whether they fit into a world: most end at the first few.
_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Fired:
    """What fired in worlds.

    Attributes:
        applications: by world, those that fired in it, in order.
        changed: whether a world got an e-node.
        limited: whether a world's limit, or the universe's, left something out.
    """

    applications: tuple[Ints, ...]
    changed: Flags
    limited: Flags


@dataclass(slots=True)
class _EqualWorlds:
    """Worlds of equal e-nodes in which one rule fires.

    Attributes:
        worlds: which ones.
        places: of the applications that fire, in order.
        room: how many e-nodes each can get.
        fitting: so many of the applications, from the first on, fit.
    """

    worlds: list[int]
    places: Ints
    room: int
    fitting: int = 0

    def drop(self, is_gone: Flags) -> None:
        """Leave out some of the applications."""
        if is_gone.any():
            self.places = self.places[~is_gone]


class Worlds:
    """Worlds of a universe, side by side.

    Attributes:
        universe: the e-graph that they are parts of.
        masks: their e-nodes.
        node_limit: the most e-nodes of each.
        is_done: which worlds nothing is to fire in any more; set by the caller.
    """

    def __init__(
        self,
        universe: Universe,
        masks: Masks,
        node_limit: int,
        looked: Mapping[int, int] | None = None,
    ) -> None:
        """Look at worlds.

        Args:
            looked: since when all of them have been looked at, one by one or together, with all that they
                have (``Universe.match_versions`` of that time); None: never.
        """
        self.universe = universe
        self.masks = masks
        self.node_limit = node_limit
        self.is_done: Flags = np.zeros(masks.worlds, np.bool_)
        self._looked = Looked(looked)
        self._candidates: NDArray[np.intp] = np.zeros(0, np.intp)
        self._live: Bits = np.zeros((0, masks.bits.shape[1]), np.uint64)
        self.look()

    def look(self) -> None:
        """Find out which applications could change which worlds that are not done."""
        universe, masks = self.universe, self.masks.only(~self.is_done)
        universe.pair(masks, self._looked)
        applications = universe.applications
        present = masks.present()
        sources = applications.sources
        candidates = np.flatnonzero(present[sources[:, 0]] & (applications.states != REJECTED))
        for column in range(1, sources.shape[1]):
            candidates = candidates[present[sources[candidates, column]]]
        live = masks.have_all(sources[candidates])
        built = applications.states[candidates] == BUILT
        live[built] &= ~masks.have_all(applications.targets[candidates[built]])
        some = some_world(live)
        self._candidates, self._live = candidates[some], live[some]

    def live_rules(self, among: Flags | None = None) -> Flags:
        """Return which rules (by id) would change which worlds: a row each, a column for each world.

        It is exact but for applications that are not built: what they build is new to the universe, but
        of several e-nodes and unions, a world may have all that is an e-node.

        Args:
            among: by id of an e-node: only applications all of whose sources are among these; row 0 counts
                as one.
        """
        rules = self.universe.world.rules
        flags = np.zeros((rules.first + len(rules.rules), self.masks.worlds), np.bool_)
        applications = self.universe.applications
        places, live = self._candidates, self._live
        if among is not None:
            counts = among[applications.sources[places]].all(1)
            places, live = places[counts], live[counts]
        owner = applications.rules[places]
        order = np.argsort(owner, kind="stable")
        if len(order):
            starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
            bits = np.bitwise_or.reduceat(live[order], starts, axis=0)
            flags[owner[order][starts]] = unpacked(bits, self.masks.worlds)
        return flags

    def fire(self, rules: Ints, iteration: int) -> Fired:
        """Let a rule fire in each world: all its applications whose sources the world has.

        Args:
            rules: by world, the rule's id or ``NO_RULE``.
            iteration: what is built is stored with this index.
        """
        applications = self.universe.applications
        fired = self._live & self._firing(rules)[applications.rules[self._candidates]]
        some = some_world(fired)
        places: Ints = self._candidates[some].astype(np.int32)
        sizes = self.masks.sizes()
        groups = self._equal_worlds(places, fired[some], rules, sizes)
        self._fit(groups)
        for _ in range(_MOST_ROUNDS):
            waiting = self._waiting(groups)
            if not len(waiting):
                break
            self._build(waiting, iteration)
            for group in groups:
                group.drop(applications.states[group.places] == REJECTED)
            self._fit(groups)
            if self.universe.is_full:
                break
        came: list[Ints] = [places[:0]] * self.masks.worlds
        limited = np.zeros(self.masks.worlds, np.bool_)
        for group in groups:
            within_limits = group.places[: group.fitting]
            built = within_limits[applications.states[within_limits] == BUILT]
            self.masks.enter(applications.targets[built], group.worlds)
            limited[group.worlds] = len(built) < len(group.places)
            for world in group.worlds:
                came[world] = built
        return Fired(tuple(came), self.masks.sizes() != sizes, limited)

    def _equal_worlds(
        self, places: Ints, fired: Bits, rules: Ints, sizes: Ints
    ) -> list[_EqualWorlds]:
        """Return the worlds in which something fires, those together in which the same does.

        Args:
            places: of applications.
            fired: of each, the worlds in which it fires.
        """
        groups: dict[tuple[int, bytes], _EqualWorlds] = {}
        of_rules = self.universe.applications.rules[places]
        firing = np.flatnonzero(rules != NO_RULE)
        members = np.packbits(self.masks.membership(firing), axis=1)
        own: dict[int, tuple[Ints, Flags]] = {}
        for world, rule, enodes in zip(
            firing.tolist(), rules[firing].tolist(), members, strict=True
        ):
            if rule not in own:
                rows = np.flatnonzero(of_rules == rule)
                own[rule] = places[rows], unpacked(fired[rows], len(rules))
            key = (rule, enodes.tobytes())
            if key not in groups:
                applications, flags = own[rule]
                room = self.node_limit - int(sizes[world])
                groups[key] = _EqualWorlds([], applications[flags[:, world]], room)
            groups[key].worlds.append(world)
        return list(groups.values())

    def _waiting(self, groups: Sequence[_EqualWorlds]) -> Ints:
        """Return the applications that fit into worlds and are not built."""
        if not groups:
            return np.zeros(0, np.int32)
        places = np.unique(np.concatenate([group.places[: group.fitting] for group in groups]))
        return np.asarray(places[self.universe.applications.states[places] == WAITING])

    def _fit(self, groups: Sequence[_EqualWorlds]) -> None:
        """Find out how many of what fires in worlds fit into their limits, in order.

        What is not built counts with all that it may build.
        """
        members = self.masks.membership(np.array([group.worlds[0] for group in groups], np.intp))
        for group, known in zip(groups, members, strict=True):
            group.fitting = self._fitting(group, known)

    def _fitting(self, group: _EqualWorlds, known: Flags) -> int:
        """Return how many of the applications that fire in a world fit into it.

        Args:
            known: by id of an e-node, whether the world has it; what fits is added.
        """
        applications, templates = self.universe.applications, self.universe.templates
        room = group.room
        for start in range(0, len(group.places), _AT_ONCE):
            places = group.places[start : start + _AT_ONCE]
            targets = applications.targets[places]
            new = _new_nodes(targets, known)
            waiting = np.flatnonzero(applications.states[places] == WAITING)
            new[waiting] = templates.sizes(applications.instances[places[waiting]])
            total = np.cumsum(new)
            if total[-1] > room:
                return start + int(np.searchsorted(total, room, side="right"))
            room -= int(total[-1])
            known[targets] = True
        return len(group.places)

    def _firing(self, rules: Ints) -> Bits:
        """Return, by rule id, the mask of the worlds in which it fires."""
        compiled = self.universe.world.rules
        worlds = len(rules)
        chosen = np.zeros((compiled.first + len(compiled.rules), worlds), np.uint8)
        chosen[rules, np.arange(worlds)] = 1
        chosen[NO_RULE] = 0
        return packed(chosen)

    def _build(self, waiting: Ints, iteration: int) -> None:
        """Build applications, and name e-nodes as they are then."""
        version = self.universe.version
        self.universe.build(waiting, iteration)
        if self.universe.version != version:
            self.masks.follow(self.universe.arrays.became)


def _new_nodes(targets: Ints, known: Flags) -> Ints:
    """Return how many e-nodes each row brings in that are not known and in no row before it.

    Args:
        known: by id; 0 counts as known.
    """
    flat = targets.ravel()
    place = np.arange(len(flat), dtype=np.int32)
    first = np.zeros(len(known), np.int32)
    first[flat[::-1]] = place[::-1]  # of several, what is written last stays: the first place
    new = ~known[flat] & (first[flat] == place)
    return np.asarray(new.reshape(targets.shape).sum(axis=1, dtype=np.int32))
