"""The tables: what searches find at equal CPU seconds, and at equal limits of e-nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from bench.common.table import Table, Value, columns
from bench.search.measure import BUDGETS_S, SEARCHES
from bench.search.search_run import SearchRun

#: Runs by what they are of.
Runs = Sequence[SearchRun]

#: Titles of the columns that say which run a row is of.
RUN_KEYS = ("model", "search", "k_multi", "node limit", "seed")

#: Titles of the columns of what is read back where a table is kept (``bench.search.kept``).
MOMENTS = (*RUN_KEYS, "CPU s", "cost µs", "e-nodes")
SUBGRAPHS = (
    *RUN_KEYS, "kind", "subgraph's limit", "cheapest µs", "e-nodes", "iteration", "ended by", "CPU s",
    "bound µs",
)  # fmt: skip
RUNS = (
    *RUN_KEYS, "CPU limit", "before µs", *(f"at {budget_s:g} s" for budget_s in BUDGETS_S), "after µs",
    "bound µs", "best at CPU s", "exploration CPU s", "CPU s", "wall s", "e-nodes", "subgraphs",
    "iterations", "ended by", "join ms", "run of", "date", "commit", "least load", "most load",
)  # fmt: skip

#: A search and its limit of e-nodes.
Way: TypeAlias = tuple[str, int]


def tables_of(runs: Runs) -> list[Table]:
    """Return the tables that there are runs for."""
    tables = [
        _seconds(runs),
        _best(runs),
        _limits(runs),
        _moments(runs),
        _subgraphs(runs),
        _all(runs),
    ]
    return [table for table in tables if table.rows]


def _seconds(runs: Runs) -> Table:
    """What the cheapest graph costs after so many CPU seconds."""
    ways = _ways_of(runs)
    rows: list[tuple[Value, ...]] = []
    for model in _models_of(runs):
        for budget_s in BUDGETS_S:
            cells = [_costs(_of(runs, model, way), budget_s) for way in ways]
            if any(cell is not None for cell in cells):
                rows.append((model, f"{budget_s:g}", *cells))
    note = (
        "Cost in µs of the cheapest graph; a range is of seeds, saturation's of k_multi (in parentheses the"
        " first with the least). Saturation and tree search are extracted from once that many CPU seconds"
        " are over, in time that is not counted; of the others it is what they had by then, their"
        " extractions counted. An iteration is not broken off. Limits of e-nodes: as in the next table."
    )
    header = columns("model", "CPU s", *(_name(way) for way in ways))
    return Table("seconds", "At equal CPU seconds", header, tuple(rows), note)


def _best(runs: Runs) -> Table:
    """Cost, bound and time to best in the end."""
    rows: list[tuple[Value, ...]] = []
    for model in _models_of(runs):
        for way in _ways_of(runs):
            own = _of(runs, model, way)
            if not own:
                continue
            best = min(own, key=lambda run: (round(run.cost_after_us, 6), run.k_multi, run.best_s))
            rows.append((
                model, best.search, best.node_limit or None,
                best.k_multi if best.search == "saturation" else None, len(own),
                best.cost_after_us, max(run.cost_after_us for run in own), best.bound_us or None,
                best.best_s, best.cpu_s, best.e_nodes, best.stop_reason,
            ))  # fmt: skip
    note = (
        "The best of all seeds (of saturation, of all k_multi), and the worst; the bound is of that run's"
        " e-graph: others may have cheaper graphs. CPU seconds until a graph as cheap was known, and of the"
        " whole run with its last extraction."
    )
    header = columns(
        "model", "search", "e-node limit", "k_multi", "runs", ("cost µs", 1), ("worst µs", 1),
        ("bound µs", 1), ("best at CPU s", 1), ("CPU s", 1), "e-nodes", "ended by",
    )  # fmt: skip
    return Table("best", "In the end", header, tuple(rows), note)


def _limits(runs: Runs) -> Table:
    """What the cheapest graph costs at so many e-nodes."""
    limits = sorted({run.node_limit for run in runs if run.node_limit})
    searches = [
        search for search in SEARCHES if any(r.search == search and r.node_limit for r in runs)
    ]
    rows: list[tuple[Value, ...]] = []
    for model in _models_of(runs):
        for limit in limits:
            cells = [_costs(_of(runs, model, (search, limit))) for search in searches]
            if any(cell is not None for cell in cells):
                rows.append((model, limit, *cells))
    note = (
        "Cost in µs of the cheapest graph in the end; ranges as above. The limit is of saturation's"
        " e-graph, of the widest subgraphs of focus, and of the subgraphs of tree search."
    )
    header = columns("model", "e-nodes", *searches)
    return Table("limits", "At equal limits of e-nodes", header, tuple(rows), note)


def _moments(runs: Runs) -> Table:
    rows = [
        (*_key(run), moment.cpu_s, moment.cost_us, moment.e_nodes)
        for run in runs
        for moment in run.moments
    ]
    note = "When the cheapest graph got cheaper."
    return Table(
        "moments", "Cost over CPU seconds", columns(*MOMENTS), tuple(rows), note, listed=False
    )


def _subgraphs(runs: Runs) -> Table:
    rows = [(*_key(run), *subgraph) for run in runs for subgraph in run.grown]
    note = "The subgraphs of focus in order: with the e-nodes of all then, and the last extraction's bound."
    return Table(
        "subgraphs", "Subgraphs of focus", columns(*SUBGRAPHS), tuple(rows), note, listed=False
    )


def _all(runs: Runs) -> Table:
    rows = [
        (
            *_key(run), run.cpu_limit_s, run.cost_before_us,
            *(run.cost_at_us(budget_s) for budget_s in BUDGETS_S), run.cost_after_us,
            run.bound_us or None, run.best_s, run.explore_cpu_s, run.cpu_s, run.wall_s, run.e_nodes,
            run.subgraphs, run.iterations, run.stop_reason, run.join_ms, run.same_as, *run.made,
        )
        for run in runs
    ]  # fmt: skip
    note = (
        "Each run, by which commit and how busy the machine was then; one that is another's, step by step,"
        " was made once (bench/search/common_steps). A load with two ends is of a table that had told it of"
        " all its runs together."
    )
    return Table("runs", "All runs", columns(*RUNS), tuple(rows), note, listed=False)


def _key(run: SearchRun) -> tuple[Value, ...]:
    return run.model, run.search, run.k_multi, run.node_limit, run.seed


def _ways_of(runs: Runs) -> list[Way]:
    """Return the searches with the limits at which their seconds are compared.

    Tree search's is the paper's, the smallest; focus has the smallest and the largest, others the largest.
    """
    ways: list[Way] = []
    for search in SEARCHES:
        limits = sorted({run.node_limit for run in runs if run.search == search})
        own = {"mcts": limits[:1], "focus": [*limits[:1], *limits[1:][-1:]]}
        ways += [(search, limit) for limit in own.get(search, limits[-1:])]
    return ways


def at_own_limit(runs: Runs) -> Runs:
    """Return the runs that the table of seconds has."""
    ways = _ways_of(runs)
    return [run for run in runs if (run.search, run.node_limit) in ways]


def _costs(runs: Runs, budget_s: float | None = None) -> Value:
    """Return what runs cost in the end, or at a budget: a number, or a range."""
    found = [
        (run, run.cost_after_us if budget_s is None else run.cost_at_us(budget_s)) for run in runs
    ]
    costs = [(run, cost_us) for run, cost_us in found if cost_us is not None]
    if not costs:
        return None
    best, least_us = min(costs, key=lambda pair: (round(pair[1], 6), pair[0].k_multi))
    most_us = max(cost_us for _, cost_us in costs)
    text = f"{least_us:,.1f}"
    if f"{most_us:,.1f}" != text:
        text += f" to {most_us:,.1f}"
    return f"{text} ({best.k_multi})" if best.search == "saturation" else text


def _of(runs: Runs, model: str, way: Way) -> Runs:
    return [run for run in runs if run.model == model and (run.search, run.node_limit) == way]


def _models_of(runs: Runs) -> list[str]:
    return list(dict.fromkeys(run.model for run in runs))


def _name(way: Way) -> str:
    search, limit = way
    return f"{search}, {limit:,}" if limit else search
