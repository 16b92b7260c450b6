"""The tables of judged configurations, whose width depends on the rules.

In a file they are kept, with comments, as long as the exploration may be resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from relational_tensat.egraph.database import Database
from relational_tensat.egraph.loading import CHILD_COLUMNS


@dataclass(frozen=True, slots=True)
class InstanceTable:
    """A table: what it is, and of each column what it is; all columns are integers."""

    name: str
    comment: str
    columns: Mapping[str, str]

    def create(self, database: Database) -> None:
        """Make the table, empty."""
        kind = "TABLE" if database.is_file else "TEMP TABLE"
        columns = ", ".join(f"{column} INTEGER" for column in self.columns)
        database.execute(
            f"-- {self.comment}\nCREATE OR REPLACE {kind} {self.name} ({columns})", name=self.name
        )
        if database.is_file:
            database.execute_all(self._comments(), f"{self.name} comments")

    def _comments(self) -> str:
        comments = [f"COMMENT ON TABLE {self.name} IS '{self.comment}'"]
        comments += [
            f"COMMENT ON COLUMN {self.name}.{column} IS '{text}'"
            for column, text in self.columns.items()
        ]
        return ";\n".join(comments)


def instance_tables(signatures: int) -> tuple[InstanceTable, InstanceTable]:
    """Return the tables ``instance`` and ``template``.

    Args:
        signatures: the most e-nodes that the sources of a rule match.
    """
    instance = InstanceTable(
        "instance",
        "Judged configurations: a rule on e-nodes of given signatures; until the exploration ends.",
        {
            "id": "Key, from 1 on.",
            "rule": "Joins rule.id.",
            "pattern": "Pattern of a single-pattern rule in the compiled rules, 0: of several sources.",
            "g0": "Signature of the first e-node that the sources match, in pre-order, the second source "
            "in the second half of these columns; joins signature.id, 0: there is none.",
            **{f"g{i}": "As g0, of the next e-node." for i in range(1, signatures)},
            "root0": "Position of the first target among the bindings, from 1; 0: the rule does not apply.",
            "root1": "As root0, of the second target.",
        },
    )
    template = InstanceTable(
        "template",
        "E-nodes that instances build, one a step, operands first; until the exploration ends.",
        {
            "instance": "Joins instance.id.",
            "step": "Place among the e-nodes that the instance builds, from 1 on.",
            "signature": "Joins signature.id.",
            "type": "Type of its result; joins value_type.id.",
            "head": "Head of its signature; joins head.id, 0: none.",
            "s0": "Position of the first operand among the bindings, from 1; 0: there is none.",
            **{f"s{i}": "As s0, of the next operand." for i in range(1, CHILD_COLUMNS)},
        },
    )
    return instance, template
