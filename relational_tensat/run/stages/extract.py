"""The third stage: the cheapest graph comes out of the e-graph, and is chosen if it is the cheaper one.

Where costs are measured, a run that repeats another one begins from the choice that was made then
(``settled``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relational_tensat.cost import CostSource, graph_cost_us
from relational_tensat.cost.key import graph_configurations
from relational_tensat.extract import ExtractionOptions
from relational_tensat.extract.kept_choice import cheapest_by_profile
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.extract.tables import (
    chosen_graph,
    extraction_problem,
    forget_costs,
    rules_of_chosen,
)
from relational_tensat.rules.backends.expand_to_onnx import expand_to_onnx
from relational_tensat.run.progress import write_course
from relational_tensat.run.stages.explore import extractor_of
from relational_tensat.run.values import ExploredRun, ExtractedRun, Start
from relational_tensat.tensor.uses import count_inference_ops
from relational_tensat.verify.sensitivity import behind_integers

#: Of values that stay as they were; a note counts the others.
_NAMES_SHOWN = 4
#: How notes end that the original is returned.
_KEPT = ": the original is kept"


def extract(
    explored: ExploredRun, start: Start | None = None, limits: ExtractionOptions | None = None
) -> ExtractedRun:
    """Extract the cheapest graph; once more, where what was measured in between changes estimates.

    Values that decide integers up to a step of floats, such as a floor, stay as they were.

    Args:
        start: the beginning of an earlier extraction of the same e-graph, or None.
        limits: of extraction, if not the run's.
    """
    loaded, run, egraph = explored.loaded, explored.loaded.run, explored.loaded.egraph
    extractor, iteration = explored.extractor, explored.exploration.iterations
    if names := behind_integers(loaded.original):
        explored = _with_steps_as_they_were(explored, names)
        extractor = extractor_of(loaded, extractor.log, limits)
    stopwatch = egraph.database.stopwatch
    with run.phases.phase("extract"), stopwatch.phase("extract"):
        extraction_problem(egraph, loaded.cost, CostSource.at_least)  # what is known is looked up
        if loaded.cost.renew():
            forget_costs(egraph)
        start = start or _start(explored, limits or run.options.extraction)
        if start.settled is not None:
            extractor.note(start.settled.seed, iteration)
        extraction = extractor.finish(iteration)
        if extractor.chose_latest and start.settled is None and loaded.cost.renew():
            forget_costs(egraph)
            extractor = extractor_of(loaded, extractor.log, limits)
            extraction = extractor.finish(iteration)
        graph = expand_to_onnx(chosen_graph(egraph), loaded.original)
        e_nodes, e_classes = egraph.counts()
        rules_used = rules_of_chosen(egraph)
    time_spent = stopwatch.spent()
    write_course(egraph.database, run.recording, time_spent)
    run.attention.close()
    with run.phases.phase("price"):
        loaded.cost.ask(graph_configurations(loaded.cost.as_run(graph)))
    return choose(
        ExtractedRun(
            replace(explored, extractor=extractor),
            start,
            graph,
            extraction,
            rules_used,
            e_nodes,
            e_classes,
            tuple(extractor.log),
            time_spent,
            loaded.original,
            explored.notes,
        )
    )


def choose(extracted: ExtractedRun) -> ExtractedRun:
    """Choose the cheapest graph unless the original is as good, or nothing else may be returned."""
    loaded = extracted.loaded
    if loaded.model.returns_original:
        return extracted
    original_us = loaded.original_us
    cost_us = graph_cost_us(extracted.graph, loaded.cost)
    if cost_us > original_us * (1 + COST_TOLERANCE):
        return extracted.noting(
            f"the extracted graph costs {cost_us:.3f} µs, more than the original's "
            f"{original_us:.3f}{_KEPT}"
        )
    graphs = (loaded.original, extracted.graph)
    n_before, n_after = (sum(count_inference_ops(graph).values()) for graph in graphs)
    if cost_us < original_us * (1 - COST_TOLERANCE) or n_after < n_before:
        return replace(extracted, chosen=extracted.graph)
    return extracted.noting(f"no cheaper graph was found{_KEPT}")


def extract_again(
    extracted: ExtractedRun, *, start: Start | None = None, limits: ExtractionOptions | None = None
) -> ExtractedRun:
    """Extract as if nothing had been, from the same e-graph: costs, or what it has, are others now.

    Args:
        start, limits: as of ``extract``.
    """
    explored = extracted.explored
    extractor = extractor_of(explored.loaded, extracted.extractions, limits)
    explored = replace(explored, extractor=extractor, notes=extracted.notes)
    again = extract(explored, start, limits)
    return replace(again, race=extracted.race, raced=extracted.raced)


def _start(explored: ExploredRun, options: ExtractionOptions) -> Start:
    """Return the choice of a run before, or the cheapest graph by the profile, which is measured first."""
    settled = None
    if explored.loaded.cost.device is not None:
        from relational_tensat.run.stages.race_memory import recall  # few runs measure their costs

        settled = recall(explored)
    if settled is not None:
        return Start(settled=settled)
    loaded = explored.loaded
    process, watch = loaded.run.options.process, explored.extractor.watch
    return Start(cheapest_by_profile(loaded.egraph, loaded.cost, options, process, watch))


def _with_steps_as_they_were(explored: ExploredRun, names: Sequence[str]) -> ExploredRun:
    """Extract no e-node any more that a rule made of what some values are computed from.

    Args:
        names: of results of steps, which outputs of integers depend on.
    """
    made = explored.loaded.egraph.database.run("run/keep_as_it_was", names=list(names))
    shown = ", ".join(map(repr, names[:_NAMES_SHOWN]))
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    note = f"as it was, as outputs of integers depend on it: all up to {shown}{more}"
    has_note = note in explored.notes or not any(by_rule for (by_rule,) in made)
    return explored.noting("" if has_note else note)


def without_kept(notes: Sequence[str]) -> tuple[str, ...]:
    """Return notes without those that the original is kept by the sums."""
    return tuple(note for note in notes if not note.endswith(_KEPT))
