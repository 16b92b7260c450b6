"""Exploration: equality saturation over the e-graph's tables.

The names below are imported when they are first used: reading options alone needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.base.lazy import names_on_first_use

if TYPE_CHECKING:
    from relational_tensat.explore.exploration_options import ExplorationOptions
    from relational_tensat.explore.outcome import Exploration, IterationReport, Observer, RuleStats
    from relational_tensat.explore.strategies.saturation import explore

__all__ = [
    "Exploration", "ExplorationOptions", "IterationReport", "Observer", "RuleStats", "explore",
]  # fmt: skip

__getattr__ = names_on_first_use(
    __name__,
    {
        "exploration_options": ("ExplorationOptions",),
        "outcome": ("Exploration", "IterationReport", "Observer", "RuleStats"),
        "strategies.saturation": ("explore",),
    },
)
