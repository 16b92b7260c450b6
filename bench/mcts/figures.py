"""The points of the paper's figures, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from bench.common.table import Table, Value, columns
from bench.mcts.cells import MAINS
from bench.mcts.results import COMBINATIONS, Results, outcome, rules_applied, runs_of


def figures_of(models: Sequence[str], costs: Sequence[str], results: Results) -> list[Table]:
    """Return the points of the figures that there are runs for."""
    makers = (averages, _usage, _rules, _course)
    tables = [make(models, cost, results) for cost in costs for make in makers]
    return [table for table in tables if table.rows]


def averages(models: Sequence[str], cost: str, results: Results) -> Table:
    """Return the points of figure 5 or 13: means over the models that all combinations were run on."""
    every = {c: [outcome(results, model, cost, c) for model in models] for c in COMBINATIONS}
    every = {c: outcomes for c, outcomes in every.items() if any(outcomes)}
    rows: list[tuple[Value, ...]] = []
    for combination, outcomes in every.items():
        shared = [
            found
            for found, *others in zip(outcomes, *every.values(), strict=True)
            if found is not None and all(others)
        ]
        if shared:
            percent = fmean(found.percent[0] for found in shared)
            planning_s = fmean(found.planning_s[0] for found in shared)
            rows.append((combination.label, percent, planning_s, len(shared)))
    header = columns("main / final", "saved %", ("CPU s", 1), "models")
    note = "The paper's figures 5 (A100) and 13 (P100): means over the models that all were run on."
    return Table(f"average-{cost}", f"Means over models, {cost}", header, tuple(rows), note)


def _usage(models: Sequence[str], cost: str, results: Results) -> Table:
    """How many rules each approach applies at all."""
    used: dict[str, Counter[str]] = {}
    n_models: Counter[str] = Counter()
    for label, _, rules in rules_applied(results, models, cost):
        used.setdefault(label, Counter()).update(rules)
        n_models[label] += 1
    rows = [(label, len(c), c.total(), n_models[label]) for label, c in used.items()]
    header = columns("approach", "rules used", "times applied", "models")
    note = (
        "One run a model. TENSAT: iterations in which a rule matched; tree search: decisions. The paper"
        " has 38 rules of 139 for TENSAT, 32 for tree search with ILP / ILP, 33 with Algorithm 2 / ILP."
    )
    return Table(f"usage-{cost}", f"Rules that are used, {cost}", header, tuple(rows), note)


def _rules(models: Sequence[str], cost: str, results: Results) -> Table:
    """Figures 7, 8 and 10: how often each rule is applied, by model."""
    rows = [
        (label, model, rule, count)
        for label, model, rules in rules_applied(results, models, cost)
        for rule, count in sorted(rules.items())
    ]
    header = columns("approach", "model", "rule", "times")
    note = "The paper's heat maps (figures 7, 8, 10): how often each rule was applied, one run a model."
    title = f"Rules by model, {cost}"
    return Table(f"rules-{cost}", title, header, tuple(rows), note, listed=False)


def _course(models: Sequence[str], cost: str, results: Results) -> Table:
    """Cost over decisions."""
    keys = ("decision", "rule", "cost_us", "best_us", "e_nodes", "universe")
    rows: list[tuple[Value, ...]] = []
    for model in models:
        for main in MAINS:
            for run in runs_of(results, model, cost, "mcts", main)[:1]:
                rows.append((model, main, 0, None, run["before_us"], run["before_us"], None, None))
                rows += [(model, main, *map(d.get, keys)) for d in run["decisions"]]
    header = columns(
        "model", "main", "decision", "rule", "real subgraph µs", "best rollout µs", "e-nodes", "universe"
    )  # fmt: skip
    note = (
        "After each decision: what the real subgraph costs by moves, and the cheapest one of any rollout"
        " (dashed); grey: TENSAT, by ILP; one run a model."
    )
    title = f"Cost over decisions, {cost}"
    return Table(f"decisions-{cost}", title, header, tuple(rows), note, listed=False)
