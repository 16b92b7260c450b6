"""How each kind of cell is run; what comes out is plain JSON."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace

from bench.common.cell_results import Result
from bench.common.rule_sets import RULE_SETS, rules_hash
from bench.common.stopwatch import stopwatch
from bench.extract.methods import run_method
from bench.models import TENSAT_MODELS
from bench.paper.cells import BUDGETS, Cell
from bench.taso.search import backtrack
from relational_tensat.cost import Profile, graph_cost_us, load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, Observer, explore
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.extract.problem import ExtractionProblem
from relational_tensat.extract.tables import extraction_problem
from relational_tensat.rules.model import Rule
from relational_tensat.run.options import Options
from relational_tensat.run.progress import Silent
from relational_tensat.tensor import Graph

#: The extractors of table 4; the last is exact.
EXTRACTORS = ("greedy", "greedy-dag", "ours")
#: The integer programs of table 5, by cycle filter: without one the e-graph is cyclic.
PROGRAMS = {"efficient": ("paper-none", "ours"), "none": ("paper-real", "paper-int", "ours")}


@dataclass(frozen=True, slots=True)
class Settings:
    """What all cells share; with other values a kept result does not count.

    Attributes:
        time_limit_s: of each exploration and each extraction in wall seconds, of each sequential search
            in CPU seconds.
        cost: name of a cost profile.
        iterations, node_limit: the paper's.
    """

    time_limit_s: float = 60.0
    cost: str = "tensat_t4"
    iterations: int = 15
    node_limit: int = 50_000


@dataclass(frozen=True, slots=True)
class PaperRuns:
    """Runs the cells."""

    settings: Settings

    def run(self, cell: Cell) -> Result:
        """Run a cell."""
        return run_cell(cell, self.settings)

    def made_with(self, cell: Cell) -> Result:
        """Return what a result depends on, beside the code."""
        made_with = {"cell": asdict(cell), "settings": asdict(self.settings)}
        return {**made_with, "rules": rules_hash(_rule_set(cell))}

    def short(self, result: Result) -> str:
        """Return why exploration ended, and what extraction found."""
        parts = [str(result.get("stop_reason", ""))]
        parts += [
            f"{name} {answer['status']}" for name, answer in result.get("answers", {}).items()
        ]
        return ", ".join(parts)


def run_cell(cell: Cell, settings: Settings) -> Result:
    """Run a cell with one thread; what met the time limit says so in ``stop_reason`` or ``status``."""
    gc.collect()  # what earlier runs left behind is not this one's
    graph = TENSAT_MODELS[cell.model]()
    profile = load_profile(settings.cost)
    result = _KINDS[cell.kind](cell, graph, profile, settings)
    return {"cost_before_us": graph_cost_us(graph, profile), **result}


def rules_of(cell: Cell) -> Sequence[Rule]:
    """Return the rules of a cell: TASO's as they are, or those that ship."""
    return RULE_SETS[_rule_set(cell)]()


def _rule_set(cell: Cell) -> str:
    return "shipped" if cell.variant == "shipped" else "taso"


def _saturate(cell: Cell, graph: Graph, profile: Profile, settings: Settings) -> Result:
    with _explored(cell, graph, settings) as (egraph, result):
        problem = extraction_problem(egraph, profile).problem
        return {**result, "answers": _answers(problem, EXTRACTORS, settings)}


def _solve(cell: Cell, graph: Graph, profile: Profile, settings: Settings) -> Result:
    with _explored(cell, graph, settings, cell.variant) as (egraph, result):
        problem = extraction_problem(egraph, profile).problem
        return {**result, "answers": _answers(problem, PROGRAMS[cell.variant], settings)}


def _explore(cell: Cell, graph: Graph, profile: Profile, settings: Settings) -> Result:
    with _explored(cell, graph, settings, cell.variant) as (_, result):
        return result


