"""The applications of rules that made unions, as a run logged them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from relational_tensat.base.resources import sql
from relational_tensat.explain.laws import Law, Laws
from relational_tensat.explain.stored import StoredEGraph
from relational_tensat.rules.text import written_rule


@dataclass(frozen=True, slots=True)
class Application:
    """A union that a rule requested.

    Attributes:
        output: which of the rule's sources is one with its target here.
        operands: per tensor variable of the rule, its class as it was called then.
        targets: the classes of what was built, as they were called then, padded to the longest target.
    """

    law: Law
    output: int
    operands: tuple[int, ...]
    targets: tuple[int, ...]


def applications(stored: StoredEGraph) -> Iterator[Application]:
    """Yield the unions in the order in which they were requested."""
    connection = stored.connection
    rules = {
        rule_id: (
            written_rule(text, name, file, line),
            [place - 1 for place in operands],
            leaves,
        )
        for rule_id, text, name, file, line, operands, leaves in connection.execute(
            sql("explain/stored_rules")
        ).fetchall()
    }
    signatures = dict(connection.execute("SELECT id, signatures FROM instance_log").fetchall())
    laws = Laws(stored.signatures)
    laws_by_instance: dict[int, Law] = {}
    for rule, instance, output, bindings in connection.execute(sql("explain/reasons")).fetchall():
        rule_text, places, leaves = rules[rule]
        if instance not in laws_by_instance:
            laws_by_instance[instance] = laws.law(rule_text, signatures[instance])
        operands = tuple([bindings[place] for place in places])
        yield Application(laws_by_instance[instance], output, operands, tuple(bindings[leaves:]))
