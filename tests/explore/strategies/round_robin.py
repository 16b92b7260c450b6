"""An example of a strategy: one file, and nothing of the program but subgraphs and steps."""

from __future__ import annotations

import time
from collections.abc import Sequence

from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration
from relational_tensat.explore.outcome import Journal
from relational_tensat.explore.step import StepBudget, step
from relational_tensat.explore.strategies.strategy import SearchSettings
from relational_tensat.explore.subgraph import begin_subgraph, end_exploration
from relational_tensat.rules.model import Rule


def round_robin(egraph: EGraph, rules: Sequence[Rule], search: SearchSettings) -> Exploration:
    """Apply one rule after the other, each alone, until none adds anything."""
    started_s, limits = time.perf_counter(), search.options
    subgraph = begin_subgraph(egraph, rules, limits)
    ids, budget = sorted(subgraph.rules.all_rules), StepBudget(limits.node_limit)
    idle = steps = 0
    while idle < len(ids) and steps < limits.iterations * len(ids):
        delta = step(subgraph, [ids[steps % len(ids)]], budget)
        idle = idle + 1 if delta.is_empty and delta.is_complete else 0
        steps += 1
    reason = "saturated" if idle == len(ids) else "iterations"
    return end_exploration(subgraph, Journal(), reason, steps, started_s)
