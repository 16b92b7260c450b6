"""The search continues without what made a graph wrong, at one size or at all of them.

With dynamic dimensions, the chosen graph is compared at all sizes of these.
"""

from __future__ import annotations

from dataclasses import replace

from relational_tensat.base.errors import (
    CrossingError,
    InputError,
    LossError,
    NoSolutionError,
    PrecisionError,
    VerificationError,
)
from relational_tensat.explain.fault import Fault, find_fault
from relational_tensat.formats.dynamic.sized_model import text_of
from relational_tensat.rules.targets.as_written import as_written
from relational_tensat.run.dynamic import NotDynamicError, compare_at_all_sizes, result_at_all_sizes
from relational_tensat.run.result import Rejection
from relational_tensat.run.stages.choice import choose
from relational_tensat.run.stages.exploration import explore, extract
from relational_tensat.run.stages.fusion import fuse
from relational_tensat.run.stages.load import share
from relational_tensat.run.stages.result_check import check_result, is_as_quantized
from relational_tensat.run.state import RunState
from relational_tensat.tensor import Graph

#: After so many graphs that were wrong the original is returned.
MOST_REJECTIONS = 8
#: After so many steps that hold at some sizes only, too.
MOST_LEFT_OUT = 32
#: A rule of which so many applications were wrong is left out.
_MOST_APPLICATIONS = 2


def search_again(state: RunState, error: VerificationError) -> RunState:
    """Leave out what made the chosen graph wrong, and choose another; at last, the original.

    The application at fault is found by bisecting the chain of steps. What it built is not extracted any
    more; where that is not possible, or did not help, the graph is explored without the rule.

    Args:
        error: what is wrong with the graph. Where it is not wrong but slower, it will be so in every place
            where the rule is applied.
    """
    reason, is_loss = str(error), isinstance(error, LossError)
    is_rounded = isinstance(error, PrecisionError)
    if isinstance(
        error, CrossingError
    ):  # what leads there was not to be extracted: it is no one rule's
        return _give_up(state, Rejection(f"{reason}: the original is kept"))
    try:
        fault = _find_fault(state, is_loss=is_loss)
    except (InputError, NoSolutionError, VerificationError) as unknown:
        text = f"{reason}; which rule made it so was not found: {unknown}"
        return _give_up(state, Rejection(f"{text}: the original is kept"))
    rule = fault.step.rule
    n_rejections = sum(rejection.rule == rule for rejection in state.rejections)
    how = "less exact" if is_rounded else "worse" if is_loss else "wrong"
    text = f"{fault.text} makes the result {how}: {reason}"
    if len(state.rejections) + 1 >= MOST_REJECTIONS:
        rejection = Rejection(f"{text}: the original is kept", rule, fault.reproduction)
        return _give_up(state, rejection)
    is_everywhere = is_loss and not is_rounded
    by_rule = is_everywhere or not fault.e_nodes or n_rejections >= _MOST_APPLICATIONS
    left_out = "the rule" if by_rule else "this application"
    # What is only worse computes the same: running it would show nothing.
    reproduction = () if is_loss else fault.reproduction
    rejection = Rejection(f"{text}: {left_out} is left out", rule, reproduction)
    state = replace(state, rejections=(*state.rejections, rejection)).noting(rejection.why)
    try:
        return _without_rule(state, rule) if by_rule else _without_nodes(state, fault)
    except NoSolutionError:
        return _give_up(state, Rejection("no other graph was found: the original is kept"))


