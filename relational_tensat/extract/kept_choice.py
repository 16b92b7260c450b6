"""The cheapest choice so far, kept while the e-graph grows under it.

E-nodes are never removed, only merged with equal ones, and filtered. So a choice stays a graph that the
e-graph represents: each of its e-nodes is found again by its signature and its children's classes of
today. Where two classes of the choice were united, the e-node that stood lower in the choice stands for
both. Its own operands stood lower still, so no cycle arises, and no e-node is added.

A choice is also written as text. That finds its e-nodes again in another e-graph of the same model and
rules. An e-node is what its signature is, and the e-nodes of its children, which stand before it. Ids are
an e-graph's own; where time ended exploration, those of a run that is repeated are others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostModel, CostSource, as_source
from relational_tensat.cost.source import ABOUT
from relational_tensat.egraph.catalogue import Catalogue
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS
from relational_tensat.explore.members import Seed, choice_of
from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.few_measurements import chosen_enodes
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.problem import Extraction, Ints
from relational_tensat.extract.tables import (
    TableProblem,
    ask_for_chosen,
    enodes_in_order,
    extraction_problem,
    forget_costs,
)


@dataclass(frozen=True, slots=True)
class ExtractionEntry:
    """An extraction, and what the cheapest graph costs since; a row of the table ``extraction_log``.

    Attributes:
        iteration: after which of exploration.
        cost_us: of the graph that it found.
        best_us: of the cheapest graph that the run has found until then, the original included.
        bound_us: no graph of the e-graph of that time costs less (0: nothing is known).
        optimal: whether the graph found was proven to be the cheapest of that e-graph.
        seconds: wall seconds, making the problem included.
        final: whether it came after exploration, and not in between.
    """

    iteration: int
    cost_us: float
    best_us: float
    bound_us: float
    optimal: bool
    seconds: float
    final: bool


class ExtractionProgress(Protocol):
    """Is called as extractions proceed; a run's ``Progress`` is one."""

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """The solver has a better graph or a better bound; both in µs, infinite while unknown."""

    def extracted(self, entry: ExtractionEntry) -> None:
        """An extraction between two iterations of exploration has ended."""


class KeptChoice:
    """A choice of an e-graph, in the table ``kept_choice``.

    Attributes:
        cost_us: its cost when it was found; never more since.
        iteration: after which it was found.
    """

    def __init__(self, egraph: EGraph, cost_us: float, iteration: int) -> None:
        """Continue with the choice that is in the table."""
        self._egraph = egraph
        self.cost_us = cost_us
        self.iteration = iteration

    @classmethod
    def keep(cls, egraph: EGraph, seed: Seed, iteration: int) -> KeptChoice:
        """Keep a graph that was found, in place of what was kept before."""
        egraph.database.run("extract/forget_choice")
        egraph.database.run("extract/keep_choice", ids=list(seed.enodes))
        return cls(egraph, seed.cost_us, iteration)

    def start(self, table: TableProblem) -> Ints:
        """Return an acyclic choice of the e-graph as it is now that holds to this one.

        It costs no more than this one, unless the cycle filter has taken an e-node of this one out
        of the problem: then that is derived from others.
        """
        ids = [row[0] for row in self._egraph.database.run("extract/kept_choice")]
        is_kept = np.isin(table.enodes, ids)
        problem = table.problem
        return DagDeriver(problem).derive(np.where(is_kept, 0.0, problem.cost_us))

    def restore(self) -> None:
        """Write the choice into the table ``chosen``, filtered e-nodes included."""
        rows = self._egraph.database.run("extract/kept_choice")
        choice = choice_of(rows, self._egraph.find(self._egraph.root))
        self._egraph.database.execute("DELETE FROM chosen", name="restore")
        self._egraph.database.append("chosen", sorted(choice.items()))


def seed_of(table: TableProblem, extraction: Extraction) -> Seed:
    """Return the graph that an extraction found."""
    return Seed(extraction.cost_us, enodes_in_order(table, extraction.choice))


def cheapest_by_profile(
    egraph: EGraph,
    cost: CostModel,
    options: ExtractionOptions,
    process: ProcessOptions,
    watch: Watch,
) -> Seed | None:
    """Return the cheapest graph by the profile alone, and measure its kernels before any others.

    None where costs are not measured, or are a profile's anyway.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed twice, or while measuring.
        NoSolutionError: the root has no acyclic derivation.
    """
    if not as_source(cost).is_lazy:
        return None
    forget_costs(egraph)
    table = extraction_problem(egraph, cost, CostSource.modelled)
    with watch.watching():
        within = watch.within(options.time_limit_s)
        extraction = extract(table.problem, options, process, watch=within)
    with watch.final():
        enodes = chosen_enodes(table, extraction.choice)
        ask_for_chosen(egraph, cost, enodes, ABOUT)
    forget_costs(egraph)
    return seed_of(table, extraction)


#: Of an e-node: its class, its signature, and its children's classes, 0 for none.
_Row: TypeAlias = tuple[int, int, tuple[int, ...]]


def text_of_choice(egraph: EGraph, enodes: Sequence[int]) -> str:
    """Return chosen e-nodes as text: of each the hash of its signature, and the places of its children.

    Args:
        enodes: ids, one a class, children first.
    """
    rows, catalogue = _rows(egraph), egraph.catalogue
    place: dict[int, int] = {}
    written: list[list[str | int]] = []
    for enode in enodes:
        owner, signature, children = rows[enode]
        places = [place[child] for child in children if child]
        written.append([_digest(catalogue, signature), *places])
        place[owner] = len(written) - 1
    return json.dumps(written, separators=(",", ":"))


def find_choice(egraph: EGraph, text: str) -> tuple[int, ...] | None:
    """Return the e-nodes that a text says, children first; None where the e-graph lacks one."""
    catalogue = egraph.catalogue
    signature_of = {_digest(catalogue, s): s for s in range(1, len(catalogue.signatures) + 1)}
    enode_of = {
        (signature, children): (enode, owner)
        for enode, (owner, signature, children) in _rows(egraph).items()
    }
    found: list[tuple[int, int]] = []
    for digest, *places in json.loads(text):
        children = [found[place][1] for place in places]
        padded = (*children, *[0] * (CHILD_COLUMNS - len(children)))
        enode = enode_of.get((signature_of.get(digest, 0), padded))
        if enode is None:
            return None
        found.append(enode)
    return tuple(enode for enode, _ in found)


def _rows(egraph: EGraph) -> Mapping[int, _Row]:
    """Return the e-nodes that may be chosen, by id."""
    columns = egraph.database.columns("extract/nodes_by_signature")
    children = np.stack([columns[f"c{i}"] for i in range(CHILD_COLUMNS)], axis=1).tolist()
    heads = zip(*(columns[name].tolist() for name in ("id", "class", "signature")), strict=True)
    return {
        enode: (owner, signature, tuple(own))
        for (enode, owner, signature), own in zip(heads, children, strict=True)
    }


def _digest(catalogue: Catalogue, signature: int) -> str:
    parts = (
        catalogue.symbol_of(signature),
        catalogue.operand_types(signature),
        catalogue.type_of(signature),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:20]
