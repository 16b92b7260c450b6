"""Prices of a graph's parts, all found in one e-graph: one for each part took seconds of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relational_tensat.cost import CostSource
from relational_tensat.cost.key import graph_configurations
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.uses import inference_nodes


def prices_us(parts: Sequence[Graph], costs: CostSource) -> list[float]:
    """Return the microseconds of each graph, as ``graph_cost_us`` would of that graph alone.

    Parts share no value where they stand beside each other, so the cheapest way to run them all is the
    cheapest way of each.

    Raises:
        RelationalTensatError: a kernel has no cost.

    Example:
        >>> from relational_tensat.cost.analytic import AnalyticSource
        >>> from relational_tensat.cost.profile_file import load_profile
        >>> kind = TensorType("float32", (16, 24))
        >>> one = build_graph("model", {"x": kind}, {}, [Node("tanh", ("x",), ("y",))], ["y"])
        >>> first_us, second_us = prices_us([one, one], AnalyticSource(load_profile("t4")))
        >>> first_us == second_us > 0
        True
    """
    as_run = costs.as_run(_beside(parts))
    nodes = [node for node, _, _ in inference_nodes(as_run)]
    configurations = list(graph_configurations(as_run))
    answers = costs.ask(configurations)
    made_by = {
        name: (node, answers[configuration].cost_us)
        for node, configuration in zip(nodes, configurations, strict=True)
        for name in node.outputs
    }
    prices, returned = [], iter(as_run.outputs)
    for part in parts:
        own_us: dict[str, float] = {}
        read = [next(returned) for _ in part.outputs]
        while read:
            if (name := read.pop()) not in made_by:
                continue
            node, cost_us = made_by[name]
            if node.outputs[0] not in own_us:
                own_us[node.outputs[0]] = cost_us
                read += node.inputs
        prices.append(sum(own_us.values()))
    return prices


def _beside(parts: Sequence[Graph]) -> Graph:
    """Return one graph of all, each with names of its own."""
    inputs: dict[str, TensorType] = {}
    weights: dict[str, Weight] = {}
    nodes: list[Node] = []
    outputs: list[str] = []
    for number, part in enumerate(parts):

        def own(names: Sequence[str], number: int = number) -> tuple[str, ...]:
            return tuple(f"{number} {name}" for name in names)

        inputs |= dict(zip(own([*part.inputs]), part.inputs.values(), strict=True))
        weights |= dict(zip(own([*part.weights]), part.weights.values(), strict=True))
        nodes += [replace(n, inputs=own(n.inputs), outputs=own(n.outputs)) for n in part.nodes]
        outputs += own(part.outputs)
    return build_graph("parts", inputs, weights, nodes, outputs)
