"""What the results of cells say, in the words and units of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from bench.common.cell_results import Result
from bench.common.table import Value
from bench.mcts.cells import MAINS, Cell

Results = Mapping[Cell, Result]


@dataclass(frozen=True, slots=True)
class Combination:
    """A row of the paper's tables 2 and 4.

    Attributes:
        approach: ``mcts`` or ``tensat``.
        main, final: the extractions, during the search and in the end; ``universe`` stands for an ILP over
            all subgraphs together, which the paper has not.
    """

    approach: str
    main: str
    final: str

    @property
    def label(self) -> str:
        """How plots call it."""
        return "TENSAT" if self.approach == "tensat" else f"{self.main} / {self.final}"


#: The paper's, then ours.
COMBINATIONS = (
    Combination("mcts", "greedy", "greedy"),
    Combination("mcts", "greedy", "ilp"),
    Combination("mcts", "ocf", "ocf"),
    Combination("mcts", "ocf", "ilp"),
    Combination("mcts", "greedy-dag", "greedy-dag"),
    Combination("mcts", "greedy-dag", "ilp"),
    Combination("mcts", "ilp", "ilp"),
    Combination("mcts", "moves", "ilp"),
    Combination("mcts", "moves", "universe"),
    Combination("tensat", "", "ilp"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The runs of a combination on a model: means and deviations.

    Attributes:
        percent: of the original cost that is saved, as the paper counts.
        cost_us: of the cheapest graph.
        planning_s: CPU seconds of search, without the final extraction.
        runs: how many seeds.
        late: how many of them the time limit ended.
    """

    percent: tuple[float, float]
    cost_us: tuple[float, float]
    planning_s: tuple[float, float]
    runs: int
    late: int


def outcome(results: Results, model: str, cost: str, combination: Combination) -> Outcome | None:
    """Return what a combination came to; None where nothing was run."""
    runs = runs_of(results, model, cost, combination.approach, combination.main)
    if not runs:
        return None
    costs_us = [cost_of(run, combination.final) for run in runs]
    return Outcome(
        _mean([100 * (1 - c / run["before_us"]) for c, run in zip(costs_us, runs, strict=True)]),
        _mean(costs_us),
        _mean([run["planning_cpu_s"] for run in runs]),
        len(runs),
        sum(run["stop_reason"] == "time" for run in runs),
    )


def approaches() -> list[tuple[str, str, str]]:
    """Return label, approach and main extraction of what rules and costs are shown of."""
    return [("TENSAT", "tensat", ""), *((main, "mcts", main) for main in MAINS)]


def rules_applied(
    results: Results, models: Sequence[str], cost: str
) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Yield approach, model and how often each rule was applied, in one run each."""
    for label, approach, main in approaches():
        for model in models:
            for run in runs_of(results, model, cost, approach, main)[:1]:
                yield label, model, run["rules"]


def runs_of(
    results: Results, model: str, cost: str, approach: str, main: str = ""
) -> Sequence[Result]:
    """Return the runs that there are, by seed."""
    return [
        result
        for cell, result in results.items()
        if (cell.model, cell.cost, cell.kind, cell.main) == (model, cost, approach, main)
        and "error" not in result
    ]


def cost_of(run: Result, final: str) -> float:
    """Return what a final extraction found, in µs; of no solution, the original cost."""
    if final == "universe":
        return float(run["universe_us"])
    return float(run["costs_us"][final])


def with_deviation(mean: tuple[float, float], digits: int = 2) -> Value:
    """Return a mean and its deviation."""
    return f"{mean[0]:,.{digits}f} ± {mean[1]:,.{digits}f}"


def _mean(values: Sequence[float]) -> tuple[float, float]:
    return fmean(values), pstdev(values)
