"""Firing: a rule in each of some worlds, all worlds at a time, within each world's limit of e-nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.worlds.applications import BUILT, REJECTED, WAITING
from relational_tensat.explore.worlds.masks import Bits, Flags, Masks, packed, some_world, unpacked
from relational_tensat.explore.worlds.node_arrays import Ints
from relational_tensat.explore.worlds.universe import Universe

#: Stands for no rule: a world in which nothing fires.
NO_RULE = 0

#: So many times at the most, what fits into worlds is built, and then looked what else does: of what is not
#: built, it is not known how much of it the worlds have.
_MOST_ROUNDS = 4


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


class Worlds:
    """Worlds of a universe, side by side.

    Attributes:
        universe: the e-graph that they are parts of.
        masks: their e-nodes.
        node_limit: the most e-nodes of each.
        is_done: which worlds nothing is to fire in any more; set by the caller.
    """

    def __init__(self, universe: Universe, masks: Masks, node_limit: int) -> None:
        self.universe = universe
        self.masks = masks
        self.node_limit = node_limit
        self.is_done: Flags = np.zeros(masks.worlds, np.bool_)
        self._candidates: NDArray[np.intp] = np.zeros(0, np.intp)
        self._live: Bits = np.zeros((0, masks.bits.shape[1]), np.uint64)
        self.look()

    def look(self) -> None:
        """Find out which applications could change which worlds that are not done."""
        universe, masks = self.universe, self.masks.only(~self.is_done)
        universe.pair(masks)
        applications = universe.applications
        present = masks.present()
        sources = applications.sources
        is_candidate = applications.states != REJECTED
        for column in range(sources.shape[1]):
            is_candidate &= present[sources[:, column]]
        candidates = np.flatnonzero(is_candidate)
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
        applications, worlds = self.universe.applications, self.masks.worlds
        firing = self._firing(rules)
        places: Ints = self._candidates.astype(np.int32)
        fired = self._live & firing[applications.rules[places]]
        some = some_world(fired)
        places, flags = places[some], unpacked(fired[some], worlds)
        sizes = self.masks.sizes()
        within, is_over = self._within(places, flags, sizes, rules)
        for _ in range(_MOST_ROUNDS):
            waiting = within.any(1) & (applications.states[places] == WAITING)
            if not waiting.any():
                break
            self._build(places[waiting], iteration)
            flags[applications.states[places] == REJECTED] = False
            within, is_over = self._within(places, flags, sizes, rules)
            if self.universe.is_full:
                break
        within[applications.states[places] != BUILT] = False
        limited = is_over | (flags & ~within).any(axis=0)
        some = np.asarray(within.any(1))
        places, within = places[some], within[some]
        self.masks.add(applications.targets[places], packed(within))
        changed = self.masks.sizes() != sizes
        return Fired(tuple(places[within[:, world]] for world in range(worlds)), changed, limited)

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

    def _within(self, places: Ints, flags: Flags, sizes: Ints, rules: Ints) -> tuple[Flags, Flags]:
        """Return which applications fit into the worlds' limits, in order, and which worlds have no room.

        What is not built counts with all that it may build.

        Args:
            rules: by world, the rule that fires.
        """
        applications = self.universe.applications
        targets = applications.targets[places]
        most_new = (targets > 0).sum(axis=1, dtype=np.int32)
        waiting = applications.states[places] == WAITING
        most_new[waiting] = self.universe.templates.sizes(applications.instances[places[waiting]])
        most_new[applications.states[places] == REJECTED] = 0
        within, is_over = flags.copy(), np.zeros(len(sizes), np.bool_)
        # Exact up to 2^24, more than fits anyway.
        most = sizes + most_new.astype(np.float32) @ flags.astype(np.float32)
        too_much: dict[tuple[int, bytes], Ints] = {}  # equal worlds are looked at once
        full = np.flatnonzero(most > self.node_limit)
        for world, members in zip(full.tolist(), self.masks.membership(full), strict=True):
            key = (int(rules[world]), members.tobytes())
            if key not in too_much:
                rows = np.flatnonzero(flags[:, world]).astype(np.int32)
                new = _new_nodes(targets[rows], members)
                new[waiting[rows]] = most_new[rows][waiting[rows]]
                room = self.node_limit - int(sizes[world])
                too_much[key] = rows[np.searchsorted(np.cumsum(new), room, side="right") :]
            within[too_much[key], world] = False
            is_over[world] = len(too_much[key]) > 0
        return within, is_over


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
