"""What an application of a rule could gain, estimated from the cheapest graph so far.

A graph with the application has its targets' e-nodes in the place of its sources'. It costs about what
the cheapest graph costs, and what its sources are away from that (their slack), and what the targets cost,
less what the sources cost. Of a target's e-node that is there already, only the slack is added; what
others need, too, is not saved. The lower, the earlier: the order of A*, by an estimate that may be wrong
either way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.seed import Seed, Slack
from relational_tensat.explore.worlds.building import second_root
from relational_tensat.explore.worlds.node_arrays import Ints
from relational_tensat.explore.worlds.node_costs import NodeCosts
from relational_tensat.explore.worlds.universe import Universe

Floats = NDArray[np.float64]


class Ranking:
    """Estimates for one state of a universe."""

    def __init__(self, universe: Universe, costs: NodeCosts, seed: Seed, slack: Slack) -> None:
        """Prepare for a cheapest graph.

        Args:
            costs: of the e-nodes as they are now.
            slack: of all e-nodes, against that graph.
        """
        self._universe = universe
        self._costs = costs
        arrays = universe.arrays
        self._node_us: Floats = np.zeros(arrays.size)
        self._node_us[slack.enodes] = slack.node_us
        self._class_us: Floats = np.full(len(arrays.parent), np.inf)
        self._class_us[0] = 0.0
        self._class_us[arrays.owner[slack.enodes]] = slack.class_us
        chosen = np.array(seed.enodes, np.int32)
        self._users = np.bincount(arrays.children[chosen].ravel(), minlength=len(arrays.parent))

    def estimates_us(self, places: Ints) -> Floats:
        """Return by how much dearer than the cheapest graph one with an application may be; 0 and below:
        it may be cheaper.

        Args:
            places: of applications; their e-nodes and bindings are those of now.
        """
        added_us = self._added_us(places)
        universe = self._universe
        arrays, sources = universe.arrays, universe.applications.sources[places]
        is_root = self._roots(places)
        owner = arrays.owner[sources]
        is_saved = (sources > 0) & (is_root | (self._users[owner] <= 1))
        saved_us = np.where(is_saved, self._costs.cost_us[sources], 0.0).sum(axis=1)
        away_us = np.where(is_root, self._class_us[owner], 0.0).max(axis=1)
        return np.asarray(away_us + self._node_us[sources].sum(axis=1) + added_us - saved_us)

    def _roots(self, places: Ints) -> NDArray[np.bool_]:
        """Return which of the sources' e-nodes are the roots of sources."""
        applications = self._universe.applications
        is_root = np.zeros(applications.sources[places].shape, np.bool_)
        is_root[:, 0] = True
        second = self._second_roots(places)
        rows = np.flatnonzero(second)
        is_root[rows, second[rows]] = True
        return is_root

    def _second_roots(self, places: Ints) -> Ints:
        """Return where the roots of second sources stand among the e-nodes; 0 where there is none."""
        rules, row = np.unique(self._universe.applications.rules[places], return_inverse=True)
        second = [second_root(self._universe.world, int(rule)) for rule in rules]
        return np.array(second, np.int32)[row]

    def _added_us(self, places: Ints) -> Floats:
        """Return what the targets' e-nodes add; those that are there, their slack."""
        added_us: Floats = np.zeros(len(places))
        n_leaves = self._universe.world.rules.leaf_columns
        is_pair = self._second_roots(places) > 0
        for rows, n_sources in ((np.flatnonzero(~is_pair), 1), (np.flatnonzero(is_pair), 2)):
            if len(rows):
                added_us[rows] = self._targets_us(places[rows], n_sources * n_leaves)
        return added_us

    def _targets_us(self, places: Ints, bound: int) -> Floats:
        """Return what targets add.

        Args:
            places: of applications of rules of equally many sources.
            bound: how many bindings these have.
        """
        universe, arrays = self._universe, self._universe.arrays
        count, steps = len(places), universe.templates.steps
        classes = np.zeros((count, 1 + bound + steps), np.int32)
        classes[:, 1 : 1 + bound] = universe.applications.bindings[places][:, :bound]
        takes_weights = np.ones(classes.shape, np.bool_)  # no operand is as good as a weight
        takes_weights[:, 1 : 1 + bound] = self._costs.weight_only[classes[:, 1 : 1 + bound]]
        total_us: Floats = np.zeros(count)
        nodes = universe.templates.nodes(universe.applications.instances[places])
        for step, (rows, signatures, operands) in enumerate(nodes):
            children = np.take_along_axis(classes[rows], operands, axis=1)
            flags = np.take_along_axis(takes_weights[rows], operands, axis=1)
            of_weights = np.asarray(flags.all(axis=1))
            new_us, weight_only = self._costs.costs_of(signatures, of_weights)
            found = arrays.find(signatures, children)
            found[((operands > 0) & (children == 0)).any(axis=1)] = 0
            total_us[rows] += np.where(found > 0, self._node_us[found], new_us)
            classes[rows, 1 + bound + step] = arrays.owner[found]
            takes_weights[rows, 1 + bound + step] = weight_only
        return total_us
