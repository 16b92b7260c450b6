"""What a graph costs: the interface of cost models, and the analytic roofline, the default."""

from relational_tensat.cost.graph import count_inference_ops, graph_cost_us, weight_only_values
from relational_tensat.cost.model import CostModel
from relational_tensat.cost.profile import Profile, profile_names
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.cost.roofline import kernel_time_us

__all__ = [
    "CostModel",
    "Profile",
    "count_inference_ops",
    "graph_cost_us",
    "kernel_time_us",
    "load_profile",
    "profile_names",
    "weight_only_values",
]
