"""The applications of rules in a universe: each once, whichever world asks first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from relational_tensat.explore.worlds.growing import Rows
from relational_tensat.explore.worlds.node_arrays import Ints, NodeArrays

#: What becomes of an application: it can be built; its targets are there, and equal to its sources; it
#: would close a cycle, or is one with another.
WAITING, BUILT, REJECTED = 0, 1, 2

#: How these are called in the tables.
STATES = ("waiting", "built", "rejected")

#: Places of an application's row: its rule, its instance and its state.
_RULE, _INSTANCE, _STATE = 0, 1, 2


class Applications:
    """A row for each application: its rule, what the rule matched, what it builds.

    An application is a rule on e-nodes of given signatures (an instance) and these e-nodes. Where two
    become one, since e-nodes or classes did, the first stays.

    Attributes:
        merged: how many have become one with another.
    """

    def __init__(self, source_columns: int, leaf_columns: int) -> None:
        """Begin with none.

        Args:
            source_columns: the most e-nodes that the sources of a rule match.
            leaf_columns: the most leaves that they have together.
        """
        self.merged = 0
        self._about = Rows(3)
        self._sources = Rows(source_columns)
        self._targets = Rows(1)
        self._bindings = Rows(leaf_columns)
        self._places: dict[bytes, int] = {}

    @property
    def count(self) -> int:
        """How many there are, rejected ones included."""
        return self._about.count

    @property
    def rules(self) -> Ints:
        """Their rules."""
        return self._about.values[:, _RULE]

    @property
    def instances(self) -> Ints:
        """What they match: rules on signatures."""
        return self._about.values[:, _INSTANCE]

    @property
    def states(self) -> Ints:
        """``WAITING``, ``BUILT`` or ``REJECTED``."""
        return self._about.values[:, _STATE]

    @property
    def sources(self) -> Ints:
        """The e-nodes of their sources in pre-order, one source after the other, then 0; a row each."""
        return self._sources.values

    @property
    def targets(self) -> Ints:
        """The e-nodes of their targets, operands first; 0 between, where one is not built."""
        return self._targets.values

    @property
    def bindings(self) -> Ints:
        """The canonical classes at the leaves of their sources, a row each."""
        return self._bindings.values

    def add(self, instances: Ints, rules: Ints, sources: Ints, bindings: Ints) -> Ints:
        """Add those that are not known; return their places.

        Args:
            instances, rules: what they are.
            sources: a row each, without 0 but at the end.
            bindings: a row each.
        """
        keys = _keys(instances, sources, self._sources.values.shape[1])
        new: list[int] = []
        count = self.count
        for row, key in enumerate(keys):
            if key not in self._places:
                self._places[key] = count + len(new)
                new.append(row)
        if not new:
            return np.zeros(0, np.int64).astype(np.int32)
        about = np.zeros((len(new), 3), np.int32)
        about[:, _RULE], about[:, _INSTANCE] = rules[new], instances[new]
        self._about.add(about)
        self._sources.add(sources[new])
        self._bindings.add(bindings[new])
        self._targets.add(np.zeros((len(new), 1), np.int32))
        return np.arange(count, self.count, dtype=np.int32)

    def set_built(self, places: Ints, targets: Ints) -> None:
        """Note that applications are built, and what their targets are."""
        missing = targets.shape[1] - self._targets.values.shape[1]
        if missing > 0:
            self._targets.add(np.zeros((0, targets.shape[1]), np.int32))
        self._targets.values[places, : targets.shape[1]] = targets
        self.states[places] = BUILT

    def reject(self, places: Ints) -> None:
        """Note that applications are not to be built."""
        self.states[places] = REJECTED

    def follow(self, arrays: NodeArrays) -> None:
        """Name e-nodes and classes as they are by now; those that have become one are one row."""
        became, parent = arrays.became, arrays.parent
        changed = arrays.with_gone(self.sources)
        if len(changed):
            self._forget(changed)
            self.sources[changed] = became[self.sources[changed]]
            self._remember(changed)
        changed = arrays.with_gone(self.targets)
        self.targets[changed] = became[self.targets[changed]]
        changed = arrays.with_moved(self.bindings)
        self.bindings[changed] = parent[self.bindings[changed]]

    def _forget(self, changed: NDArray[np.intp]) -> None:
        keys = _keys(self.instances[changed], self.sources[changed], self.sources.shape[1])
        for place, key in zip(changed.tolist(), keys, strict=True):
            if self._places.get(key) == place:
                del self._places[key]

    def _remember(self, changed: NDArray[np.intp]) -> None:
        keys = _keys(self.instances[changed], self.sources[changed], self.sources.shape[1])
        for place, key in zip(changed.tolist(), keys, strict=True):
            other = self._places.setdefault(key, place)
            if other != place and self.states[place] != REJECTED:
                if self.states[place] == BUILT and self.states[other] == WAITING:
                    self.targets[other] = self.targets[place]
                    self.states[other] = BUILT
                self.states[place] = REJECTED
                self.merged += 1


def _keys(instances: Ints, sources: Ints, columns: int) -> list[bytes]:
    rows = np.zeros((len(instances), 1 + columns), np.int32)
    rows[:, 0] = instances
    rows[:, 1 : 1 + sources.shape[1]] = sources
    data, width = rows.tobytes(), 4 * (1 + columns)
    return [data[i : i + width] for i in range(0, len(data), width)]
