"""What parts of a model cost by operators, and what kernels for them cost at least."""

from __future__ import annotations

from relational_tensat.cost import CostSource
from relational_tensat.cost.analytic import AnalyticSource
from relational_tensat.cost.measured import MeasuredSource
from relational_tensat.cost.profile import Profile
from relational_tensat.mugraph.fusion.candidates import Candidate
from relational_tensat.mugraph.fusion.thread_times import compiled_as, content_of, measured
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.sizing.least import least_us
from relational_tensat.mugraph.sizing.modelled import graph_us
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors
from relational_tensat.tensor import Graph, Node


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
        self.is_measured = isinstance(costs, MeasuredSource)
        self._costs = costs

    def device(self, candidate: Candidate) -> Multiprocessors | None:
        """Return what a candidate's kernel would run on; None where costs are no profile of a GPU."""
        return None if self.profile is None else Multiprocessors(self.profile, candidate.dtype)

    def operators_us(self, candidate: Candidate) -> float:
        """Return what a candidate's operators cost."""
        return sum(self.operator_us(node, candidate.graph) for node in candidate.nodes)

    def operator_us(self, node: Node, graph: Graph) -> float:
        """Return what an operator of a graph costs."""
        types = graph.types
        inputs = tuple(types[name] for name in node.inputs)
        return self._costs.cost_us(node.op, inputs, types[node.outputs[0]], node.attrs)

    def kernel_us(self, candidate: Candidate, graph: MuGraph) -> float | None:
        """Return what a candidate's kernel takes: modelled; or measured as C, or as the cost cache has it;
        None where neither can be.

        Raises:
            RelationalTensatError: see ``thread_times.measured``.
        """
        device = self.device(candidate)
        if device is not None:
            return graph_us(graph, device)
        if not isinstance(self._costs, MeasuredSource):
            return None
        code = content_of(candidate, graph)
        return self._costs.compiled_us(code, compiled_as(), lambda: measured(candidate, graph))

    def least_us(self, candidate: Candidate, kernels: int = 1) -> float:
        """Return what no μGraph of so many kernels for a candidate can be modelled to take less than."""
        device = self.device(candidate)
        if device is None:
            return 0.0
        return least_us(candidate.program, device) + (kernels - 1) * device.profile.launch_us
