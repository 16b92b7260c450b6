"""Which graph is returned: the extracted one, unless the original is as cheap."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.cost import CostModel, graph_cost_us
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.run.state import RunState
from relational_tensat.tensor import Graph
from relational_tensat.tensor.inference import count_inference_ops

#: How notes end that the original is returned.
_KEPT = ": the original is kept"


def choose(state: RunState) -> RunState:
    """Choose between original and extracted graph, by their costs, unless only one may be returned."""
    if state.returns_original:
        return replace(state, chosen=state.original)
    graph, note = _cheaper(state.original, state.extracted, state.cost)
    return replace(state, chosen=graph).noting(note)


def choose_other(state: RunState, graph: Graph) -> RunState:
    """Choose a graph that is faster than the original, whatever notes say by the sums."""
    notes = tuple(note for note in state.notes if not note.endswith(_KEPT))
    return replace(state, chosen=graph, notes=notes)


def _cheaper(original: Graph, extracted: Graph, cost: CostModel) -> tuple[Graph, str]:
    """Return the extracted graph unless the original is as good, and a note about it."""
    original_us, extracted_us = graph_cost_us(original, cost), graph_cost_us(extracted, cost)
    if extracted_us < original_us * (1 - COST_TOLERANCE):
        return extracted, ""
    if extracted_us > original_us * (1 + COST_TOLERANCE):
        return original, (
            f"the extracted graph costs {extracted_us:.3f} µs, more than the original's "
            f"{original_us:.3f}{_KEPT}"
        )
    n_before = sum(count_inference_ops(original).values())
    if sum(count_inference_ops(extracted).values()) < n_before:
        return extracted, ""
    return original, f"no cheaper graph was found{_KEPT}"
