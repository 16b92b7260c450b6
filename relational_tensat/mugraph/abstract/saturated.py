"""The abstract e-graph of a program, saturated.

An abstract expression can be completed to the program's if and only if it has a class here: every e-node
was made as a part of something that equals an output, which is what the subexpression axioms of Table 2
say, reflexive and transitive closure included. So pruning is an inner join with its e-nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from relational_tensat.base.process import ProcessOptions
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.mugraph.abstract.abstract_program import AbstractProgram, abstract_program
from relational_tensat.mugraph.abstract.axioms import axioms
from relational_tensat.mugraph.abstract.vocabulary import abstract_operators
from relational_tensat.mugraph.graph.mugraph import MuGraph

#: No program of the paper needs half as many.
_MOST_ENODES = 100_000
_MOST_ITERATIONS = 100
#: So many e-graphs of at most so many e-nodes are kept.
_MOST_KEPT = 64
_MOST_KEPT_ENODES = 5_000


@dataclass(frozen=True, slots=True)
class AbstractEGraph:
    """A saturated e-graph of abstract expressions.

    Attributes:
        database: its tables, and ``abstract``, its e-nodes for joins; further tables may be put there.
        classes: of the program's inputs that something reads, by name.
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


@dataclass(frozen=True, slots=True)
class _Kept:
    """A saturated e-graph without its database: the rows of ``abstract``, and classes by place."""

    rows: tuple[tuple[Any, ...], ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    e_nodes: int
    e_classes: int


#: Those of this process, the last used ones last: parts of a model are often alike but for names and sizes
#: that nothing is summed over.
_kept: dict[Hashable, _Kept] = {}


def saturated(program: MuGraph, time_limit_s: float | None = None) -> AbstractEGraph:
    """Return the abstract e-graph of a program.

    Args:
        program: of operators of libraries only.
        time_limit_s: for saturation; None for no limit.

    Raises:
        InputError: it has an operator without an abstract expression.
    """
    with abstract_operators():
        abstract = abstract_program(program)
        form = abstract.form()
        kept = _kept.pop(form, None)
        if kept is not None:
            _kept[form] = kept
            return _reopened(kept, abstract.graph.inputs)
        made = _saturated(abstract, time_limit_s)
    if made.is_saturated and made.e_nodes <= _MOST_KEPT_ENODES:
        rows = made.database.execute("FROM abstract", name="mugraph/abstract_rows")
        classes = tuple(made.classes.values())
        _kept[form] = _Kept(
            tuple(map(tuple, rows)), classes, made.outputs, made.e_nodes, made.e_classes
        )
        if len(_kept) > _MOST_KEPT:
            del _kept[next(iter(_kept))]
    return made


def _saturated(abstract: AbstractProgram, time_limit_s: float | None) -> AbstractEGraph:
    options = ExplorationOptions(
        iterations=_MOST_ITERATIONS,
        node_limit=_MOST_ENODES,
        time_limit_s=time_limit_s,
        cycle_filter="none",  # without cancellation no axiom makes a class a part of itself
        multi_iterations=0,
    )
    egraph = EGraph.create(abstract.graph, process=ProcessOptions(threads=1))
    exploration = explore(egraph, axioms(abstract.sizes, abstract.more_axioms), options)
    database = egraph.database
    database.run("mugraph/abstract")
    classes = {str(name): int(number) for name, number in database.run("mugraph/classes")}
    return AbstractEGraph(
        database,
        {name: classes[name] for name in abstract.graph.inputs},
        tuple(classes[name] for name in abstract.outputs),
        egraph.e_nodes,
        egraph.e_classes,
        exploration.stop_reason == "saturated",
    )


def _reopened(kept: _Kept, inputs: Iterable[str]) -> AbstractEGraph:
    database = Database(process=ProcessOptions(threads=1))
    database.script("mugraph/abstract_table")
    database.append("abstract", kept.rows)
    classes = dict(zip(inputs, kept.inputs, strict=True))
    return AbstractEGraph(
        database, classes, kept.outputs, kept.e_nodes, kept.e_classes, is_saturated=True
    )
