"""Which graph is returned: the extracted one, unless the original is as cheap."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.cost import CostModel, graph_cost_us
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.run.state import RunState
from relational_tensat.tensor import Graph
from relational_tensat.tensor.inference import count_inference_ops


def choose(state: RunState) -> RunState:
    """Choose between original and extracted graph, by their costs."""
    graph, note = _cheaper(state.original, state.extracted, state.cost)
    return replace(state, chosen=graph).noting(note)


def _cheaper(original: Graph, extracted: Graph, cost: CostModel) -> tuple[Graph, str]:
    """Return the extracted graph unless the original is as good, and a note about it."""
    original_us, extracted_us = graph_cost_us(original, cost), graph_cost_us(extracted, cost)
    if extracted_us < original_us * (1 - COST_TOLERANCE):
        return extracted, ""
    if extracted_us > original_us * (1 + COST_TOLERANCE):
        return original, (
            f"the extracted graph costs {extracted_us:.3f} µs, more than the original's {original_us:.3f}: "
            "the original is kept"
        )
    n_before = sum(count_inference_ops(original).values())
    if sum(count_inference_ops(extracted).values()) < n_before:
        return extracted, ""
    return original, "no cheaper graph was found: the original is kept"
