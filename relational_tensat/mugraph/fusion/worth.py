"""What parts of a model cost by operators, and what kernels for them cost at least."""

from __future__ import annotations

from relational_tensat.cost import CostSource
from relational_tensat.cost.analytic import AnalyticSource
from relational_tensat.cost.profile import Profile
from relational_tensat.mugraph.fusion.candidates import Candidate
from relational_tensat.mugraph.sizing.libraries import least_us
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors


def profile_of(costs: CostSource) -> Profile | None:
    """Return the profile of a GPU that costs are from; None for others."""
    model = costs.model if isinstance(costs, AnalyticSource) else None
    return model if isinstance(model, Profile) and model.multiprocessors else None


class Worth:
    """What kernels for parts of a model may save.

    Attributes:
        profile: of the GPU that costs are from; None for other costs.
        is_measured: whether costs are measured on this processor, and kernels are, too, as C.
    """

    def __init__(self, costs: CostSource) -> None:
        self.profile = profile_of(costs)
        self.is_measured = costs.device is not None
        self._costs = costs

    def device(self, candidate: Candidate) -> Multiprocessors | None:
        """Return what a candidate's kernel would run on; None where costs are no profile of a GPU."""
        return None if self.profile is None else Multiprocessors(self.profile, candidate.dtype)

    def operators_us(self, candidate: Candidate) -> float:
        """Return what a candidate's operators cost."""
        types = candidate.graph.types
        return sum(
            self._costs.cost_us(
                node.op,
                tuple(types[name] for name in node.inputs),
                types[node.outputs[0]],
                node.attrs,
            )
            for node in candidate.nodes
        )

    def least_us(self, candidate: Candidate, kernels: int = 1) -> float:
        """Return what no μGraph of so many kernels for a candidate can be modelled to take less than."""
        device = self.device(candidate)
        if device is None:
            return 0.0
        return least_us(candidate.program, device) + (kernels - 1) * device.profile.launch_us
