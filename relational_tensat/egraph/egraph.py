"""An e-graph in DuckDB tables: made from a tensor graph, grown by exploration, read by extraction.

Its tables are whole after every transaction, so an e-graph is opened from them, even after a crash. Classes
that depend on weights and constants only are known before inference, where they cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base import duckdb
from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.records import record
from relational_tensat.egraph.catalogue import (
    Catalogue,
    HeadOf,
    Signature,
    is_foldable,
    parse_symbol,
    parse_type,
)
from relational_tensat.egraph.cycles import HEIGHT_STEP
from relational_tensat.egraph.database import FORMAT_VERSION, Database
from relational_tensat.egraph.enode_rows import (
    CHILD_COLUMNS,
    fitting_labels,
    load_rows,
    small_weights,
)
from relational_tensat.egraph.rebuild import drop_equal, rebuild
from relational_tensat.egraph.schema import create_tables, working_tables
from relational_tensat.tensor.graph import Graph
from relational_tensat.tensor.operators import operators


@record
class Counters:
    """The counters that go back with the tables when a transaction is undone."""

    next_id: int
    clock: int
    e_nodes: int
    e_classes: int


class EGraph:
    """The tables of one e-graph, with the counters that spare asking them.

    Attributes:
        database: the connection; ``connection`` is DuckDB's own, for any SQL of one's own.
        catalogue: interned symbols, types and signatures.
        graph: the original graph.
        root: the class that extraction starts from (by its first id; see ``find``).
        next_id: the id of the next e-node and class.
        clock: stamp of rows that are written now.
        e_nodes, e_classes: current sizes.
        is_universe: whether it is shown subgraph by subgraph: even e-nodes of the original graph may be
            hidden.
    """

    def __init__(self, graph: Graph, database: Database) -> None:
        self.graph = graph
        self.database = database
        self.catalogue = Catalogue()
        self.root = 0
        self.next_id = 1
        self.clock = 0
        self.e_nodes = 0
        self.e_classes = 0
        self.is_universe = False
        self._is_in_transaction = False

    @classmethod
    def create(
        cls,
        graph: Graph,
        database: Path | None = None,
        process: ProcessOptions | None = None,
    ) -> EGraph:
        """Put a graph into the tables of a new database.

        Args:
            database: a new file, replacing one of that name; in memory by default.
            process: limits on the database, as for ``Database``.

        Raises:
            InputError: the file cannot be created.
            UsageError: the memory limit is not one.
        """
        egraph = cls(graph, Database(database, process))
        with egraph.database.stopwatch.phase("tables"):
            egraph.database.begin()
            create_tables(egraph.database)
            egraph._load()
            egraph.database.commit()
        return egraph

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's connection to the tables, with queries that are built in Python (``connection.sql``)."""
        duckdb.import_package()
        return self.database.connection

    def counts(self) -> tuple[int, int]:
        """Return the counts of e-nodes and of e-classes, counted in the tables."""
        ((nodes, classes),) = self.database.run("egraph/counts")
        return int(nodes), int(classes)

    def find(self, class_id: int) -> int:
        """Return the canonical id of a class."""
        rows = self.database.execute("SELECT parent FROM eclass WHERE id = $id", {"id": class_id})
        return int(rows[0][0])

    def counters(self) -> Counters:
        """Return the counters as they are now."""
        return Counters(self.next_id, self.clock, self.e_nodes, self.e_classes)

    def restore(self, counters: Counters) -> None:
        """Set the counters back to what ``counters()`` gave."""
        self.next_id = counters.next_id
        self.clock = counters.clock
        self.e_nodes = counters.e_nodes
        self.e_classes = counters.e_classes

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do what is inside all or not at all: in the tables, the counters and the catalogue.

        An exception inside undoes it. Inside another one it is a part of that: an exception must leave
        both.

        Raises:
            Interrupted: someone interrupted the database; none of it is done.
            OutOfMemory: it needs more than the memory limit; none of it is done.
        """
        if self._is_in_transaction:
            yield
            return
        counters, written = self.counters(), self.catalogue.written
        head_of = self.catalogue.head_of
        is_done = False
        self._is_in_transaction = True
        try:
            self.database.begin()
            yield
            self.database.commit()
            is_done = True
        finally:
            self._is_in_transaction = False
            if not is_done:
                self.database.rollback()
                self.restore(counters)
                self.catalogue.written = written
                if self.catalogue.head_of is not head_of:
                    self.catalogue.rehead(head_of)

    def set_heads(self, head_of: HeadOf) -> None:
        """Give every signature and e-node the head that patterns compare."""
        catalogue = self.catalogue
        if catalogue.written.heads:
            self.database.run("egraph/forget_heads")
            catalogue.written = replace(catalogue.written, heads=0)
        heads = catalogue.rehead(head_of)
        catalogue.flush(self.database)
        self.database.run("egraph/signature_heads", heads=heads)
        self.database.run("egraph/enode_heads")

    def set_stop_reason(self, reason: str) -> None:
        """Write into the table ``meta`` why exploration ended."""
        self.database.run("egraph/set_stop_reason", reason=reason)

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def _load(self) -> None:
        rows = load_rows(self.graph, self.catalogue, HEIGHT_STEP)
        ids = list(range(1, len(rows.signatures) + 1))
        zeros = [0] * len(ids)
        children = [
            [kids[i] if i < len(kids) else 0 for kids in rows.children]
            for i in range(CHILD_COLUMNS)
        ]
        database = self.database
        self.catalogue.flush(database)
        database.insert(
            "enode",
            {
                "id": ids,
                "class": ids,
                "signature": rows.signatures,
                "head": zeros,
                **{f"c{i}": column for i, column in enumerate(children)},
                "iteration": zeros,
                "rule": zeros,
                "stamp": zeros,
                "filtered": [False] * len(ids),
            },
        )
        database.run("egraph/keep_original")
        types = [self.catalogue.signatures[s - 1].type for s in rows.signatures]
        database.insert(
            "eclass",
            {
                "id": ids,
                "parent": ids,
                "type": types,
                "height": fitting_labels(rows.heights),
                "weight_only": [False] * len(ids),
            },
        )
        names, enodes, node_names = (list(column) for column in zip(*rows.values, strict=True))
        database.insert("original_value", {"name": names, "enode": enodes, "node_name": node_names})
        database.insert(
            "graph_output",
            {
                "position": list(range(len(rows.outputs))),
                "name": list(self.graph.outputs),
                "class": rows.outputs,
            },
        )
        database.append("original_weight", list(small_weights(self.graph).items()))
        database.insert(
            "meta",
            {"key": ["format_version", "model"], "value": [FORMAT_VERSION, self.graph.name]},
        )
        self.root = rows.root
        self.next_id = len(ids) + 1
        self.e_nodes = self.e_classes = len(ids)
        if rows.has_equal():
            # hash-consing: equal nodes of the original become one (common sub-expressions)
            self.database.run("rebuild/congruent")
            working_tables()["union_pair"].create(self.database)
            self.database.run("rebuild/congruence_unions", round=0)
            rebuilt = rebuild(self.database, iteration=0, stamp=0)
            self.e_nodes -= drop_equal(self.database) if rebuilt.has_equal else 0
            self.e_classes -= rebuilt.merged


def restore_egraph(graph: Graph, database: Database) -> EGraph:
    """Return the e-graph that a database holds, to be looked at and explored further.

    Args:
        graph: the original graph, as it was when the database was made.
    """
    egraph = EGraph(graph, database)
    _fill(egraph.catalogue, database)
    ((root,),) = database.run("egraph/root")
    egraph.root = int(root)
    ((next_id, clock, e_nodes, e_classes),) = database.run("egraph/counters")
    egraph.restore(Counters(next_id, clock, e_nodes, e_classes))
    ((egraph.is_universe,),) = database.run("subgraphs/has_subgraphs")
    if egraph.is_universe:  # one of its subgraphs alone was shown while it was grown
        database.run("subgraphs/show_all")
    return egraph


def _fill(catalogue: Catalogue, database: Database) -> None:
    """Intern what is in the tables, under the ids that it has there."""
    symbols = [
        (str(op), str(attrs), int(arity))
        for op, attrs, arity in database.execute("SELECT op, attrs, arity FROM symbol ORDER BY id")
    ]
    if not {op for op, _, _ in symbols} <= operators().keys():
        from relational_tensat.rules.backends.backend import know_kernels  # few e-graphs have any

        know_kernels()
    catalogue.restore(
        symbols=[parse_symbol(*symbol) for symbol in symbols],
        types=[
            parse_type(str(text))
            for (text,) in database.execute("SELECT type FROM value_type ORDER BY id")
        ],
        signatures=[
            Signature(int(symbol), tuple(map(int, operands)), int(kind))
            for symbol, operands, kind in database.execute(
                "SELECT symbol, operands, type FROM signature ORDER BY id"
            )
        ],
        heads=len(database.run("egraph/heads")),
    )


def classes_of_weights(egraph: EGraph, *, hidden: bool = False) -> NDArray[np.intp]:
    """Return the ids of an e-graph's classes that can be had from weights only.

    Args:
        hidden: e-nodes that are not shown count, too.
    """
    foldable = egraph.catalogue.by_signature(is_foldable)
    rows = egraph.database.columns("egraph/foldable_nodes", hidden=hidden, foldable=foldable)
    children = np.stack([rows[f"c{i}"] for i in range(CHILD_COLUMNS)], axis=1)
    return weight_only_classes(rows["class"], children)


def weight_only_classes(owner: NDArray[np.int32], children: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return the classes that can be had from weights only.

    Args:
        owner: of each foldable e-node, its class.
        children: of each, its child classes, 0 for none.
    """
    size = 1 + int(max(owner.max(initial=0), children.max(initial=0)))
    is_known = np.zeros(size, np.bool_)
    is_known[0] = True  # no operand
    while True:
        is_ready = is_known[children].all(axis=1)
        if not is_ready.any():
            break
        is_known[owner[is_ready]] = True
        owner, children = owner[~is_ready], children[~is_ready]
    return np.flatnonzero(is_known)[1:]
