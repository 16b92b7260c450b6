"""Costs of graphs: analytic profiles, devices that are measured, recorded tables.

``open_source`` opens what ``--cost`` names; ``CostModel`` is the interface of one's own models.

The names below are imported when they are first used: reading options alone needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.base.lazy import names_on_first_use

if TYPE_CHECKING:
    from relational_tensat.cost.analytic import AnalyticSource, as_source
    from relational_tensat.cost.device import (
        Configuration,
        Device,
        DeviceKey,
        TimingSample,
        Unmeasurable,
    )
    from relational_tensat.cost.opener import open_device, open_source, table_names
    from relational_tensat.cost.profile import Profile, kernel_time_us, profile_names
    from relational_tensat.cost.profile_file import load_profile
    from relational_tensat.cost.source import (
        CostCounts,
        CostModel,
        CostSource,
        ask_for_graph,
        costs_by_kind_us,
        graph_cost_us,
    )

__all__ = [
    "AnalyticSource",
    "Configuration",
    "CostCounts",
    "CostModel",
    "CostSource",
    "Device",
    "DeviceKey",
    "Profile",
    "TimingSample",
    "Unmeasurable",
    "as_source",
    "ask_for_graph",
    "costs_by_kind_us",
    "graph_cost_us",
    "kernel_time_us",
    "load_profile",
    "open_device",
    "open_source",
    "profile_names",
    "table_names",
]

__getattr__ = names_on_first_use(
    __name__,
    {
        "analytic": (
            "AnalyticSource",
            "as_source",
        ),
        "device": (
            "Configuration",
            "Device",
            "DeviceKey",
            "TimingSample",
            "Unmeasurable",
        ),
        "opener": (
            "open_device",
            "open_source",
            "table_names",
        ),
        "profile": (
            "Profile",
            "kernel_time_us",
            "profile_names",
        ),
        "profile_file": ("load_profile",),
        "source": (
            "CostCounts",
            "CostModel",
            "CostSource",
            "ask_for_graph",
            "costs_by_kind_us",
            "graph_cost_us",
        ),
    },
)
