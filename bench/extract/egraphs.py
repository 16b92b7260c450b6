"""The e-graphs of the 13 models, explored once and kept as egraph-serialize files.

A folder holds ``egraphs/SET/MODEL-kK.json``, the layout of extraction-gym (sub-folders of ``.json``
files), so that other extractors can be run on the same e-graphs; and ``notes/SET/MODEL-kK.json``,
how each was explored and which of its e-nodes are the original graph.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.common.result_file import read_object
from bench.common.rule_sets import RULE_SETS
from bench.common.stopwatch import stopwatch
from bench.models import MODELS
from relational_tensat.base.errors import InputError
from relational_tensat.base.files import sql, write_aside
from relational_tensat.cli.database import QueryRows
from relational_tensat.cost import load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract.interchange import egraph_json, read_egraph_json, save_egraph_json
from relational_tensat.extract.problem import UNUSED, ExtractionProblem, Ints
from relational_tensat.extract.tables import extraction_problem
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.store import content_hash

#: Named rule sets: ours, and TASO's taken as they are (the papers', unsound ones included).
EXPLORED_WITH = ("shipped", "taso")
CYCLE_FILTERS = ("efficient", "none")


@dataclass(frozen=True, slots=True)
class Exploration:
    """How an e-graph is explored; with other values it is another e-graph.

    Attributes:
        model: one of ``MODELS``.
        k_multi: in how many iterations the multi-pattern rules take part.
        rules: one of ``EXPLORED_WITH``.
        cycle_filter: ``efficient``, or ``none``: then the e-graph is cyclic.
        cost: name of a cost profile.
        iterations, node_limit, time_limit_s: limits; a limit in seconds makes the e-graph depend
            on the machine, which the notes then say.
    """

    model: str
    k_multi: int
    rules: str = "shipped"
    cycle_filter: str = "efficient"
    cost: str = "tensat_t4"
    iterations: int = 15
    node_limit: int = 50_000
    time_limit_s: float = 60.0

    @property
    def set_name(self) -> str:
        """The sub-folder: what the e-graphs in it share."""
        return self.rules if self.cycle_filter == "efficient" else f"{self.rules}-cyclic"

    @property
    def file_name(self) -> str:
        """The file within the sub-folder."""
        return f"{self.model}-k{self.k_multi}.json"


@dataclass(frozen=True, eq=False)
class Explored:
    """An e-graph of a model.

    Attributes:
        problem: what to extract, costs in µs, with the original graph.
        notes: the settings and how exploration ended: ``stop_reason``, ``iterations``,
            ``explore_cpu_s``, ``explore_wall_s``.
    """

    problem: ExtractionProblem
    notes: dict[str, Any]


def explored(exploration: Exploration, folder: Path, *, fresh: bool = False) -> Explored:
    """Return an e-graph of a model: from the folder if it was explored before, in the same way.

    Args:
        exploration: the model and the settings.
        folder: where e-graphs are kept; made where it is not.
        fresh: explore again in any case (the code has changed).

    Raises:
        InputError: the folder cannot be written, or a file in it is broken.
    """
    rules = RULE_SETS[exploration.rules]()
    settings = {**asdict(exploration), "rules_hash": _hash_of(rules)}
    egraph_path = folder / "egraphs" / exploration.set_name / exploration.file_name
    notes_path = folder / "notes" / exploration.set_name / exploration.file_name
    if fresh or not egraph_path.exists() or not _same(notes_path, settings):
        _explore(exploration, rules, settings, egraph_path, notes_path)
    notes = read_object(notes_path, "notes on an e-graph")
    original = notes.pop("original")
    return Explored(_with_original(egraph_path, original), notes)


def _explore(
    exploration: Exploration,
    rules: Sequence[Rule],
    settings: dict[str, Any],
    egraph_path: Path,
    notes_path: Path,
) -> None:
    """Explore, and write the e-graph and then the notes: a file without notes counts as none."""
    limits = ExplorationOptions(
        iterations=exploration.iterations,
        multi_iterations=exploration.k_multi,
        multi_schedule="first",  # TENSAT's
        node_limit=exploration.node_limit,
        time_limit_s=exploration.time_limit_s,
        cycle_filter=exploration.cycle_filter,
    )
    for path in (egraph_path, notes_path):
        _make_folder(path.parent)
    notes_path.unlink(missing_ok=True)
    with closing(EGraph.create(MODELS[exploration.model]())) as egraph:
        with stopwatch() as watch:
            outcome = explore(egraph, rules, limits)
        table = extraction_problem(egraph, load_profile(exploration.cost))
        save_egraph_json(egraph_json(_Named(egraph)), egraph_path)
    original_nodes = table.problem.original[table.problem.original != UNUSED]
    notes = {
        "settings": settings,
        "stop_reason": outcome.stop_reason,
        "iterations": outcome.iterations,
        "explore_cpu_s": round(watch.cpu_s, 3),
        "explore_wall_s": round(watch.wall_s, 3),
        "original": table.enodes[original_nodes].tolist(),
    }
    with write_aside(notes_path) as aside:
        (aside / notes_path.name).write_text(json.dumps(notes) + "\n", encoding="utf-8")


class _Named:
    """An open e-graph's database, in the form that ``egraph_json`` asks for."""

    def __init__(self, egraph: EGraph) -> None:
        self._connection = egraph.connection

    def named(self, name: str, **params: Any) -> QueryRows:
        """Run ``sql/NAME.sql``."""
        result = self._connection.execute(sql(name), params or None)
        columns = tuple(str(column[0]) for column in result.description or ())
        return QueryRows(columns, result.fetchall())


def _with_original(file: Path, original: Sequence[int]) -> ExtractionProblem:
    """Read an e-graph and mark the e-nodes of the original graph in it."""
    egraph = read_egraph_json(file)
    problem = egraph.problem
    node_by_name = {name: node for node, name in enumerate(egraph.nodes)}
    nodes = np.array([node_by_name[str(identifier)] for identifier in original], dtype=np.int32)
    choice: Ints = np.full(problem.n_classes, UNUSED, dtype=np.int32)
    choice[problem.node_class[nodes]] = nodes
    if problem.n_classes > len(egraph.classes):  # several roots: the free e-node above them
        choice[problem.root] = problem.n_nodes - 1
    return replace(problem, original=choice)


def _same(noted: Path, settings: dict[str, Any]) -> bool:
    return noted.exists() and read_object(noted, "notes on an e-graph").get("settings") == settings


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made a folder: {error.strerror}") from None


def _hash_of(rules: Sequence[Rule]) -> str:
    """Return a short text that differs where the rules say something else."""
    text = "\n".join(content_hash(rule) + repr(rule.worth) for rule in rules)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
