"""What a graph costs: analytic profiles, devices that are measured, recorded tables.

``open_source`` opens what ``--cost`` names; ``CostModel`` is the interface of one's own models.

The names below are imported when they are first used: whoever only reads options needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.base.lazy import names_on_first_use

if TYPE_CHECKING:
    from relational_tensat.cost.analytic import AnalyticSource, as_source
    from relational_tensat.cost.cost_model import CostModel
    from relational_tensat.cost.device import (
        Configuration,
        Device,
        DeviceKey,
        TimingSample,
        Unmeasurable,
    )
    from relational_tensat.cost.graph import costs_by_kind_us, graph_cost_us
    from relational_tensat.cost.opening import open_device, open_source, table_names
    from relational_tensat.cost.profile import Profile, profile_names
    from relational_tensat.cost.profile_file import load_profile
    from relational_tensat.cost.roofline import kernel_time_us
    from relational_tensat.cost.source import CostCounts, CostSource, ask_for_graph

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
        "cost_model": ("CostModel",),
        "device": (
            "Configuration",
            "Device",
            "DeviceKey",
            "TimingSample",
            "Unmeasurable",
        ),
        "graph": (
            "costs_by_kind_us",
            "graph_cost_us",
        ),
        "opening": (
            "open_device",
            "open_source",
            "table_names",
        ),
        "profile": (
            "Profile",
            "profile_names",
        ),
        "profile_file": ("load_profile",),
        "roofline": ("kernel_time_us",),
        "source": (
            "CostCounts",
            "CostSource",
            "ask_for_graph",
        ),
    },
)
