"""How each kind of cell is run; what comes out is plain JSON."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import date

from bench.common.cell_results import Result
from bench.common.machine import describe_commit
from bench.common.reference import join_ms
from bench.common.rule_sets import RULE_SETS, rules_hash
from bench.mcts.cells import Cell
from bench.models import MODELS
from relational_tensat.base.deadline import counting_cpu_seconds
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cost import load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, Observer, explore
from relational_tensat.explore.exploration_options import TreeOptions
from relational_tensat.explore.strategies.mcts.decisions import explore_tree
from relational_tensat.explore.strategies.strategy import SearchSettings
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.extract.greedy.bottom_up import settle_by_tree_cost
from relational_tensat.extract.greedy.ocf import greedy_by_history
from relational_tensat.extract.tables import extraction_problem
from relational_tensat.run.progress import Silent

#: The largest k_multi of saturation.
MOST_K = 6


@dataclass(frozen=True, slots=True)
class Settings:
    """What all cells share; with other values a kept result does not count.

    Attributes:
        rules: a set of ``bench.common.rule_sets``.
        node_limit: of a subgraph, and of saturation; the paper's.
        universe_limit: of all subgraphs of a search together.
        time_limit_s: CPU seconds of a search; those that it ends say so in ``stop_reason``.
        extract_time_limit_s: CPU seconds of an extraction.
    """

    rules: str = "taso-sound"
    node_limit: int = 2_000
    universe_limit: int = 50_000
    time_limit_s: float = 600.0
    extract_time_limit_s: float = 60.0


@dataclass(frozen=True, slots=True)
class TreeRuns:
    """Runs the cells, with one thread."""

    settings: Settings

    def run(self, cell: Cell) -> Result:
        """Run a cell; its result says by which code, and how fast and how busy the machine was then."""
        made: Result = {"date": date.today().isoformat(), "commit": describe_commit()}
        made |= {"join_ms": join_ms(), "load_average": os.getloadavg()[0]}
        gc.collect()  # what earlier runs left behind is not this one's
        with counting_cpu_seconds():
            result = _KINDS[cell.kind](cell, self.settings)
        return {**result, **made}

    def made_with(self, cell: Cell) -> Result:
        """Return what a result depends on, beside the code."""
        made_with = {"cell": asdict(cell), "settings": asdict(self.settings)}
        return {**made_with, "rules": rules_hash(self.settings.rules)}

    def short(self, result: Result) -> str:
        """Return the cost and why the search ended."""
        return f"{result['costs_us']['ilp']:.1f} µs, {result.get('stop_reason', 'extracted')}"


def _initial(cell: Cell, settings: Settings) -> Result:
    """Extract from the original graph, and say what the paper's greedy extractors take it to cost."""
    with closing(EGraph.create(MODELS[cell.model]())) as egraph:
        problem = extraction_problem(egraph, load_profile(cell.cost)).problem
        _, tree_us = settle_by_tree_cost(problem, problem.root)
        sharing = greedy_by_history(problem, lambda: False)
        # kept runs call it by the name of ours
        predicted_us = {"greedy": float(tree_us[problem.root]), "greedy-dag": sharing.predicted_us}
        return {"predicted_us": predicted_us, **_extracted(egraph, cell, settings)}


def _tensat(cell: Cell, settings: Settings) -> Result:
    """Saturate with k_multi rising until that fills the e-graph or adds nothing, as the paper does."""
    last: Result = {}
    rules = RULE_SETS[settings.rules]()
    for k_multi in range(1, MOST_K + 1):
        options = ExplorationOptions(multi_iterations=k_multi, node_limit=settings.node_limit)
        with closing(EGraph.create(MODELS[cell.model]())) as egraph:
            started = time.process_time()
            exploration = explore(egraph, rules, options)
            explored_s = time.process_time() - started
            if last and last["e_nodes"] == egraph.e_nodes:
                return last
            applied = egraph.database.execute(
                "SELECT r.name, count(*) FROM match_log AS m JOIN rule AS r ON r.id = m.rule\n"
                "WHERE m.matches > 0 GROUP BY r.name"
            )
            last = {
                "k_multi": k_multi,
                "e_nodes": egraph.e_nodes,
                "stop_reason": exploration.stop_reason,
                "planning_cpu_s": explored_s,
                "rules": dict(applied),
                **_extracted(egraph, cell, settings),
            }
        if last["stop_reason"] == "nodes":
            break
    return last


def _mcts(cell: Cell, settings: Settings) -> Result:
    """Search as the paper does.

    Its seconds are those of planning: the model and the rules have been read before (its source has
    whole seconds, and one of sleep for each decision among them). So are ours, from rules as they are
    read, not compiled, to the last decision.
    """
    profile, extraction = (
        load_profile(cell.cost),
        ExtractionOptions(time_limit_s=settings.extract_time_limit_s),
    )
    limits = ExplorationOptions(
        subgraph_nodes=settings.node_limit,
        universe_limit=settings.universe_limit,
        time_limit_s=settings.time_limit_s,
    )
    tree_options = TreeOptions(extractor=cell.main)
    rule_set = RULE_SETS[settings.rules]()
    planned_s = [0.0]
    with closing(EGraph.create(MODELS[cell.model]())) as egraph:
        started = time.process_time()
        extractor = AnytimeExtractor(egraph, profile, extraction, ProcessOptions(), Silent())
        observer = Observer(lambda _: planned_s.append(time.process_time() - started))
        search = SearchSettings(limits, extractor, observer, cell.seed, tree_options)
        exploration = explore_tree(egraph, rule_set, search)
        if exploration.stop_reason == "time":  # the last tree was planning, too
            planned_s.append(time.process_time() - started)
        universe = extractor.finish(exploration.iterations)
        subgraphs = {
            subgraph.kind: number for number, subgraph in enumerate(exploration.subgraphs, start=1)
        }
        with egraph.transaction():
            egraph.database.run("subgraphs/show", subgraph=subgraphs["decision"])
        rules: dict[str, int] = {}
        for decision in exploration.decisions:
            rules[decision.rule] = rules.get(decision.rule, 0) + 1
        return {
            "stop_reason": exploration.stop_reason,
            "planning_cpu_s": planned_s[-1],
            "rollouts": sum(decision.rollouts for decision in exploration.decisions),
            "statements": exploration.statements,
            "universe_us": universe.cost_us,
            "e_nodes": egraph.e_nodes,
            "decisions": [asdict(decision) for decision in exploration.decisions],
            "rules": rules,
            **_extracted(egraph, cell, settings),
        }


def _extracted(egraph: EGraph, cell: Cell, settings: Settings) -> Result:
    """Extract from what is shown of an e-graph by all final extractors."""
    profile = load_profile(cell.cost)
    egraph.catalogue.flush(egraph.database)
    problem = extraction_problem(egraph, profile).problem
    costs_us, seconds = {}, {}
    options = ExtractionOptions(time_limit_s=settings.extract_time_limit_s)
    for extractor in ("greedy", "ocf", "greedy-dag", "ilp"):
        started = time.process_time()
        extraction = extract(problem, replace(options, extractor=extractor))
        costs_us[extractor] = extraction.cost_us
        seconds[extractor] = time.process_time() - started
    before_us = AnytimeExtractor(egraph, profile, options, ProcessOptions(), Silent()).original_us
    return {"before_us": before_us, "costs_us": costs_us, "extract_cpu_s": seconds}


_KINDS: dict[str, Callable[[Cell, Settings], Result]] = {
    "initial": _initial,
    "tensat": _tensat,
    "mcts": _mcts,
}
