"""The chosen graph at all sizes of a model's dynamic dimensions."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.base.errors import VerificationError
from relational_tensat.formats.dynamic.sized_model import text_of
from relational_tensat.run.dynamic import NotDynamicError, compare_at_all_sizes, result_at_all_sizes
from relational_tensat.run.stages.searching_again import search_dynamic
from relational_tensat.run.state import RunState


def sized_or_other(state: RunState) -> tuple[RunState, bool]:
    """Carry the chosen graph's steps out at all sizes; where they do not hold, choose another graph.

    Returns:
        The state, and whether its chosen graph holds at all sizes.
    """
    try:
        with state.phases.phase("verify"):
            sized = result_at_all_sizes(state)
    except NotDynamicError as error:
        return search_dynamic(state, error), False
    chosen = sized.graphs[0]
    raced = chosen if state.chosen is state.raced else state.raced
    return replace(state, sized=sized, chosen=chosen, raced=raced), True


def compared_or_original(state: RunState) -> tuple[RunState, bool]:
    """Compare what is written at several sizes; choose the original where it computes something else.

    Returns:
        The state, and whether all was equal.

    Raises:
        VerificationError: it was not, and the options are strict.
    """
    try:
        with state.phases.phase("verify"):
            outcome = compare_at_all_sizes(state)
        if outcome.failure():
            raise VerificationError(outcome.failure())
    except VerificationError as error:
        if state.options.verification.strict:
            raise
        return search_dynamic(state, NotDynamicError(str(error))), False
    return replace(state, verification=state.verification.joined(outcome)), True


def sizes_note(state: RunState) -> str:
    """Return what the report says of a file with dynamic dimensions."""
    assert state.dynamic is not None
    others = "; ".join(dict.fromkeys(text_of(there.sizes) for there in state.dynamic.others))
    return (
        f"dynamic dimensions stay dynamic: optimized at {text_of(state.dynamic.base.sizes)}, each step "
        f"checked again at {others}"
    )