def search_dynamic(state: RunState, error: NotDynamicError) -> RunState:
    """Leave out a step that holds at some sizes only, and choose another graph; at last, the original.

    So with an e-node that no steps were found to.

    Args:
        error: what was found when the steps were carried out at other sizes.
    """
    fault = error.fault
    if state.n_left_out < MOST_LEFT_OUT and error.unexplained is not None:
        return _without_unexplained(state, error.unexplained, str(error))
    if fault is None or state.n_left_out == MOST_LEFT_OUT:
        return _give_up(state, Rejection(f"no dynamic result: {error}: the original is kept"))
    e_nodes = frozenset(fault.e_nodes)
    by_rule = e_nodes <= state.left_out  # leaving these out once did not help
    left_out = "the rule" if by_rule else "this application"
    note = f"{fault.text} does not hold at all sizes: {error}: {left_out} is left out"
    state = replace(
        state, n_left_out=state.n_left_out + 1, left_out=state.left_out | e_nodes
    ).noting(note)
    try:
        return _without_rule(state, fault.step.rule) if by_rule else _without_nodes(state, fault)
    except NoSolutionError:
        return _give_up(state, Rejection("no other graph was found: the original is kept"))


def _without_unexplained(state: RunState, e_node: int, reason: str) -> RunState:
    """Extract again, without an e-node that no steps were found to; the original's are not left out."""
    ((by_rule,),) = state.egraph.database.run("run/made_by_rule", enode=e_node)
    if not by_rule or e_node in state.left_out:
        return _give_up(state, Rejection(f"no dynamic result: {reason}: the original is kept"))
    state = replace(
        state, n_left_out=state.n_left_out + 1, left_out=state.left_out | {e_node}
    ).noting(f"{reason}: another graph is extracted")
    state.egraph.database.run("run/exclude_nodes", nodes=[e_node])
    try:
        return choose(extract(replace(state, by_profile=None).with_fresh_extractor()))
    except NoSolutionError:
        return _give_up(state, Rejection("no other graph was found: the original is kept"))


def _give_up(state: RunState, rejection: Rejection) -> RunState:
    rejections = (*state.rejections, rejection)
    return replace(state, chosen=state.original, rejections=rejections).noting(rejection.why)


def _without_nodes(state: RunState, fault: Fault) -> RunState:
    """Extract again, without e-nodes that an application built."""
    state.egraph.database.run("run/exclude_nodes", nodes=list(fault.e_nodes))
    state = replace(state, by_profile=None, settled=None)
    return choose(extract(state.with_fresh_extractor()))


def _without_rule(state: RunState, rule: str) -> RunState:
    """Explore and extract again, without a rule."""
    state.resources.close()
    options = state.options.replace(skip=(*state.options.rules.skip, rule))
    rules = [candidate for candidate in state.rules if candidate.name != rule]
    state = replace(
        state,
        options=options,
        rules=rules,
        extractions=(),
        by_profile=None,
        settled=None,
        left_out=frozenset(),
        has_fused=False,
    )
    return choose(extract(fuse(explore(share(state)))))


def _find_fault(state: RunState, *, is_loss: bool) -> Fault:
    """Bisect the steps to the chosen graph.

    Raises:
        InputError, NoSolutionError, VerificationError: no step is at fault, or the steps are not known.
    """
    compares = _is_as_quantized if is_loss else _is_right

    def is_right(graph: Graph) -> bool:
        return compares(state, as_written(graph, state.original))

    with state.phases.phase("verify"):
        return find_fault(state.egraph.database.connection, state.original, is_right)


def _is_as_quantized(state: RunState, graph: Graph) -> bool:
    """Whether a graph runs on integers as much as the original, which is found out sooner than all."""
    try:
        return is_as_quantized(state.original, graph, state.options, source=state.compared_file)
    except (InputError, VerificationError):
        return False


def _is_right(state: RunState, graph: Graph) -> bool:
    """Whether a graph computes what the original computes, as far as that can be compared, and as well."""
    try:
        _, outcome = check_result(
            state.original,
            graph,
            state.inputs,
            state.options,
            source=state.compared_file,
            target=state.target,
        )
    except (InputError, VerificationError):
        return False
    check = outcome.quantized
    return not (outcome.failure() or (check is not None and (check.loss or check.gain)))


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
    base = text_of(state.dynamic.base.sizes)
    return (
        f"dynamic dimensions stay dynamic, from 1 on: optimized at {base}, each step checked again at "
        f"{others}"
    )
