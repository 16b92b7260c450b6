"""The applications of rules in a universe: each once, whichever subgraph asks first, and what it builds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.arrow_columns import fixed_list_column, list_column
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS
from relational_tensat.explore.subgraphs.node_arrays import Ints, NodeArrays

if TYPE_CHECKING:
    import pyarrow as pa

#: The states of an application: it can be built; its targets are there, and equal to its sources; it would
#: close a cycle, or is one with another.
WAITING, BUILT, REJECTED = 0, 1, 2

#: How these are called in the tables.
STATES = ("waiting", "built", "rejected")

#: Places of an application's row: its rule, its instance and its state.
_RULE, _INSTANCE, _STATE = 0, 1, 2


class ApplicationRows:
    """A table of whole numbers that grows; 0 fills up what is not given.

    Attributes:
        count: how many rows there are.
    """

    def __init__(self, columns: int) -> None:
        self.count = 0
        self._rows: Ints = np.zeros((256, columns), np.int32)

    @property
    def values(self) -> Ints:
        """The rows; changes to them stay."""
        return self._rows[: self.count]

    def add(self, rows: NDArray[np.int32]) -> None:
        """Add rows of as many columns or fewer; of more, all get so many."""
        count, columns = rows.shape
        capacity, width = self._rows.shape
        if self.count + count > capacity or columns > width:
            capacity = max(capacity, 2 * (self.count + count))
            wider = np.zeros((capacity, max(width, columns)), np.int32)
            wider[: self.count, :width] = self.values
            self._rows = wider
        self._rows[self.count : self.count + count, :columns] = rows
        self.count += count


class Templates:
    """Instances and the e-nodes that they build.

    Attributes:
        steps: the most e-nodes that an instance builds.
    """

    def __init__(self, database: Database, signature_columns: int) -> None:
        """Begin without instances; ``refresh`` reads them.

        Args:
            signature_columns: how many signatures an instance's row has.
        """
        self._database = database
        self._text = (
            "-- instances that were judged since\n"
            f"SELECT id, rule, {', '.join(f'g{i}' for i in range(signature_columns))}, root0, root1\n"
            "FROM instance WHERE id > $last ORDER BY id"
        )
        #: By instance id, the positions of the roots among the bindings (0: invalid).
        self._roots = ApplicationRows(2)
        self._roots.add(np.zeros((1, 2), np.int32))
        #: By step, then by instance id: signature and positions of the operands; 0 for none.
        self._steps: list[Ints] = []

    @property
    def steps(self) -> int:
        """The most e-nodes that an instance builds."""
        return len(self._steps)

    @property
    def last(self) -> int:
        """The id of the last instance that was read."""
        return self._roots.count - 1

    def refresh(self, upto: int) -> dict[tuple[int, ...], int]:
        """Read what was judged since, up to an instance; return their ids by rule and signatures."""
        last = self.last
        if upto == last:
            return {}
        rows = self._database.execute(self._text, {"last": last}, "instances")
        if rows:
            # Ids are missing: of explorations before this one, and of iterations that were undone.
            new = np.zeros((rows[-1][0] - last, 2), np.int32)
            new[[row[0] - last - 1 for row in rows]] = [row[-2:] for row in rows]
            self._roots.add(new)
            self._read_templates(last)
        return {tuple(key): instance for instance, *key, _, _ in rows}

    def roots(self, instances: Ints) -> Ints:
        """Return the positions of the roots among the bindings, two columns; 0 for none."""
        return np.asarray(self._roots.values[instances])

    def sizes(self, instances: Ints) -> Ints:
        """Return how many e-nodes instances build."""
        total = np.zeros(len(instances), np.int32)
        for step in self._steps:
            total += step[instances, 0] > 0
        return total

    def nodes(self, instances: Ints) -> Iterator[tuple[NDArray[np.intp], Ints, Ints]]:
        """Yield, by step, which of some instances build an e-node then, its signature, and its operands.

        The operands are positions among the bindings, from 1; 0 for none.
        """
        for templates in self._steps:
            rows = np.flatnonzero(templates[instances, 0])
            template = templates[instances[rows]]
            yield rows, template[:, 0], template[:, 1:]

    def look_up(self, arrays: NodeArrays, instances: Ints, bindings: Ints) -> tuple[Ints, Ints]:
        """Return the e-nodes of targets as far as they exist, and the classes of the target roots.

        Args:
            instances: of applications of rules of equally many sources.
            bindings: the canonical classes at the leaves of their sources, a row each.

        Returns:
            A row each: the e-nodes by step, 0 if absent, and two root classes, 0 if absent.
        """
        count, bound = bindings.shape
        values = np.zeros((count, 1 + bound + self.steps), np.int32)
        values[:, 1 : 1 + bound] = bindings
        targets = np.zeros((count, self.steps), np.int32)
        for step, (rows, signatures, positions) in enumerate(self.nodes(instances)):
            children = np.take_along_axis(values[rows], positions, axis=1)
            found = arrays.find(signatures, children)
            found[((positions > 0) & (children == 0)).any(1)] = 0
            targets[rows, step] = found
            values[rows, 1 + bound + step] = arrays.owner[found]
        return targets, np.take_along_axis(values, self.roots(instances), axis=1)

    def _read_templates(self, last: int) -> None:
        size = self._roots.count
        self._steps = [_taller(step, size) for step in self._steps]
        sources = ", ".join(f"s{i}" for i in range(CHILD_COLUMNS))
        text = (
            "-- what instances build that were judged since\n"
            f"SELECT step, instance, signature, {sources} FROM template WHERE instance > $last"
        )
        for step, instance, *template in self._database.execute(text, {"last": last}, "templates"):
            while len(self._steps) < step:
                self._steps.append(np.zeros((size, 1 + CHILD_COLUMNS), np.int32))
            self._steps[step - 1][instance] = template


class Applications:
    """A row for each application: its rule, its match, its targets.

    An application is a rule on e-nodes of given signatures (an instance) and these e-nodes. Where two
    become one, since e-nodes or classes did, the first stays.
    """

    def __init__(self, source_columns: int, leaf_columns: int) -> None:
        """Begin with none.

        Args:
            source_columns: the most e-nodes that the sources of a rule match.
            leaf_columns: the most leaves that they have together.
        """
        self._about = ApplicationRows(3)
        self._sources = ApplicationRows(source_columns)
        self._targets = ApplicationRows(1)
        self._bindings = ApplicationRows(leaf_columns)
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
        """The instances that they match: rules on signatures."""
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
            instances, rules: those of the rows.
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


def write_applications(database: Database, applications: Applications) -> None:
    """Write all applications that were found, in place of those that the table has."""
    database.execute("-- of the search so far\nDELETE FROM universe_application", name="subgraphs")
    if applications.count:
        columns = {
            "id": np.arange(1, applications.count + 1, dtype=np.int32),
            "rule": applications.rules,
            "instance": applications.instances,
            "state": np.array(STATES)[applications.states],
            "sources": _lists(applications.sources),
            "targets": _lists(applications.targets),
            "bindings": fixed_list_column(applications.bindings),
        }
        database.insert_arrays("universe_application", columns, "insert universe_application")


def _lists(rows: Ints) -> pa.Array:
    """Return rows of ids as lists, without what fills them up."""
    return list_column(np.cumsum((rows > 0).sum(axis=1), dtype=np.int32), rows[rows > 0])


def _keys(instances: Ints, sources: Ints, columns: int) -> list[bytes]:
    rows = np.zeros((len(instances), 1 + columns), np.int32)
    rows[:, 0] = instances
    rows[:, 1 : 1 + sources.shape[1]] = sources
    data, width = rows.tobytes(), 4 * (1 + columns)
    return [data[i : i + width] for i in range(0, len(data), width)]


def _taller(rows: Ints, size: int) -> Ints:
    taller = np.zeros((size, rows.shape[1]), np.int32)
    taller[: len(rows)] = rows
    return taller
