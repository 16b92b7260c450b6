"""Exploration: equality saturation over the e-graph's tables."""

from relational_tensat.explore.limits import MULTI_SCHEDULES, Limits
from relational_tensat.explore.outcome import Exploration, IterationReport, RuleStats
from relational_tensat.explore.runner import CYCLE_FILTERS, explore

__all__ = [
    "CYCLE_FILTERS",
    "MULTI_SCHEDULES",
    "Exploration",
    "IterationReport",
    "Limits",
    "RuleStats",
    "explore",
]
