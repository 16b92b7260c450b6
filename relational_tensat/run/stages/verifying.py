"""Whether the chosen graph computes what the original computes; where not, the original is returned."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.base.errors import VerificationError
from relational_tensat.run.checking import check_result
from relational_tensat.run.result import Rejection
from relational_tensat.run.state import RunState
from relational_tensat.verify.verification import UNCHANGED


def verify(state: RunState) -> RunState:
    """Fold the chosen graph, and compare what it computes with the original.

    A graph that computes something else, or of which nothing could be compared, is not returned.

    Raises:
        VerificationError: it computes something else, and the options are strict.
    """
    if state.copies_file:
        return replace(state, folded=state.graph, verification=UNCHANGED)
    try:
        compared = compare(state)
    except VerificationError as error:
        if state.options.verification.strict or state.is_unchanged:
            raise
        return _reject(state, str(error))
    if compared.verification.runs:
        return compared
    if state.is_unchanged:  # in another format; not even folded, as nothing was compared
        return replace(compared, folded=state.original)
    reasons = "; ".join(compared.verification.warnings)
    return _reject(state, f"nothing could be compared: {reasons}")


def compare(state: RunState) -> RunState:
    """Fold the chosen graph, and compare what it computes with the original.

    Raises:
        VerificationError: it computes something else.
    """
    with state.phases.phase("verify"):
        folded, verification = check_result(
            state.original,
            state.chosen,
            state.inputs,
            state.options,
            source=state.file,
            target=state.target,
        )
    if verification.failure():
        raise VerificationError(verification.failure())
    return replace(state, folded=folded, verification=verification)


def keep_original(state: RunState, why: str) -> RunState:
    """Return the original, and say why, also in the database."""
    state = verify(replace(state, chosen=state.original)).noting(why)
    if state.options.output.db is not None:
        from relational_tensat.run.resume.record import remember_kept_original  # few runs need it

        remember_kept_original(state.options.output.db, why)
    return state


def _reject(state: RunState, why: str) -> RunState:
    """Return the original instead of a graph that is wrong, or not known to be right."""
    rejection = Rejection(f"{why}: the original is kept")
    state = replace(state, rejections=(*state.rejections, rejection))
    return keep_original(state, rejection.why)
