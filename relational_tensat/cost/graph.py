"""What a whole graph costs."""

from __future__ import annotations

from relational_tensat.cost.configurations import graph_configurations
from relational_tensat.cost.cost_model import CostModel
from relational_tensat.cost.source import CostSource
from relational_tensat.tensor import Graph
from relational_tensat.tensor.inference import inference_nodes


def costs_by_kind_us(graph: Graph, source: CostSource) -> dict[str, float]:
    """Return what the kernels that a graph is run by cost, by operator, where that is anything."""
    configurations = list(graph_configurations(source.as_run(graph)))
    answers = source.ask(configurations)
    sums_us: dict[str, float] = {}
    for each in configurations:
        sums_us[each.op] = sums_us.get(each.op, 0.0) + answers[each].cost_us
    return {op: us for op, us in sums_us.items() if us}


def graph_cost_us(graph: Graph, cost_model: CostModel) -> float:
    """Return the sum of the kernels' microseconds, values that depend on weights only being free.

    Those are computed once, before inference, in every graph alike.
    """
    if isinstance(cost_model, CostSource):
        configurations = list(graph_configurations(cost_model.as_run(graph)))
        answers = cost_model.ask(configurations)
        return sum(answers[configuration].cost_us for configuration in configurations)
    total = 0.0
    for node, inputs, output in inference_nodes(graph):
        total += cost_model.cost_us(node.op, inputs, output, node.attrs)
    return total
