"""Whether the chosen graph computes what the original computes; where not, another or the original is
returned."""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.base.errors import (
    CrossingError,
    LossError,
    PrecisionError,
    VerificationError,
)
from relational_tensat.run.result import Rejection
from relational_tensat.run.stages.race import race_again
from relational_tensat.run.stages.result_check import check_result, gain_so_far, weigh
from relational_tensat.run.state import RunState
from relational_tensat.verify.inputs import RandomWeights, own_weights
from relational_tensat.verify.sensitivity import crossing_draws, crossings
from relational_tensat.verify.verification import UNCHANGED, Verification


def verify(state: RunState) -> RunState:
    """Fold the chosen graph, and compare what it computes with the original.

    A graph that computes something else, or of which nothing could be compared, is not returned: the
    search continues without what made it wrong, and ends at the original. Where graphs have raced and the
    winner is not returned, others race; if that one is not returned either, the one that is, alone.

    Raises:
        VerificationError: it computes something else, and the options are strict.
    """
    state = _verified(state)
    for has_others in (True, False):
        if _is_untimed(state):
            state = _verified(race_again(_without_race_of_others(state), has_others=has_others))
    state = _without_race_of_others(state)
    state.egraph.database.run("run/set_estimated_costs", text=state.cost.counts.estimates)
    state.egraph.database.run("run/set_gain", text=gain_so_far(state).text)
    state.resources.close()
    return state


def _verified(state: RunState) -> RunState:
    """Return the state with a graph that was compared, or the original."""
    while not state.copies_file:
        state, has_all_sizes = at_all_sizes(state)
        if not has_all_sizes:
            continue
        try:
            checked_state = compare(state)
        except VerificationError as error:
            is_loss = isinstance(error, LossError)
            if state.is_unchanged or (state.options.verification.strict and not is_loss):
                raise
            from relational_tensat.run.stages.second_search import search_again  # seldom needed

            state = _record(search_again(state, error))
            continue
        objection = _objection(checked_state.verification)
        if not objection or state.is_unchanged:
            state, has_all_sizes = compared_at_all_sizes(checked_state)
            if not has_all_sizes:
                continue
            state, is_kept = weigh(state)
            if is_kept:
                return state.noting(_kernels(checked_state.verification))
            continue
        reason = f"{objection}: the original is kept"
        state = replace(
            state, chosen=state.original, rejections=(*state.rejections, Rejection(reason))
        )
        state = _record(state.noting(reason))
    unchanged = replace(state, folded=state.graph, verification=UNCHANGED, change=None)
    return replace(unchanged, candidate=None)


def at_all_sizes(state: RunState) -> tuple[RunState, bool]:
    """Carry the steps to the chosen graph out at all sizes of dynamic dimensions, if there are any.

    Returns:
        The state, with another chosen graph where they do not hold, and whether they do.
    """
    if state.dynamic is None:
        return state, True
    from relational_tensat.run.stages.second_search import sized_or_other  # few models need it

    state, has_all_sizes = sized_or_other(state)
    return (state if has_all_sizes else _record(state)), has_all_sizes


def compared_at_all_sizes(state: RunState) -> tuple[RunState, bool]:
    """Compare the chosen graph at other sizes of dynamic dimensions, too, if there are any.

    Returns:
        The state, with the original chosen where it computes something else, and whether it does not.

    Raises:
        VerificationError: it computes something else, and the options are strict.
    """
    if state.dynamic is None:
        return state, True
    from relational_tensat.run.stages.second_search import (
        compared_or_original,  # few models need it
    )

    state, is_same = compared_or_original(state)
    return (state if is_same else _record(state)), is_same