def _anytime(cell: Cell, graph: Graph, profile: Profile, settings: Settings) -> Result:
    """Extract after every iteration, and note when each cheaper graph comes."""
    options = Options.of(
        extract_every=1,
        cost=settings.cost,
        time_limit_s=settings.time_limit_s,
        extract_time_limit_s=settings.time_limit_s,
    )
    watch = _Watch()
    with closing(EGraph.create(graph)) as egraph:
        extractor = AnytimeExtractor(egraph, profile, options.extraction, options.process, watch)
        exploration = explore(
            egraph,
            rules_of(cell),
            _limits(cell, settings),
            observer=Observer(after=extractor.after),
        )
        extraction = extractor.finish(exploration.iterations)
        moments = [
            *watch.moments,
            {"cpu_s": watch.elapsed_s(), "best_us": extractor.log[-1].best_us},
        ]
        return {**_sizes(egraph, exploration), "moments": moments, "gap": extraction.gap}


def _sequential(cell: Cell, graph: Graph, profile: Profile, settings: Settings) -> Result:
    alpha = float(cell.variant.removeprefix("alpha"))
    outcome = backtrack(
        graph,
        rules_of(cell),
        profile,
        alpha=alpha,
        budget=max(BUDGETS),
        time_limit_s=settings.time_limit_s,
        moments_at=BUDGETS,
    )
    shorter = {}
    for budget in BUDGETS:
        reached = outcome.after(budget)
        shorter[str(budget)] = None if reached is None else {
            **asdict(reached), "found": asdict(outcome.found_at(budget))
        }  # fmt: skip
    return {
        "alpha": alpha,
        "stop_reason": outcome.stop_reason,
        "queued": outcome.queued,
        "budgets": shorter,
        "moments": [asdict(moment) for moment in outcome.moments],
        "recomputed_us": graph_cost_us(outcome.graph, profile),
    }


_KINDS: dict[str, Callable[[Cell, Graph, Profile, Settings], Result]] = {
    "saturate": _saturate,
    "solve": _solve,
    "explore": _explore,
    "anytime": _anytime,
    "sequential": _sequential,
}


@contextmanager
def _explored(
    cell: Cell, graph: Graph, settings: Settings, cycle_filter: str = "efficient"
) -> Iterator[tuple[EGraph, Result]]:
    with stopwatch() as watch:
        egraph = EGraph.create(graph)
        limits = replace(_limits(cell, settings), cycle_filter=cycle_filter)
        exploration = explore(egraph, rules_of(cell), limits)
    try:
        seconds = {"explore_cpu_s": watch.cpu_s, "explore_wall_s": watch.wall_s}
        yield egraph, {**_sizes(egraph, exploration), **seconds}
    finally:
        egraph.close()


def _sizes(egraph: EGraph, exploration: Exploration) -> Result:
    e_nodes, e_classes = egraph.counts()
    return {
        "e_nodes": e_nodes,
        "e_classes": e_classes,
        "iterations": exploration.iterations,
        "stop_reason": exploration.stop_reason,
    }


def _answers(
    problem: ExtractionProblem, methods: Sequence[str], settings: Settings
) -> dict[str, Result]:
    answers = {}
    for method in methods:
        answer = run_method(problem, method, settings.time_limit_s)
        answers[method] = {
            "status": answer.status,
            "cost_us": answer.cost,
            "gap": answer.gap,
            "cpu_s": answer.cpu_s,
            "wall_s": answer.wall_s,
        }
    return answers


def _limits(cell: Cell, settings: Settings) -> ExplorationOptions:
    return ExplorationOptions(
        iterations=settings.iterations,
        multi_iterations=cell.k_multi,
        multi_schedule="first",  # TENSAT's
        node_limit=settings.node_limit,
        time_limit_s=settings.time_limit_s,
    )


class _Watch(Silent):
    """Remembers when each cheaper graph came, in CPU seconds since it was made."""

    def __init__(self) -> None:
        self._began_s = time.process_time()
        self.moments: list[Result] = []

    def elapsed_s(self) -> float:
        """Return the CPU seconds since then."""
        return time.process_time() - self._began_s

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """Remember a graph, if it is a cheaper one."""
        if not self.moments or incumbent_us < self.moments[-1]["best_us"]:
            self.moments.append({"cpu_s": self.elapsed_s(), "best_us": incumbent_us})
