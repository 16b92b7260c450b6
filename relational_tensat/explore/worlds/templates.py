"""What an application builds: the templates of judged instances as arrays, by the instances' ids."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from relational_tensat.egraph.database import Database
from relational_tensat.egraph.loading import CHILD_COLUMNS
from relational_tensat.explore.worlds.growing import Rows
from relational_tensat.explore.worlds.node_arrays import Ints, NodeArrays


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
        self._columns = signature_columns
        self._text = (
            "-- instances that were judged since\n"
            f"SELECT id, rule, {', '.join(f'g{i}' for i in range(signature_columns))}, root0, root1\n"
            "FROM instance WHERE id > $last ORDER BY id"
        )
        #: By instance id: rule, signatures, positions of the roots among the bindings (0: invalid).
        self._instances = Rows(signature_columns + 3)
        self._instances.add(np.zeros((1, signature_columns + 3), np.int32))
        #: By step, then by instance id: signature and positions of the operands; 0 for none.
        self._steps: list[Ints] = []

    @property
    def steps(self) -> int:
        """The most e-nodes that an instance builds."""
        return len(self._steps)

    @property
    def last(self) -> int:
        """The id of the last instance that was read."""
        return self._instances.count - 1

    def refresh(self) -> list[tuple[int, ...]]:
        """Read what was judged since; return those instances: id, rule, signatures, roots."""
        last = self.last
        rows = self._database.execute(self._text, {"last": last}, "instances")
        if rows:
            # Ids are missing: of explorations before this one, and of iterations that were undone.
            new = np.zeros((rows[-1][0] - last, self._columns + 3), np.int32)
            new[[row[0] - last - 1 for row in rows]] = [row[1:] for row in rows]
            self._instances.add(new)
            self._read_templates(last)
        return rows

    def signatures(self, instances: Ints) -> Ints:
        """Return the signatures that instances match, a row each."""
        return self._instances.values[instances, 1 : 1 + self._columns]

    def roots(self, instances: Ints) -> Ints:
        """Return the positions of the roots among the bindings, two columns; 0 for none."""
        return self._instances.values[instances, -2:]

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
            A row each: the e-nodes by step, 0 where there is none or it does not exist, and two root
            classes, 0 where there is none.
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
        size = self._instances.count
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


def _taller(rows: Ints, size: int) -> Ints:
    taller = np.zeros((size, rows.shape[1]), np.int32)
    taller[: len(rows)] = rows
    return taller
