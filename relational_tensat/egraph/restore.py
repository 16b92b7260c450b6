"""Opening: an e-graph from its tables, which are whole after every transaction, whoever wrote them."""

from __future__ import annotations

from relational_tensat.egraph.catalogue import Catalogue, Signature
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.decoding import parse_symbol, parse_type
from relational_tensat.egraph.egraph import Counters, EGraph
from relational_tensat.tensor.graph import Graph


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
    ((egraph.is_universe,),) = database.run("worlds/has_worlds")
    if egraph.is_universe:  # one of its worlds alone was shown while it was grown
        database.run("worlds/show_all")
    return egraph


def _fill(catalogue: Catalogue, database: Database) -> None:
    """Intern what is in the tables, under the ids that it has there."""
    catalogue.restore(
        symbols=[
            parse_symbol(str(op), str(attrs), int(arity))
            for op, attrs, arity in database.execute(
                "SELECT op, attrs, arity FROM symbol ORDER BY id"
            )
        ],
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
