"""Firing: a rule in each of some subgraphs, all at a time, within each one's limit of e-nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.plan import Plan
from relational_tensat.explore.subgraphs.applications import BUILT, REJECTED, WAITING
from relational_tensat.explore.subgraphs.node_arrays import (
    Bits,
    Flags,
    Ints,
    Masks,
    some_subgraph,
    unpacked,
)
from relational_tensat.explore.subgraphs.pairs import SeenVersions
from relational_tensat.explore.subgraphs.universe import Universe

#: Stands for no rule: a subgraph in which nothing fires.
NO_RULE = 0

#: So many times at the most, applications that fit into subgraphs are built, and others are looked for: of
#: those not built, it is not known how much of them the subgraphs have.
_MOST_ROUNDS = 4

#: So many applications at a time are tried on whether they fit into a subgraph: most end at the first few.
_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Fired:
    """The firings in subgraphs.

    Attributes:
        applications: by subgraph, those that fired in it, in order.
        changed: whether a subgraph got an e-node.
        limited: whether a subgraph's limit, or the universe's, left something out.
    """

    applications: tuple[Ints, ...]
    changed: Flags
    limited: Flags


class Subgraphs:
    """Subgraphs of a universe, side by side.

    Attributes:
        universe: the e-graph that they are parts of.
        masks: their e-nodes.
        node_limit: the most e-nodes of each.
        is_done: which subgraphs nothing is to fire in any more; set by the caller.
    """

    def __init__(
        self,
        universe: Universe,
        masks: Masks,
        node_limit: int,
        looked: Mapping[int, int] | None = None,
    ) -> None:
        """Begin with subgraphs that have not been looked at: see ``look``.

        Args:
            looked: since when all of them have been looked at, one by one or together, with all that they
                have (``Universe.match_versions`` of that time); None: never.
        """
        self.universe = universe
        self.masks = masks
        self.node_limit = node_limit
        self.is_done: Flags = np.zeros(masks.subgraphs, np.bool_)
        self._looked = SeenVersions(looked)
        self._candidates: NDArray[np.intp] = np.zeros(0, np.intp)
        self._live: Bits = np.zeros((0, masks.bits.shape[1]), np.uint64)

    def look(self) -> Plan[None]:
        """Find out which applications could change which subgraphs that are not done."""
        universe, masks = self.universe, self.masks.only(~self.is_done)
        yield partial(universe.pair, masks, self._looked)
        applications = universe.applications
        present = some_subgraph(masks.bits)
        sources = applications.sources
        candidates = np.flatnonzero(present[sources[:, 0]] & (applications.states != REJECTED))
        for column in range(1, sources.shape[1]):
            candidates = candidates[present[sources[candidates, column]]]
        live = masks.have_all(sources[candidates])
        built = applications.states[candidates] == BUILT
        live[built] &= ~masks.have_all(applications.targets[candidates[built]])
        some = some_subgraph(live)
        self._candidates, self._live = candidates[some], live[some]

    def live_rules(self) -> Flags:
        """Return which rules (by id) would change which subgraphs: a row each, a column for each subgraph.

        It is exact but for applications that are not built. Their e-nodes would be new to the universe; but
        if they are several e-nodes and unions, a subgraph may have all e-nodes already.
        """
        rules = self.universe.subgraph.rules
        flags = np.zeros((rules.first + len(rules.rules), self.masks.subgraphs), np.bool_)
        applications = self.universe.applications
        live, owner = self._live, applications.rules[self._candidates]
        order = np.argsort(owner, kind="stable")
        if len(order):
            starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
            bits = np.bitwise_or.reduceat(live[order], starts, axis=0)
            flags[owner[order][starts]] = unpacked(bits, self.masks.subgraphs)
        return flags

    def fire(self, rules: Ints, iteration: int) -> Plan[Fired]:
        """Let a rule fire in each subgraph: all its applications whose sources the subgraph has.

        Args:
            rules: by subgraph, the rule's id or ``NO_RULE``.
            iteration: new e-nodes are stored with this index.
        """
        applications, masks, sizes = self.universe.applications, self.masks, self.masks.sizes()
        came = self._firing(rules)
        firing = np.flatnonzero(rules != NO_RULE).tolist()
        fitting = self._fitting(came, firing, sizes)
        for _ in range(_MOST_ROUNDS):
            within = [came[subgraph][: fitting[subgraph]] for subgraph in firing]
            places = np.unique(np.concatenate(within)) if within else np.zeros(0, np.int32)
            waiting = places[applications.states[places] == WAITING]
            if not len(waiting):
                break
            version = self.universe.version
            yield from self.universe.build(waiting, iteration)
            if self.universe.version != version:
                masks.follow(self.universe.arrays.became)
            for subgraph in firing:
                came[subgraph] = came[subgraph][applications.states[came[subgraph]] != REJECTED]
            fitting = self._fitting(came, firing, sizes)
            if self.universe.is_full:
                break
        limited = np.zeros(masks.subgraphs, np.bool_)
        for subgraph in firing:
            fits = came[subgraph][: fitting[subgraph]]
            built = fits[applications.states[fits] == BUILT]
            masks.enter(applications.targets[built], subgraph)
            limited[subgraph] = len(built) < len(came[subgraph])
            came[subgraph] = built
        return Fired(tuple(came), masks.sizes() != sizes, limited)

    def _firing(self, rules: Ints) -> list[Ints]:
        """Return, by subgraph, the applications of a rule that change it."""
        none: Ints = np.zeros(0, np.int32)
        came = [none] * len(rules)
        rule_of = self.universe.applications.rules[self._candidates]
        for rule in np.unique(rules[rules != NO_RULE]).tolist():
            rows = np.flatnonzero(rule_of == rule)
            places: Ints = self._candidates[rows].astype(np.int32)
            changes = unpacked(self._live[rows], len(rules))
            for subgraph in np.flatnonzero(rules == rule).tolist():
                came[subgraph] = places[changes[:, subgraph]]
        return came

    def _fitting(self, came: list[Ints], subgraphs: list[int], sizes: Ints) -> dict[int, int]:
        """Return how many of the applications that fire in subgraphs fit into them, in order.

        An application that is not built counts with all that it may build.
        """
        applications, templates = self.universe.applications, self.universe.templates
        members = self.masks.membership(np.array(subgraphs, np.intp))
        fitting = {}
        for subgraph, known in zip(subgraphs, members, strict=True):
            room, fitting[subgraph] = self.node_limit - int(sizes[subgraph]), len(came[subgraph])
            for start in range(0, len(came[subgraph]), _AT_ONCE):
                places = came[subgraph][start : start + _AT_ONCE]
                targets = applications.targets[places]
                new = _new_nodes(targets, known)
                waiting = np.flatnonzero(applications.states[places] == WAITING)
                new[waiting] = templates.sizes(applications.instances[places[waiting]])
                total = np.cumsum(new)
                if total[-1] > room:
                    fitting[subgraph] = start + int(np.searchsorted(total, room, side="right"))
                    break
                room -= int(total[-1])
                known[targets] = True
        return fitting


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
