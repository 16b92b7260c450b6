"""The abstract e-graph of a program, saturated.

An abstract expression can be completed to the program's if and only if it has a class here: every e-node
was made as a part of something that equals an output, which is what the subexpression axioms of Table 2
say, reflexive and transitive closure included. So pruning is an inner join with its e-nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from relational_tensat.base.process import ProcessOptions
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.mugraph.abstract.abstract_program import abstract_program
from relational_tensat.mugraph.abstract.axioms import axioms
from relational_tensat.mugraph.abstract.vocabulary import abstract_operators
from relational_tensat.mugraph.graph.mugraph import MuGraph

#: No program of the paper needs half as many.
_MOST_ENODES = 100_000
_MOST_ITERATIONS = 100


@dataclass(frozen=True, slots=True)
class AbstractEGraph:
    """A saturated e-graph of abstract expressions.

    Attributes:
        database: its tables, and ``abstract``, its e-nodes for joins; further tables may be put there.
        classes: of the program's inputs, by name.
        outputs: the classes of the program's outputs, in order.
        e_nodes, e_classes: its size.
        is_saturated: whether no axiom has anything to add; if not, pruning may lose μGraphs.
    """

    database: Database
    classes: Mapping[str, int]
    outputs: tuple[int, ...]
    e_nodes: int
    e_classes: int
    is_saturated: bool


def saturated(program: MuGraph, time_limit_s: float | None = None) -> AbstractEGraph:
    """Return the abstract e-graph of a program.

    Args:
        program: of operators of libraries only.
        time_limit_s: for saturation; None for no limit.

    Raises:
        InputError: it has an operator without an abstract expression.
    """
    options = ExplorationOptions(
        iterations=_MOST_ITERATIONS,
        node_limit=_MOST_ENODES,
        time_limit_s=time_limit_s,
        cycle_filter="none",  # without cancellation no axiom makes a class a part of itself
        blocks="never",
        multi_iterations=0,
    )
    with abstract_operators():
        abstract = abstract_program(program)
        egraph = EGraph.create(abstract.graph, process=ProcessOptions(threads=1))
        exploration = explore(egraph, axioms(abstract.sizes, abstract.more_axioms), options)
        database = egraph.database
        database.run("mugraph/abstract")
        classes = {str(name): int(number) for name, number in database.run("mugraph/classes")}
    return AbstractEGraph(
        database,
        {name: classes[name] for name in program.inputs},
        tuple(classes[name] for name in abstract.outputs),
        egraph.e_nodes,
        egraph.e_classes,
        exploration.stop_reason == "saturated",
    )
