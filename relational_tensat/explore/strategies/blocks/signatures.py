"""Signatures, and what was judged of them, from the windows' e-graph to that of the whole graph."""

from __future__ import annotations

from collections.abc import Iterable

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.compile.compiled import CompiledRules
from relational_tensat.explore.match.instances import Instances
from relational_tensat.explore.strategies.blocks.representative import Representative


class Signatures:
    """Signatures of a representative's e-graph by the ids that they have in the whole one's."""

    def __init__(self, representative: Representative, egraph: EGraph) -> None:
        self._source = representative.egraph.catalogue
        self._target = egraph.catalogue
        self._ids: dict[int, int] = {0: 0}

    def id_of(self, signature: int) -> int:
        """Return the id of a signature there; it is interned if it is new. 0 is none."""
        target_id = self._ids.get(signature)
        if target_id is None:
            symbol = self._source.symbol_of(signature)
            target_id = self._ids[signature] = self._target.intern_checked(
                symbol.op,
                symbol.attrs,
                self._source.operand_types(signature),
                self._source.type_of(signature),
            )
        return target_id

    def intern(self, signatures: Iterable[int]) -> None:
        """Intern signatures."""
        for signature in signatures:
            self.id_of(signature)

    def type_id(self, signature: int) -> int:
        """Return the id there of the type of a signature."""
        return self._target.signatures[self.id_of(signature) - 1].type


def copy_rules(
    egraph: EGraph, representative: Representative, signatures: Signatures, compiled: CompiledRules
) -> None:
    """Copy the rules, the instances that were judged, and the log; give all signatures their heads."""
    source, catalogue = representative.egraph.database, egraph.catalogue
    instances = [
        (instance_id, rule, pattern, *map(signatures.id_of, columns[:-2]), *columns[-2:])
        for instance_id, rule, pattern, *columns in source.execute(
            "FROM instance ORDER BY id", name="instance"
        )
    ]
    template = [
        (instance, step, signatures.id_of(signature), operands)
        for instance, step, signature, _, _, *operands in source.execute(
            "FROM template ORDER BY instance, step", name="template"
        )
    ]
    egraph.set_heads(compiled.heads)  # all signatures are there by now
    Instances(compiled, catalogue, egraph.database).create_tables()
    egraph.database.append("instance", instances)
    kinds, heads = [entry.type for entry in catalogue.signatures], catalogue.heads
    egraph.database.append(
        "template",
        [(i, step, s, kinds[s - 1], heads[s - 1], *operands) for i, step, s, operands in template],
    )
    for table in ("rule", "match_log", "iteration_log"):
        egraph.database.append(table, source.execute(f"FROM {table}", name=table))
