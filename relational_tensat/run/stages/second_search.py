"""The search continues without what made a graph wrong: an application of a rule, or the rule.

The application at fault is found by bisecting the chain of steps to the graph.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from relational_tensat.base.errors import (
    CrossingError,
    InputError,
    LossError,
    NoSolutionError,
    PrecisionError,
    VerificationError,
)
from relational_tensat.egraph.database import Database
from relational_tensat.explain.fault import Fault, find_fault
from relational_tensat.rules.backends.expand_to_onnx import expand_to_onnx
from relational_tensat.run.result_groups import Rejection
from relational_tensat.run.stages.compare import check_result, is_as_quantized
from relational_tensat.run.stages.explore import explore
from relational_tensat.run.stages.extract import extract, extract_again
from relational_tensat.run.stages.load import load_without
from relational_tensat.run.values import ExtractedRun, LoadedRun
from relational_tensat.tensor import Graph

#: After so many graphs that were wrong the original is returned.
MOST_REJECTIONS = 8
#: A rule of which so many applications were wrong is left out.
_MOST_APPLICATIONS = 2
#: Why the original is returned where nothing else is left.
NO_OTHER = "no other graph was found: the original is kept"


def search_again(extracted: ExtractedRun, error: VerificationError) -> ExtractedRun:
    """Leave out what made the chosen graph wrong, and choose another; at last, the original.

    The nodes that the application at fault built are not extracted any more. If that is not possible, or
    did not help, the graph is explored without the rule.

    Args:
        error: the fault of the graph. Where it is not wrong but slower, it will be so in every place where
            the rule is applied.
    """
    reason, is_loss = str(error), isinstance(error, LossError)
    is_rounded = isinstance(error, PrecisionError)
    if isinstance(
        error, CrossingError
    ):  # what leads there was not to be extracted: it is no one rule's
        return give_up(extracted, f"{reason}: the original is kept")
    try:
        fault = _find_fault(extracted.loaded, is_loss=is_loss)
    except (InputError, NoSolutionError, VerificationError) as unknown:
        text = f"{reason}; which rule made it so was not found: {unknown}"
        return give_up(extracted, f"{text}: the original is kept")
    rule = fault.step.rule
    n_rejections = sum(rejection.rule == rule for rejection in extracted.rejections)
    how = "less exact" if is_rounded else "worse" if is_loss else "wrong"
    text = f"{fault.text} makes the result {how}: {reason}"
    if len(extracted.rejections) + 1 >= MOST_REJECTIONS:
        rejection = Rejection(f"{text}: the original is kept", rule, fault.reproduction)
        return extracted.keeping_original(rejection)
    is_everywhere = is_loss and not is_rounded
    by_rule = is_everywhere or not fault.e_nodes or n_rejections >= _MOST_APPLICATIONS
    left_out = "the rule" if by_rule else "this application"
    # A graph that is only worse computes the same: running it would show nothing.
    reproduction = () if is_loss else fault.reproduction
    rejection = Rejection(f"{text}: {left_out} is left out", rule, reproduction)
    explored = replace(extracted.explored, notes=extracted.notes).refusing(rejection)
    extracted = replace(extracted, explored=explored, notes=explored.notes)
    try:
        return without_rule(extracted, rule) if by_rule else without_nodes(extracted, fault.e_nodes)
    except NoSolutionError:
        return give_up(extracted, NO_OTHER)


def give_up(extracted: ExtractedRun, why: str) -> ExtractedRun:
    """Choose the original at last."""
    return extracted.keeping_original(Rejection(why))


def without_nodes(extracted: ExtractedRun, e_nodes: Collection[int]) -> ExtractedRun:
    """Extract again, without e-nodes that applications built."""
    leave_out(extracted.loaded.egraph.database, e_nodes)
    return extract_again(extracted)


def leave_out(database: Database, e_nodes: Collection[int]) -> None:
    """Let e-nodes not be extracted any more, nor others that need a class which then has none left."""
    database.run("run/exclude_nodes", nodes=sorted(e_nodes))
    while database.run("run/exclude_parents"):
        pass  # their own parents are next


def without_rule(extracted: ExtractedRun, rule: str) -> ExtractedRun:
    """Explore and extract again, without a rule."""
    before = replace(extracted.explored, notes=extracted.notes)
    again = extract(explore(load_without(extracted.loaded, rule), before))
    return replace(again, race=extracted.race, raced=extracted.raced)


def _find_fault(loaded: LoadedRun, *, is_loss: bool) -> Fault:
    """Bisect the steps to the chosen graph.

    Raises:
        InputError, NoSolutionError, VerificationError: no step is at fault, or the steps are not known.
    """
    compares = _is_as_quantized if is_loss else _is_right

    def is_right(graph: Graph) -> bool:
        return compares(loaded, expand_to_onnx(graph, loaded.original))

    with loaded.run.phases.phase("verify"):
        return find_fault(loaded.egraph.database.connection, loaded.original, is_right)


def _is_as_quantized(loaded: LoadedRun, graph: Graph) -> bool:
    """Whether a graph runs on integers as much as the original, which is found out sooner than all."""
    options, source = loaded.run.options, loaded.model.compared_file
    try:
        return is_as_quantized(loaded.original, graph, options, source=source)
    except (InputError, VerificationError):
        return False


def _is_right(loaded: LoadedRun, graph: Graph) -> bool:
    """Whether a graph computes what the original computes, as far as that can be compared, and as well."""
    try:
        _, outcome = check_result(
            loaded.original,
            graph,
            loaded.inputs,
            loaded.run.options,
            source=loaded.model.compared_file,
            output=loaded.output,
        )
    except (InputError, VerificationError):
        return False
    check = outcome.quantized
    return not (outcome.failure() or (check is not None and (check.loss or check.gain)))
