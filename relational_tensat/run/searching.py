"""The search: a graph goes into the database, is explored there, and the cheapest one comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from relational_tensat.cost import CostModel
from relational_tensat.egraph import EGraph
from relational_tensat.egraph.stopwatch import TimeSpent
from relational_tensat.explore import Exploration, explore
from relational_tensat.explore.outcome import ended_exploration
from relational_tensat.explore.strategies.blocks import BlocksReport, explore_blocks
from relational_tensat.extract import Extraction
from relational_tensat.extract.anytime import AnytimeExtractor, ExtractionEntry
from relational_tensat.extract.tables import chosen_graph, rules_of_chosen
from relational_tensat.rules.model import Rule
from relational_tensat.run import resume as resuming
from relational_tensat.run.options import Options
from relational_tensat.run.phases import Phases
from relational_tensat.tensor import Graph


@dataclass(frozen=True, slots=True)
class Found:
    """What the search for a cheaper graph brought.

    Attributes:
        rules_used: how many e-nodes of the graph each rule made.
        e_nodes, e_classes: of the e-graph, at the end.
        extractions: those between iterations, and the last.
        blocks: how blocks that recur were explored, if they were looked for.
    """

    graph: Graph
    exploration: Exploration
    extraction: Extraction
    rules_used: Mapping[str, int]
    e_nodes: int
    e_classes: int
    time_spent: TimeSpent
    extractions: tuple[ExtractionEntry, ...] = ()
    blocks: BlocksReport | None = None


def search(
    graph: Graph,
    rules: list[Rule],
    cost: CostModel,
    options: Options,
    phases: Phases,
    *,
    record: resuming.RunRecord | None = None,
    stored: resuming.StoredRun | None = None,
) -> Found:
    """Explore all rewritings of a graph in the database, extract the cheapest graph.

    Args:
        record: what another process would need to take this run up, for the database.
        stored: what another process has done of it.

    Raises:
        UsageError, InputError: the database cannot be written, or ``stored`` is of another graph.
        NoSolutionError: no graph could be extracted within the limits.
        UnsoundRuleError: a rule united two classes of different types.
    """
    with phases.phase("explore"):
        egraph = _open_egraph(graph, options, stored)
    try:
        if record is not None:
            resuming.write_record(egraph.database, record)
        extractor = AnytimeExtractor(
            egraph, cost, options.extraction, options.process, phases.progress
        )
        if stored is not None:
            extractor.go_on()
        stopwatch = egraph.database.stopwatch
        with extractor.interruption.watching():  # exploration has a way of its own
            with phases.phase("explore"), stopwatch.phase("explore"):
                exploration, blocks = _explore(egraph, rules, options, phases, extractor, stored)
            phases.move(extractor.spent_s, source="explore", target="extract")
            with phases.phase("extract"), stopwatch.phase("extract"):
                extraction = extractor.finish(exploration.iterations)
                optimized = chosen_graph(egraph)
        e_nodes, e_classes = egraph.counts()
        used = rules_of_chosen(egraph)
        spent = stopwatch.spent()
    finally:
        egraph.close()
    return Found(
        optimized,
        exploration,
        extraction,
        used,
        e_nodes,
        e_classes,
        spent,
        tuple(extractor.log),
        blocks,
    )


def _open_egraph(graph: Graph, options: Options, stored: resuming.StoredRun | None) -> EGraph:
    if stored is not None:
        return stored.open(graph, options)
    return EGraph.create(
        graph,
        options.output.db,
        threads=options.process.threads,
        memory_limit=options.process.memory_limit,
        temp_directory=options.process.temp_directory,
    )


def _explore(
    egraph: EGraph,
    rules: list[Rule],
    options: Options,
    phases: Phases,
    extractor: AnytimeExtractor,
    stored: resuming.StoredRun | None,
) -> tuple[Exploration, BlocksReport | None]:
    if stored is not None and stored.stop_reason is not None:
        return ended_exploration(egraph.database, stored.checkpoint, stored.stop_reason), None
    if stored is not None:
        found = explore(
            egraph,
            rules,
            options.exploration,
            progress=phases.progress.iteration,
            after=extractor.after,
            start=stored.checkpoint,
        )
        return found, None
    return explore_blocks(
        egraph,
        rules,
        options.exploration,
        options.process,
        progress=phases.progress.iteration,
        after=extractor.after,
    )
