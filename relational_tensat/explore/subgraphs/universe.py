"""The universe of many subgraphs: one e-graph, and every application of a rule in it once.

Applications that several subgraphs ask for are found and built once, by the statements of a step.
Equalities are the universe's: one that is found for a subgraph holds in all of them. No e-node is filtered:
one that closes a cycle in one subgraph need not in another, and extraction chooses no cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.plan import Plan
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.apply.application import apply_all
from relational_tensat.explore.apply.targets import Candidates
from relational_tensat.explore.members import original_nodes
from relational_tensat.explore.subgraph import Subgraph
from relational_tensat.explore.subgraphs.applications import WAITING, Applications, Templates
from relational_tensat.explore.subgraphs.node_arrays import (
    Flags,
    Ints,
    Masks,
    NodeArrays,
    SourceFinder,
)
from relational_tensat.explore.subgraphs.pairs import Pairs, PairSources, SeenVersions

#: Most pairs of matches of multi-pattern rules that are recorded.
MOST_PAIRS = 400_000

#: So many applications are built by one statement at the most; see ``application``.
MOST_AT_ONCE = 20_000


class Universe:
    """An e-graph, its e-nodes as arrays, and the applications that were found in it.

    Attributes:
        subgraph: the e-graph with the rules.
        arrays: the e-nodes, as they are by now.
        applications: those that were found.
        templates: the targets of instances.
        is_full: whether its limit of e-nodes left something out.
        version: raised whenever e-nodes or classes change.
        unions, rejected: how many unions were asked for, and how many applications would have closed a
            cycle.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        """Begin with what is in the tables, without applications; ``find`` adds them."""
        egraph, compiled = subgraph.egraph, subgraph.rules
        egraph.is_universe = True
        self.subgraph = subgraph
        self.is_full = False
        self.version = 0
        self.unions = self.rejected = 0
        self.arrays = NodeArrays(egraph.database)
        self.templates = Templates(egraph.database, 2 * compiled.node_columns)
        self.applications = Applications(2 * compiled.node_columns, 2 * compiled.leaf_columns)
        self._finders = [SourceFinder(pattern) for pattern in compiled.patterns]
        self._pairs = Pairs(compiled)
        self._single_rules: dict[int, list[int]] = {}
        #: By rule, the place of its second source's root among the e-nodes; 0 for rules of one source.
        self._second_root = np.zeros(compiled.first + len(compiled.rules), np.int32)
        for rule in compiled.rules:
            if rule.rule.is_multi:
                self._second_root[rule.id] = self._finders[rule.patterns[0] - 1].nodes
            else:
                self._single_rules.setdefault(rule.patterns[0], []).append(rule.id)
        self._instance_of = self.templates.refresh(subgraph.matcher.instances.last)

    @property
    def egraph(self) -> EGraph:
        """The tables."""
        return self.subgraph.egraph

    @property
    def match_versions(self) -> dict[int, int]:
        """How often matches of the sources of multi-pattern rules have changed; see ``SeenVersions``."""
        return self._pairs.versions

    def original(self) -> Ints:
        """Return the e-nodes of the original graph, operands first."""
        return np.array(original_nodes(self.egraph.database), np.int32)

    def roots(self, places: Ints) -> Ints:
        """Return the classes of the roots of applications' sources, two columns; 0 for no second one."""
        second = self._second_root[self.applications.rules[places]]
        sources = self.applications.sources[places]
        roots: Ints = self.arrays.owner[
            np.stack([sources[:, 0], sources[np.arange(len(places)), second]], axis=1)
        ]
        roots[second == 0, 1] = 0
        return roots

    def bindings(self, place: int | np.intp) -> int:
        """Return how many classes an application binds."""
        is_multi = self._second_root[self.applications.rules[place]] > 0
        return (1 + int(is_multi)) * self.subgraph.rules.leaf_columns

    def find(self) -> None:
        """Match all rules on what is new; applications of multi-pattern rules: see ``pair``."""
        rules = self.subgraph.rules.all_rules
        matches = self.subgraph.matcher.new_matches(self.subgraph.since(rules))
        self.subgraph.note_matched(rules)
        if matches is None:
            return
        for pattern in np.unique(matches.patterns).tolist():
            rows = np.flatnonzero(matches.patterns == pattern)
            finder = self._finders[pattern - 1]
            signatures = matches.signatures[rows, : finder.nodes]
            leaves = matches.leaves[rows, : finder.leaves]
            sources = finder.find(self.arrays, signatures, leaves)
            there = np.flatnonzero(sources[:, 0])
            found = PairSources(
                tuple(self._single_rules.get(pattern, ())),
                signatures[there], sources[there], leaves[there], matches.roots[rows[there]],
            )  # fmt: skip
            if pattern in self.subgraph.rules.multi_patterns:
                self._pairs.add(pattern, found)
            if found.rules:
                self._add(found)

    def pair(self, masks: Masks, looked: SeenVersions) -> None:
        """Find the applications of multi-pattern rules that some subgraphs have all sources of.

        Args:
            looked: as ``Pairs.find``.
        """
        for found in self._pairs.find(masks, looked, self.arrays):
            if self.applications.count > MOST_PAIRS:
                self.is_full = True
                return
            self._add(found)
            self.is_full |= not found.is_complete

    def build(self, places: Ints, iteration: int) -> Plan[None]:
        """Build the applications that are not, then match all rules.

        Args:
            places: of applications.
        """
        version = self.version
        is_multi = self._second_root[self.applications.rules[places]] > 0
        for group in (places[is_multi], places[~is_multi]):
            for start in range(0, len(group), MOST_AT_ONCE):
                yield partial(self._build, group[start : start + MOST_AT_ONCE], iteration)
        if self.version != version:
            yield self.find

    def _add(self, found: PairSources) -> None:
        """Add the applications that matches are, of rules that apply to them."""
        kinds, kind = _kinds(found.signatures)
        instances = self._instances(found.rules, kinds)[:, kind].ravel()
        rules = np.repeat(np.array(found.rules, np.int32), len(kind))
        rows = np.tile(np.arange(len(kind)), len(found.rules))
        leaves = found.leaves[rows]
        is_valid = self.templates.roots(instances)[:, 0] > 0
        is_valid &= ~self.subgraph.matcher.excluded_mask(rules, list(leaves.T))
        valid = np.flatnonzero(is_valid)
        if found.roots is not None:  # of a rule, the youngest classes come first
            youngest = -found.roots[rows[valid]]
            keys_of = (*leaves[valid].T[::-1], instances[valid], youngest, rules[valid])
            valid = valid[np.lexsort(keys_of)]
        sources = found.sources[rows[valid]]
        self._without_built(
            self.applications.add(instances[valid], rules[valid], sources, leaves[valid])
        )

    def _build(self, places: Ints, iteration: int) -> None:
        """Build applications of rules of equally many sources, as far as the universe's limit allows."""
        subgraph, applications = self.subgraph, self.applications
        places = self._without_built(places)
        if len(places) and self._second_root[applications.rules[places[0]]]:
            is_cyclic = self._closes_cycle(places)
            self.rejected += int(is_cyclic.sum())
            applications.reject(places[is_cyclic])
            places = places[~is_cyclic]
        if not len(places):
            return
        self._write(places)
        rules, counts = np.unique(applications.rules[places], return_counts=True)
        matches = dict(zip(rules.tolist(), counts.tolist(), strict=True))
        bounds = subgraph.matcher.instances.bounds(matches, subgraph.options.universe_limit)
        report = apply_all(subgraph, [Candidates(len(places), bounds)], iteration)
        self.unions += report.unions
        self.is_full |= not report.complete
        self.arrays.refresh()
        applications.follow(self.arrays)
        self._pairs.follow(self.arrays)
        self.version += 1
        self._without_built(places)

    def _write(self, places: Ints) -> None:
        """Make the table ``application`` of some, in order."""
        roots, bound = self.roots(places), self.bindings(places[0])
        columns = {
            "id": np.arange(1, len(places) + 1, dtype=np.int32),
            "rule": self.applications.rules[places],
            "instance": self.applications.instances[places],
            "root0": roots[:, 0],
            "root1": roots[:, 1],
        }
        bindings = {f"b{i}": self.applications.bindings[places, i] for i in range(bound)}
        text = (
            "-- applications that subgraphs ask for\n"
            "CREATE OR REPLACE TEMP TABLE application AS\n"
            f"SELECT {', '.join(columns)}, [{', '.join(bindings)}] AS b FROM relational_tensat_arrays"
        )
        arrays = {name: np.ascontiguousarray(a) for name, a in (columns | bindings).items()}
        self.egraph.database.execute(text, None, "application", arrays)

    def _without_built(self, places: Ints) -> Ints:
        """Note which applications are built, perhaps by others; return the rest that wait.

        They are built where all e-nodes of their targets exist and the roots are equal to the sources'.

        Args:
            places: of applications of rules of equally many sources.
        """
        applications = self.applications
        places = places[applications.states[places] == WAITING]
        if not len(places):
            return places
        instances = applications.instances[places]
        bindings = applications.bindings[places][:, : self.bindings(places[0])]
        targets, target_roots = self.templates.look_up(self.arrays, instances, bindings)
        is_built = (targets > 0).sum(axis=1) == self.templates.sizes(instances)
        is_built &= (self.roots(places) == target_roots).all(1)
        applications.set_built(places[is_built], targets[is_built])
        return np.asarray(places[~is_built])

    def _closes_cycle(self, places: Ints) -> Flags:
        """Return which of some applications of two sources would close a cycle.

        The root of one source is, or is below, a variable of the other. "Below" is by the oldest e-node of
        each class: these form no cycle, and depend on nothing that a rule found since, which may itself be
        cyclic.
        """
        if self.subgraph.options.cycle_filter == "none":
            return np.zeros(len(places), np.bool_)
        ids = np.flatnonzero(self.arrays.exists)[::-1]
        oldest = np.zeros(self.arrays.size, np.int32)
        oldest[self.arrays.owner[ids]] = ids
        roots, bindings = self.roots(places), self.applications.bindings[places]
        bits = {int(root): 1 << i for i, root in enumerate(np.unique(roots))}
        below: dict[int, int] = {0: 0}
        for leaf in np.unique(bindings).tolist():
            _note_below(leaf, oldest, self.arrays.children, bits, below)
        columns = self.subgraph.rules.leaf_columns
        is_cyclic = [
            any(below[leaf] & bits[root1] for leaf in leaves[:columns])
            or any(below[leaf] & bits[root0] for leaf in leaves[columns:])
            for (root0, root1), leaves in zip(roots.tolist(), bindings.tolist(), strict=True)
        ]
        return np.array(is_cyclic, np.bool_)

    def _instances(self, rules: Sequence[int], kinds: Ints) -> Ints:
        """Return the instances that rules on e-nodes of some signatures are, a row for each rule."""
        filling = [0] * (2 * self.subgraph.rules.node_columns - kinds.shape[1])
        keys = [(rule, *kind, *filling) for rule in rules for kind in kinds.tolist()]
        new = sorted(set(keys) - self._instance_of.keys())
        if new:
            judged = self.subgraph.matcher.instances
            judged.judge(new)
            self._instance_of |= self.templates.refresh(judged.last)
        instances: Ints = np.array([self._instance_of[key] for key in keys], np.int32)
        return instances.reshape(len(rules), len(kinds))


def _kinds(signatures: Ints) -> tuple[Ints, NDArray[np.int64]]:
    """Return the different rows, and the number of the one that each row is."""
    number: NDArray[np.int64] = np.zeros(len(signatures), np.int64)
    size = 1
    for column in signatures.T:
        several = 1 + int(column.max(initial=0))
        if size * several > 2**62:  # then without gaps
            _, number = np.unique(number, return_inverse=True)
            size = len(number)
        number, size = number * several + column, size * several
    _, first, number = np.unique(number, return_index=True, return_inverse=True)
    return signatures[first], number


def _note_below(
    start: int, oldest: Ints, children: Ints, bits: dict[int, int], below: dict[int, int]
) -> None:
    """Note which of some classes (by bit) are a class or below it, and so of all classes below it."""
    stack = [start]
    while stack:
        owner = stack[-1]
        if owner in below:
            stack.pop()
            continue
        under = children[oldest[owner]].tolist()
        waiting = [child for child in under if child not in below]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        total = bits.get(owner, 0)
        for child in under:
            total |= below[child]
        below[owner] = total
