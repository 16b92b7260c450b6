"""The universe of many worlds: one e-graph, and every application of a rule in it once.

What several worlds ask for is found and built once. Equalities are the universe's: one that is found for a
world holds in all of them. No e-node is filtered: what closes a cycle in one world need not in another, and
extraction chooses no cycle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.compile.compiled import phase_rules
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.match.found import Found, numbered, read_found
from relational_tensat.explore.world import World, begin_world
from relational_tensat.explore.worlds.applications import BUILT, WAITING, Applications
from relational_tensat.explore.worlds.building import (
    MOST_AT_ONCE,
    build,
    cyclic,
    look_up_targets,
)
from relational_tensat.explore.worlds.masks import Masks
from relational_tensat.explore.worlds.node_arrays import Ints, NodeArrays
from relational_tensat.explore.worlds.pairs import FoundPairs, Looked, Pairs
from relational_tensat.explore.worlds.sources import SourceFinder
from relational_tensat.explore.worlds.templates import Templates
from relational_tensat.rules.model import Rule

#: Most pairs of matches of multi-pattern rules that are recorded.
MOST_PAIRS = 400_000


class Universe:
    """An e-graph, its e-nodes as arrays, and the applications that were found in it.

    Attributes:
        world: the e-graph with the rules.
        arrays: the e-nodes, as they are by now.
        applications: those that were found.
        templates: what instances build.
        limit: the most e-nodes that it may have.
        is_full: whether that limit left something out.
        version: raised whenever e-nodes or classes change.
        unions, rejected: how many unions were asked for, and how many applications would have closed a
            cycle.
    """

    def __init__(self, world: World) -> None:
        """Begin with what is in the tables, without applications; see ``begin_universe``."""
        egraph = world.egraph
        egraph.is_universe = True
        self.world = world
        self.limit = world.options.universe_limit
        self.is_full = False
        self.version = 0
        self.unions = self.rejected = 0
        compiled = self.world.rules
        self.arrays = NodeArrays(egraph.database)
        self.templates = Templates(egraph.database, 2 * compiled.node_columns)
        self.applications = Applications(2 * compiled.node_columns, 2 * compiled.leaf_columns)
        self._finders = [SourceFinder(pattern) for pattern in compiled.patterns]
        self._pairs = Pairs(compiled)
        self._is_multi = np.zeros(compiled.first + len(compiled.rules), np.bool_)
        self._is_multi[sorted(compiled.multi_rules)] = True
        self._instance_of: dict[tuple[int, ...], int] = {}
        self._see_instances()

    @property
    def egraph(self) -> EGraph:
        """The tables."""
        return self.world.egraph

    @property
    def match_versions(self) -> dict[int, int]:
        """How often the matches of the sources of multi-pattern rules have changed; see ``Looked``."""
        return self._pairs.versions

    def original(self) -> Ints:
        """Return the e-nodes of the original graph, operands first."""
        rows = self.egraph.database.run("worlds/original")
        return np.array([enode for (enode,) in rows], np.int32)

    def find(self) -> None:
        """Match all rules on what is new; applications of multi-pattern rules: see ``pair``."""
        self._find_halves()
        self._find_singles()

    def pair(self, masks: Masks, looked: Looked) -> None:
        """Find the applications of multi-pattern rules that some worlds have all sources of.

        Args:
            looked: as ``Pairs.find``.
        """
        for found in self._pairs.find(masks, looked):
            if self.applications.count > MOST_PAIRS:
                self.is_full = True
                return
            self._add_pairs(found)
            self.is_full |= not found.is_complete

    def build(self, places: Ints, iteration: int) -> Ints:
        """Build the applications that are not, then match all rules; return those that are built now.

        Args:
            places: of applications.
        """
        version = self.version
        is_multi = self._is_multi[self.applications.rules[places]]
        for group in (places[is_multi], places[~is_multi]):
            for start in range(0, len(group), MOST_AT_ONCE):
                self._build(group[start : start + MOST_AT_ONCE], iteration)
        if self.version != version:
            self.find()
        return np.asarray(places[self.applications.states[places] == BUILT])

    def _build(self, places: Ints, iteration: int) -> None:
        """Build applications of rules of equally many sources."""
        places = self._without_built(places)
        rejects = self.world.options.cycle_filter != "none"
        if rejects and len(places) and self._is_multi[self.applications.rules[places[0]]]:
            rejected = np.array(
                cyclic(self.world, self.applications, places, self.arrays), np.int32
            )
            self.rejected += len(rejected)
            self.applications.reject(rejected)
            places = places[self.applications.states[places] == WAITING]
        if not len(places):
            return
        report = build(self.world, self.applications, places, self.arrays, iteration, self.limit)
        self.unions += report.unions
        self.is_full |= not report.complete
        self._follow()
        self._without_built(places)

    def _without_built(self, places: Ints) -> Ints:
        """Note which applications are built, perhaps by others; return the rest that wait."""
        places = places[self.applications.states[places] == WAITING]
        if not len(places):
            return places
        targets, is_built = look_up_targets(
            self.world, self.applications, self.templates, places, self.arrays
        )
        self.applications.set_built(places[is_built], targets[is_built])
        return places[~is_built]

    def _follow(self) -> None:
        """Take over what building changed."""
        self.arrays.refresh()
        self.applications.follow(self.arrays)
        self._pairs.follow(self.arrays)
        self.version += 1

    def _find_halves(self) -> None:
        """Find the matches of the sources of multi-pattern rules that are new."""
        rules = self.world.rules.multi_rules
        if not rules:
            return
        matches = self.world.matcher.source_matches(self.world.since(rules), rules)
        self._note_matched(rules)
        if matches is None or not len(matches.patterns):
            return
        nodes, leaves = (np.stack(c, axis=1) for c in (matches.signatures, matches.leaves))
        for pattern in np.unique(matches.patterns).tolist():
            rows = np.flatnonzero(matches.patterns == pattern)
            finder = self._finders[pattern - 1]
            signatures = nodes[rows][:, : finder.nodes]
            bound = leaves[rows][:, : max(finder.leaves, 1)]
            sources = finder.find(self.arrays, signatures, bound)
            there = np.flatnonzero(sources[:, 0])
            self._pairs.add(pattern, signatures[there], sources[there], bound[there], self.arrays)

    def _find_singles(self) -> None:
        """Find the applications of single-pattern rules."""
        world, compiled = self.world, self.world.rules
        rules = compiled.single_rules
        found = self._found_singles(world.since(rules))
        self._note_matched(rules)
        self._see_instances()
        if found is None or not found.count:
            return
        of_rules, of_row = np.unique(found.rules, return_inverse=True)
        patterns = np.array([compiled.rule(rule).patterns[0] for rule in of_rules.tolist()])[of_row]
        bindings = np.stack(found.bindings, axis=1)
        for pattern in np.unique(patterns).tolist():
            rows = np.flatnonzero(patterns == pattern)
            finder = self._finders[pattern - 1]
            signatures = self.templates.signatures(found.instances[rows])[:, : finder.nodes]
            sources = finder.find(self.arrays, signatures, bindings[rows])
            there = rows[sources[:, 0] > 0]
            added = self.applications.add(
                found.instances[there],
                found.rules[there],
                sources[sources[:, 0] > 0],
                bindings[there],
            )
            self._without_built(added)

    def _found_singles(self, since: int) -> Found | None:
        """Return the matches of single-pattern rules that are new since then; None for none."""
        matcher, rules = self.world.matcher, self.world.rules.single_rules
        if not matcher.single(since, rules):
            return None
        names = phase_rules(self.world.rules, multi=False)
        return read_found(self.egraph.database, self.world.rules.leaf_columns, names)

    def _add_pairs(self, found: FoundPairs) -> None:
        """Add the applications that pairs of matches are, where rules apply to them."""
        kind, first = numbered(list(found.signatures.T))
        of_kinds = self._instances(found.rules, found.signatures[first])
        instances = np.concatenate([of_kinds[rule][kind] for rule in found.rules])
        of_rule = np.repeat(np.array(found.rules, np.int32), len(kind))
        leaves = np.tile(found.leaves, (len(found.rules), 1))
        is_valid = self.templates.roots(instances)[:, 0] > 0
        is_valid &= ~self.world.matcher.left_out(of_rule, list(leaves.T))
        for rule in found.rules:
            rows = np.flatnonzero(is_valid & (of_rule == rule))
            added = self.applications.add(
                instances[rows],
                of_rule[rows],
                found.sources[rows % len(kind)],
                leaves[rows],
            )
            self._without_built(added)

    def _instances(self, rules: Sequence[int], kinds: Ints) -> dict[int, Ints]:
        """Return, by rule, the instances that multi-pattern rules on e-nodes of some signatures are."""
        filling = [0] * (2 * self.world.rules.node_columns - kinds.shape[1])
        keys = {rule: [(rule, *kind, *filling) for kind in kinds.tolist()] for rule in rules}
        new = [key for rule in rules for key in sorted(set(keys[rule]) - self._instance_of.keys())]
        if new:
            self.world.matcher.instances.judge(new)
            self._see_instances()
        return {
            rule: np.array([self._instance_of[key] for key in keys[rule]], np.int32)
            for rule in rules
        }

    def _see_instances(self) -> None:
        """Take note of what was judged since."""
        if self.world.matcher.instances.last == self.templates.last:
            return
        for instance, *key, _, _ in self.templates.refresh():
            self._instance_of[tuple(key)] = instance

    def _note_matched(self, rules: frozenset[int]) -> None:
        self.egraph.clock += 1
        self.world.note_matched(rules, self.egraph.clock)


def begin_universe(egraph: EGraph, rules: Sequence[Rule], options: ExplorationOptions) -> Universe:
    """Return the universe of an e-graph, all of which is shown."""
    universe = Universe(begin_world(egraph, rules, options))
    universe.find()
    return universe