def compare(state: RunState) -> RunState:
    """Fold the chosen graph, and compare what it computes with the original.

    Raises:
        VerificationError: it computes something else.
        CrossingError: outputs of integers would be made of other floats.
        PrecisionError: onnxruntime rounds it more than the original.
        LossError: it runs on integers less than the original, and is not known to be faster whole.
    """
    with state.phases.phase("verify"):
        cautions = _crossed(state)
        state = state.with_candidate()
        folded, verification = check_result(
            state.original,
            state.chosen,
            state.inputs,
            state.options,
            source=state.compared_file,
            target=state.target,
            candidate=state.candidate,
        )
    quantized = verification.quantized
    if quantized is not None and quantized.gain and not state.is_unchanged:
        raise PrecisionError(quantized.gain)
    if quantized is not None and quantized.loss and not (state.is_unchanged or _is_faster(state)):
        raise LossError(quantized.loss)
    if verification.failure():
        raise VerificationError(verification.failure())
    if state.is_unchanged and not verification.runs:  # not even folded, as nothing was compared
        folded, state = state.original, replace(state, candidate=None)
    warnings = (*verification.warnings, *cautions)
    return replace(state, folded=folded, verification=replace(verification, warnings=warnings))


def _crossed(state: RunState) -> tuple[str, ...]:
    """Return at which discontinuities the chosen graph has other floats than the original.

    Raises:
        CrossingError: outputs of integers depend on one of these.
    """
    if state.is_unchanged:
        return ()
    seed, original = state.options.process.seed, state.original
    draws = crossing_draws(original, seed, state.inputs)
    weights = own_weights(original, RandomWeights(original, seed, 0))
    found = crossings(original, state.chosen, draws, weights)
    if found.to_integers:
        raise CrossingError(
            f"outputs of integers would depend on floats that are rounded otherwise before "
            f"{', '.join(found.to_integers)}"
        )
    if not found.to_floats:
        return ()
    places = ", ".join(found.to_floats)
    return (f"floats are rounded otherwise before {places}: those on a step may come out one off",)


def _objection(verification: Verification) -> str:
    """Return why a graph that is right is not returned, "" where it is."""
    if not verification.runs:
        return f"nothing could be compared: {'; '.join(verification.warnings)}"
    return verification.quantized.growth if verification.quantized is not None else ""


def _is_faster(state: RunState) -> bool:
    """Whether the chosen graph was timed whole and is faster beyond the noise: kernels are counted only
    where that is not known."""
    return state.race is not None and state.race.final.is_faster and state.chosen is state.raced


def _kernels(verification: Verification) -> str:
    """Return which kernels the returned graph has: fewer on integers only where it was timed."""
    quantized = verification.quantized
    if quantized is None or not quantized.loss:
        return "" if quantized is None else quantized.kernels
    return f"{quantized.loss}; measured whole, it is faster"


def _without_race_of_others(state: RunState) -> RunState:
    """Take out a race that a graph has won which is not returned: it says nothing of the one that is."""
    race = state.race
    if race is None or not _has_other_than_raced(state):
        return state
    note = f"raced whole, {race.outcome}: that graph is not returned"
    return replace(state, race=None).noting(note)


def _has_other_than_raced(state: RunState) -> bool:
    """Whether graphs have raced, and one has won that is not the chosen one."""
    race = state.race
    return race is not None and not race.keeps_original and state.chosen is not state.raced


def _is_untimed(state: RunState) -> bool:
    """Whether the chosen graph did not win the race that there was, and is not the original's file."""
    return _has_other_than_raced(state) and not state.is_unchanged


def keep_original(state: RunState, reason: str) -> RunState:
    """Return the original after all, and record why, also in the database, which is closed."""
    state = _verified(replace(state, chosen=state.original)).noting(reason)
    return remember_gain(state, reason)


def remember_gain(state: RunState, kept_original: str = "") -> RunState:
    """Write what was gained into a database that was closed, and why the original is kept if it is."""
    from relational_tensat.run.resume.record import remember_outcome  # few runs need it

    path, text = state.options.output.db, gain_so_far(state).text
    remember_outcome(state.egraph.database if path is None else path, text, kept_original)
    return state


def _record(state: RunState) -> RunState:
    """Write into the database why the original is returned although another graph is cheaper, if it is."""
    if state.is_unchanged and state.rejections:
        state.egraph.database.run("run/set_kept_original", why=state.rejections[-1].why)
    return state
