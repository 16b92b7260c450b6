"""Where an exploration is: what its next iteration depends on beside the tables of the e-graph.

In a file it is written in the transaction of every iteration. So a process that is killed leaves the
last iteration that was committed, and all that is needed to continue from there to the e-graph that it
would have made itself, e-node by e-node.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, fields, replace

from relational_tensat.base import duckdb
from relational_tensat.egraph.egraph import Counters, EGraph


@dataclass(slots=True)
class Checkpoint:
    """A row of the table ``checkpoint``, whose columns have this order.

    Attributes:
        first_rule: the id of the first of the exploration's rules.
        iteration: the last one that is done; 0 before the first.
        stopped: why it is the last: saturated, nodes, or closed (saturated, and more iterations of
            multi-pattern rules would add nothing either); empty if it is not.
        multi_done: iterations with multi-pattern rules.
        since_single, since_multi: the clock when each kind of rules was last matched.
        quiet: whether the last iteration added nothing.
        left_out: whether a limit kept multi-pattern matches from being applied.
        scarce: whether the node budget is: see ``scarce_budget``.
        original: e-nodes there were before the first iteration.
        next_id, clock, e_nodes, e_classes: the e-graph's counters.
        rule_seconds: wall seconds of matching, by rule id - ``first_rule``.
    """

    first_rule: int
    iteration: int = 0
    stopped: str = ""
    multi_done: int = 0
    since_single: int = 0
    since_multi: int = 0
    quiet: bool = False
    left_out: bool = False
    scarce: bool = False
    original: int = 0
    next_id: int = 1
    clock: int = 0
    e_nodes: int = 0
    e_classes: int = 0
    rule_seconds: list[float] = field(default_factory=list)

    @property
    def counters(self) -> Counters:
        """The e-graph's counters."""
        return Counters(self.next_id, self.clock, self.e_nodes, self.e_classes)


def write_checkpoint(egraph: EGraph, checkpoint: Checkpoint) -> None:
    """Append a checkpoint, with the e-graph's counters as they are now."""
    counters = egraph.counters()
    current = replace(
        checkpoint,
        next_id=counters.next_id,
        clock=counters.clock,
        e_nodes=counters.e_nodes,
        e_classes=counters.e_classes,
    )
    egraph.database.append("checkpoint", [astuple(current)])


def read_checkpoint(connection: duckdb.DuckDBPyConnection) -> Checkpoint | None:
    """Return the last checkpoint in a database; None if exploration had not begun."""
    columns = ", ".join(column.name for column in fields(Checkpoint))
    text = f"SELECT {columns} FROM checkpoint ORDER BY rowid DESC LIMIT 1"
    rows = connection.execute(text).fetchall()
    return Checkpoint(*rows[0]) if rows else None
