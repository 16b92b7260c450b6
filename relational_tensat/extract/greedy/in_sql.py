"""Tree-greedy and greedy-dag as set-at-a-time SQL, over all classes of any number of e-graphs.

Tree-greedy is one statement, a recursion over the classes whose cost fell. Greedy-dag goes in waves:
a wave settles, in every e-graph, all classes that nothing can make cheaper any more, and prices the
e-nodes above them, in a number of statements that depends neither on the e-graphs' size nor on how
many they are. Both choose what ``greedy`` and ``bottom_up`` do, ties included; costs that are not
exact in binary may be added up in another order. Two ways, as each checks the other; Python's is the
default and the faster one (``greedy``, ms: BERT at k_multi 2, 67 and 121 in SQL; NasNet-A, 18 and 106).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import NoSolutionError, RelationalTensatError
from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.resources import sql
from relational_tensat.egraph.database import MANY_ROWS, Database, Interrupted, OutOfMemory
from relational_tensat.egraph.working_tables import create_working
from relational_tensat.extract.greedy.dag import cheapest_greedy
from relational_tensat.extract.greedy.tree import TREE_COST_CEILING, tree_greedy
from relational_tensat.extract.index import edge_owner
from relational_tensat.extract.problem import (
    UNUSED,
    ExtractionProblem,
    Floats,
    Ints,
    dag_cost_us,
    reachable,
)

MOST_MEMBERS = 50_000_000
"""Rows that the sets of classes of greedy-dag may have together, 20 bytes each."""


class Outgrown(Exception):  # noqa: N818  # a control signal, not an error
    """The sets of greedy-dag would take too much memory."""


@dataclass(frozen=True, eq=False)
class InTables:
    """The tables that an extraction problem was made from.

    Attributes:
        database: has the e-graph, with the costs of all signatures.
        enodes: per e-node of the problem, its id there; ascending.
    """

    database: Database
    enodes: Ints


def load_problems(database: Database, problems: Sequence[ExtractionProblem]) -> None:
    """Make the input tables from arrays; e-graphs have ids from 0."""
    create_working(database, "greedy_node")
    create_working(database, "greedy_edge")
    arities = [np.diff(problem.child_ptr) for problem in problems]
    _insert(
        database,
        "greedy_node",
        _ids([problem.n_nodes for problem in problems]),
        np.concatenate([np.arange(problem.n_nodes) for problem in problems]),
        np.concatenate([problem.node_class for problem in problems]),
        np.concatenate([problem.cost_us for problem in problems]),
        np.concatenate(arities),
    )
    _insert(
        database,
        "greedy_edge",
        _ids([len(problem.child_idx) for problem in problems]),
        np.concatenate([edge_owner(problem.child_ptr) for problem in problems]),
        np.concatenate([problem.child_idx for problem in problems]),
    )


def load_own_tables(database: Database) -> None:
    """Make the input tables from the e-graph of the same database, with id 0."""
    create_working(database, "greedy_node")
    create_working(database, "greedy_edge")
    rows = sql("extract/extraction_nodes")
    database.execute(
        f"-- extract/extraction_nodes.sql, kept for greedy/own_tables.sql\n"
        f"CREATE OR REPLACE TEMP TABLE extraction_node AS {rows}",
        name="extract/extraction_nodes",
    )
    database.script("greedy/own_tables")


def tree_greedy_sql(database: Database) -> None:
    """Fill ``tree_choice``: per e-graph and derivable class, e-node, cost and rank. One statement."""
    database.run("greedy/tree", ceiling=TREE_COST_CEILING)


def greedy_dag_sql(database: Database, most_members: int | None = None) -> int:
    """Fill ``dag_choice``, likewise; return the count of waves.

    Runs ``STATEMENTS`` and ``STATEMENTS_PER_WAVE`` times the number of waves.

    Raises:
        Outgrown: the sets of classes have more than so many rows; by default ``MOST_MEMBERS``.
    """
    limit = MOST_MEMBERS if most_members is None else most_members
    database.run("greedy/dag_bound")
    create_working(database, "dag_choice")
    create_working(database, "dag_member")
    database.script("greedy/dag_tables")
    wave = members = 0
    while database.change("greedy/dag_settle", wave=wave):
        members += database.change("greedy/dag_members", wave=wave)
        if members > limit:
            raise Outgrown(f"the sets of classes outgrew {limit:,} rows of SQL")
        database.run("greedy/dag_evaluate", wave=wave)
        database.run("greedy/dag_wait", wave=wave)
        database.run("greedy/dag_ready")
        wave += 1
    return wave


STATEMENTS = 6
"""Before the first wave and after the last one: one bound, four tables, one wave that is empty."""
STATEMENTS_PER_WAVE = 5


def class_costs(
    database: Database, method: str, problems: Sequence[ExtractionProblem]
) -> list[tuple[Ints, Floats]]:
    """Return, per e-graph that was loaded, the chosen e-node and the cost in µs of every class.

    ``UNUSED`` and infinite stand for classes without an acyclic derivation.

    Args:
        database: where ``method`` has been run.
        method: ``tree`` or ``dag``.
        problems: those that were loaded.
    """
    columns = database.columns(f"greedy/{method}_chosen")
    starts = np.searchsorted(columns["egraph"], np.arange(len(problems) + 1))
    answers = []
    for index, problem in enumerate(problems):
        rows = slice(starts[index], starts[index + 1])
        choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
        costs = np.full(problem.n_classes, np.inf)
        choice[columns["class"][rows]] = columns["enode"][rows]
        costs[columns["class"][rows]] = columns["cost_us"][rows]
        answers.append((choice, costs))
    return answers


def greedy_in_sql(
    problem: ExtractionProblem, tables: InTables | None, *, shared: bool, time_limit_s: float
) -> tuple[Ints, str]:
    """Return the cheapest choice that SQL makes, pruned, and what made it.

    Where SQL needs too much time or memory, which it does in e-graphs of very many levels, the
    choice is made in Python, and the note names the reason.

    Args:
        problem: the e-graph.
        tables: where it is already in tables, these; else its arrays are put into new ones.
        shared: greedy-dag, never worse than tree-greedy and the original graph; else tree-greedy.
        time_limit_s: wall seconds for SQL.

    Raises:
        NoSolutionError: the root has no acyclic derivation.
    """
    try:
        choices = _choices_in_sql(problem, tables, shared, time_limit_s)
    except (Interrupted, Outgrown, OutOfMemory) as stop:
        choice, name = cheapest_greedy(problem) if shared else (tree_greedy(problem), "tree-greedy")
        return choice, f"{_reason(stop)}; chosen in Python: {name}"
    candidates: dict[str, Ints] = {}
    for name, choice in choices.items():
        if choice[problem.root] == UNUSED:
            raise NoSolutionError(f"the root class {problem.root} has no acyclic derivation")
        candidates[f"{name} in SQL"] = reachable(problem, choice)
    if shared and problem.has_original:
        candidates["the original graph"] = reachable(problem, problem.original)
    best = min(candidates, key=lambda name: dag_cost_us(problem, candidates[name]))
    return candidates[best], best


def _reason(stop: Interrupted | Outgrown | OutOfMemory) -> str:
    if isinstance(stop, Interrupted):
        return "SQL was not done within the time limit"
    return str(stop) if isinstance(stop, Outgrown) else "SQL needed too much memory"


def _choices_in_sql(
    problem: ExtractionProblem, tables: InTables | None, shared: bool, time_limit_s: float
) -> dict[str, Ints]:
    """Return what is chosen in SQL, by name, for every derivable class."""
    database = Database(process=_PROCESS) if tables is None else tables.database
    try:
        with _at_most(database, time_limit_s):
            if tables is None:
                load_problems(database, [problem])
            else:
                load_own_tables(database)
            tree_greedy_sql(database)
            choices = {"tree-greedy": _choice(problem, tables, database, "tree")}
            if shared:
                greedy_dag_sql(database)
                choices["bottom-up"] = _choice(problem, tables, database, "dag")
            return choices
    finally:
        if tables is None:
            database.close()
        else:
            database.script("greedy/drop_tables")


_PROCESS = ProcessOptions(memory_limit="2GiB")
"""Of a database that is made for one extraction."""


def _choice(
    problem: ExtractionProblem, tables: InTables | None, database: Database, method: str
) -> Ints:
    nodes = enodes = database.columns(f"greedy/{method}_chosen")["enode"]
    if tables is not None:
        nodes = np.searchsorted(tables.enodes, enodes)
        if not np.array_equal(tables.enodes[np.minimum(nodes, problem.n_nodes - 1)], enodes):
            raise RelationalTensatError(
                "the e-graph's tables are not those of the problem any more"
            )
    choice = np.full(problem.n_classes, UNUSED, dtype=np.int32)
    choice[problem.node_class[nodes]] = nodes
    return choice


@contextmanager
def _at_most(database: Database, seconds: float) -> Iterator[None]:
    """Interrupt what runs inside after so many seconds."""
    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), database.interrupt)
    timer.daemon = True
    timer.start()
    if seconds <= 0:
        database.interrupt()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        database.resume()


def _ids(counts: list[int]) -> Ints:
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def _insert(database: Database, table: str, *columns: NDArray[Any]) -> None:
    """Insert columns, in the order of the table's; arrays of many rows go into Arrow as they are."""
    is_small = len(columns[0]) < MANY_ROWS
    values: dict[str, Any] = {
        str(place): column.tolist() if is_small else column for place, column in enumerate(columns)
    }
    database.insert(table, values)
