"""Terms of blocks, by size: joins propose, residues decide what is equal.

A row of ``term`` is a tensor of a block in one configuration, not a prefix of a graph: a tensor that many
prefixes have in common is one row. Terms that have the same value are one e-class, and all their
derivations are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from relational_tensat.egraph.database import Database
from relational_tensat.mugraph.graph.arithmetic import Labelled
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.evaluation import run_step, tile_of
from relational_tensat.mugraph.graph.residues import Residues
from relational_tensat.mugraph.search.block_terms import (
    GrownTerms,
    Job,
    Operand,
    Output,
    SearchCounts,
    TermDerivation,
    fingerprint,
    iterator_of,
    step_of,
)
from relational_tensat.mugraph.search.structure import BlockConfiguration, Structure
from relational_tensat.tensor.field import Undefined

_TABLES = (
    "config", "extent", "summable", "term", "derivation", "candidate", "evaluated", "kernel_tensor",
    "implementation", "reached",
)  # fmt: skip


class BlockSearch:
    """The terms of all configurations of some jobs.

    Attributes:
        configurations: by number, each with its job.
        counts: how many there are of what.
    """

    def __init__(
        self,
        database: Database,
        structure: Structure,
        arithmetic: Residues,
        disable: Collection[str] = (),
    ) -> None:
        """Begin with no terms.

        Args:
            database: of the abstract e-graph.
            structure: variables, and what may be summed over them.
            arithmetic: the arithmetic of values.
            disable: see ``SearchOptions``.
        """
        self.configurations: list[tuple[Job, BlockConfiguration]] = []
        self.counts = SearchCounts()
        self._database = database
        self._names = {variable.bit: variable.name for variable in structure.variables}
        self._known = {variable.name: variable for variable in structure.variables}
        self._arithmetic = arithmetic
        self._values: dict[int, Labelled] = {}
        self._loaded: dict[int, Operand] = {}
        self._next = 1
        self._derivations: dict[int, dict[int, list[TermDerivation]]] | None = None
        self._term_rows: dict[int, tuple[int, ...]] | None = None
        self._disable = frozenset(disable)
        for table in _TABLES:
            database.execute(f"DROP TABLE IF EXISTS {table}", name="mugraph/tables")
        database.script("mugraph/tables")
        rules = structure.summable
        if "variables" in self._disable:  # no carriers: whatever takes part
            rules = tuple(dataclasses.replace(rule, carriers=0, inputs=0) for rule in rules)
        database.append("summable", [dataclasses.astuple(rule) for rule in rules])

    def add(self, job: Job, *, with_tiles: bool = True) -> None:
        """Add a job's configurations.

        Args:
            with_tiles: with the tiles that they load as terms; without, ``absorb`` has them.
        """
        numbers = range(
            len(self.configurations), len(self.configurations) + len(job.configurations)
        )
        self.configurations += [(job, configuration) for configuration in job.configurations]
        self.counts.configurations += len(job.configurations)
        rows = [(n, c) for n, c in zip(numbers, job.configurations, strict=True)]
        self._database.append(
            "config",
            [
                (n, 0, sum(v.bit for v in c.grid), c.loop.bit if c.loop else 0, c.iterations)
                for n, c in rows
            ],
        )
        present = dict.fromkeys(v for operand in job.operands for v in variables(operand.dims))
        self._database.append(
            "extent",
            [
                (n, self._known[name].bit, self._known[name].tile(c.splits(self._known[name])))
                for n, c in rows
                for name in present
                if self._known[name].is_summed
            ],
        )
        if with_tiles:
            tiles = [row for n, c in rows for row in self._tiles(job, n, c)]
            self._database.append("term", tiles)

    def grow(self, size: int, most: int) -> None:
        """Evaluate the candidates of one size, and join what is new with all there is, or do nothing.

        Args:
            size: 0 to begin with, then 1, 2, ….
            most: operators in a block.

        Raises:
            Interrupted: someone interrupted the database; nothing is done.
        """
        database, first, counts = self._database, self._next, dataclasses.replace(self.counts)
        self._derivations = self._term_rows = None
        is_done = False
        database.begin()
        try:
            if size > 0:
                self._evaluate_all(size)
            canonical = "canonical" not in self._disable
            database.run("mugraph/extend", size=size, most=most, canonical=canonical)
            database.commit()
            is_done = True
        finally:
            if not is_done:
                database.rollback()
                self._next, self.counts = first, counts

    def _evaluate_all(self, size: int) -> None:
        """Evaluate the candidates of a size; those with new values become terms."""
        database, first = self._database, self._next
        candidates = database.run("mugraph/candidates", size=size)
        self.counts.candidates += len(candidates)
        evaluated = [done for n, row in enumerate(candidates) if (done := self._evaluate(n, row))]
        database.execute("DELETE FROM evaluated", name="mugraph/evaluated")
        database.append("evaluated", [row for row, _ in evaluated])
        if "merging" in self._disable:
            database.run("mugraph/own_values")
            database.run("mugraph/new_terms_unmerged", first=first)
        else:
            database.run("mugraph/new_terms", first=first)
        database.run("mugraph/new_derivations")
        values = {int(row[0]): value for row, value in evaluated}
        for term, candidate in database.run("mugraph/new_values", first=first):
            self._values[int(term)] = values[int(candidate)]
            self._next += 1
        self.counts.terms += self._next - first

    def grown(self) -> GrownTerms:
        """Return all terms, for another search to absorb."""
        database = self._database
        return GrownTerms(
            database.run("mugraph/all_terms"),
            database.run("mugraph/all_derivations"),
            self._values,
            self._loaded,
            self.counts,
        )

    def absorb(self, grown: GrownTerms, numbers: Sequence[int]) -> None:
        """Add the terms that another search has grown.

        Args:
            grown: its terms.
            numbers: for each of its configurations, the number of the same one here.
        """
        offset = self._next - 1
        self._database.append(
            "term",
            [
                (term + offset, numbers[config], *others, [part + offset for part in parts])
                for term, config, *others, parts in grown.terms
            ],
        )
        self._database.append(
            "derivation",
            [
                (term + offset, *others, a + offset, b + offset if b else 0)
                for term, *others, a, b in grown.derivations
            ],
        )
        self._values.update((term + offset, value) for term, value in grown.values.items())
        self._loaded.update((term + offset, operand) for term, operand in grown.loaded.items())
        self._next += len(grown.terms)
        self._derivations = self._term_rows = None
        for name in ("candidates", "terms", "undefined"):
            more = getattr(grown.counts, name)
            setattr(self.counts, name, getattr(self.counts, name) + more)

    def value(self, term: int) -> Labelled:
        """Return the value of a term, for all blocks."""
        return self._values[term]

    def outputs(self) -> list[Output]:
        """Return the terms that a kernel may store."""
        return [Output(*map(int, row)) for row in self._database.run("mugraph/outputs")]

    def derivations(self, config: int) -> Mapping[int, list[TermDerivation]]:
        """Return all derivations of the terms of a configuration; tiles have none."""
        if self._derivations is None:
            self._derivations = self._all_derivations()
        return self._derivations.get(config, {})

    def term_row(self, term: int) -> tuple[int, ...]:
        """Return a term's operators, stage (0 in the loop, 1 after, 2 before), class and fingerprint."""
        if self._term_rows is None:
            rows = self._database.run("mugraph/term_rows")
            self._term_rows = {int(row[0]): tuple(map(int, row[1:])) for row in rows}
        return self._term_rows[term]

    def keep_derivations(self) -> None:
        """Read terms and derivations, as the tables are the next search's."""
        self.derivations(0)
        if self._loaded:
            self.term_row(next(iter(self._loaded)))

    def _all_derivations(self) -> dict[int, dict[int, list[TermDerivation]]]:
        """Return all derivations, by configuration and term: one statement is faster than hundreds."""
        result: dict[int, dict[int, list[TermDerivation]]] = {}
        for config, term, op, name, bit, a, b in self._database.run("mugraph/derivations"):
            made = TermDerivation(str(op), str(name), self._names.get(int(bit), ""), int(a), int(b))
            result.setdefault(int(config), {}).setdefault(int(term), []).append(made)
        return result

    def loaded(self, term: int) -> Operand | None:
        """Return the tensor that a term is a tile of; None for what is computed."""
        return self._loaded.get(term)

    def note_tensors(self, tensors: Sequence[tuple[int, Mapping[int, int]]]) -> None:
        """Note which tensors in device memory can be made: class, and configurations with terms."""
        self._database.append("kernel_tensor", [(n, klass) for n, (klass, _) in enumerate(tensors)])
        ways = [
            (n, config, term)
            for n, (_, terms) in enumerate(tensors)
            for config, term in terms.items()
        ]
        self._database.append("implementation", ways)

    def tensor_pairs(self) -> list[tuple[int, int]]:
        """Return which of the noted tensors one configuration can make together."""
        return [(int(one), int(other)) for one, other in self._database.run("mugraph/pairs")]

    def _tiles(
        self, job: Job, number: int, configuration: BlockConfiguration
    ) -> list[tuple[Any, ...]]:
        """Return the rows of the tiles that a configuration loads."""
        grid = [variable.factor for variable in configuration.grid]
        rows: list[tuple[Any, ...]] = []
        for place, operand in enumerate(job.operands):
            mine = [self._known[name] for name in variables(operand.dims)]
            iterator = iterator_of(operand.name, operand.name, operand.dims, configuration)
            value = tile_of(iterator, operand.value, grid, configuration.iterations)
            term, self._next = self._next, self._next + 1
            self._values[term] = value
            self._loaded[term] = operand
            dims = sum(variable.bit for variable in mine)
            axes = sum(variable.bit for variable in mine if variable in configuration.grid)
            stage = 0 if configuration.loop in mine else 2
            rows.append(
                (term, number, 0, dims, axes, operand.uses, 1 << place, stage, operand.abstract_class,
                 fingerprint(value), [])
            )  # fmt: skip
        return rows

    def _evaluate(self, number: int, row: Sequence[Any]) -> tuple[tuple[Any, ...], Labelled] | None:
        """Return a candidate's row with its value; None where it has none."""
        self._database.check_interrupt()
        config, op, name, bit, a, b = row[:6]
        _, configuration = self.configurations[int(config)]
        derivation = TermDerivation(
            str(op), str(name), self._names.get(int(bit), ""), int(a), int(b)
        )
        step = step_of(derivation, {int(a): "a", int(b): "b"}, "result")
        tiles = {"a": self._values[int(a)]}
        if b:
            tiles["b"] = self._values[int(b)]
        try:
            made = run_step(step, tiles, configuration.iterations, self._arithmetic)
        except Undefined:
            self.counts.undefined += 1
            return None
        value = made["result"]
        return (number, *row, fingerprint(value)), value
