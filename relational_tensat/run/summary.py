"""The end of a run: the written file becomes a result.

An inference takes more time than its kernels. A file with dynamic dimensions computes shapes at inference
that its graph has as constants. How many nodes are left of that, onnxruntime knows: it folds, merges and
removes some of them before it runs any.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from relational_tensat.cost import costs_by_kind_us, graph_cost_us
from relational_tensat.extract import relative_gap
from relational_tensat.extract.problem import COST_TOLERANCE
from relational_tensat.run.account import Account, remember_account
from relational_tensat.run.reports import fusion_report
from relational_tensat.run.result import Result
from relational_tensat.run.result_groups import (
    ExtractionSummary,
    Files,
    Outcome,
    Price,
    Proof,
    SearchSummary,
)
from relational_tensat.run.values import CheckedRun, ExtractedRun, WrittenRun
from relational_tensat.tensor import Graph
from relational_tensat.verify.sessions import optimized_graph, runtime_errors

if TYPE_CHECKING:
    import onnx

#: Tables in memory are kept with a result up to so many e-nodes: those of a default search, some 20 MB.
MOST_KEPT_ENODES = 50_000


def result_of(written: WrittenRun) -> Result:
    """Return the result of a run, whose tables now hold its account, too; write its page, if requested.

    Raises:
        InputError: the page or the tables cannot be written.
    """
    result = _result(written)
    loaded = written.checked.loaded
    options = loaded.run.options.output
    remember_account(
        loaded.egraph.database if options.db is None else options.db,
        result.gain.text,
        json.dumps(Account.of(result).to_json()),
    )
    if options.certificate is not None:
        from relational_tensat.run.stages.certificate import write_certificate  # few runs have one

        write_certificate(written, result, options.certificate)
    if options.view is None:
        return result
    page = loaded.tables.page()
    page.save(options.view)
    no_film = page.data.no_film
    notes = (*result.notes, f"the page has no steps: {no_film}") if no_film else result.notes
    return replace(
        result, notes=notes, seconds={**result.seconds, "total": loaded.run.phases.total_s}
    )


def _result(written: WrittenRun) -> Result:
    checked, extracted, loaded = written.checked, written.checked.extracted, written.checked.loaded
    cost, run, model = loaded.cost, loaded.run, loaded.model
    original, graph = model.graph, checked.folded
    if model.dynamic is not None:
        from relational_tensat.run.stages.dynamic import as_constants  # few models need it

        original, graph = (as_constants(each, model.dynamic) for each in (original, graph))
    beside = _kernel_overhead(checked, len(original.inputs) + len(original.outputs))
    price = _price(checked, beside)
    is_large = loaded.tables.memory is not None and extracted.e_nodes > MOST_KEPT_ENODES
    tables = None if is_large else loaded.tables
    outcome = Outcome(
        checked.verification,
        extracted.is_unchanged,
        extracted.rejections,
        extracted.race,
        checked.whole,
        checked.runtimes,
    )
    others = filter(None, (extracted.extraction.note, *cost.notes, beside.note))
    return Result(
        source=model.source.name if isinstance(model.source, Graph) else str(model.source),
        graph=graph,
        original=original,
        price=price,
        search=_search(checked),
        proof=_proof(extracted, price, outcome),
        outcome=outcome,
        files=Files(
            model.file,
            output=written.output,
            change=written.change,
            machine=written.machine,
            library=written.library,
            tables=tables,
        ),
        seconds=run.phases.seconds | {"measure": cost.measuring_s, "total": run.phases.total_s},
        time_spent=extracted.time_spent,
        notes=(*written.notes, *others),
    )


def _price(checked: CheckedRun, beside: BesideKernels) -> Price:
    extracted, loaded = checked.extracted, checked.loaded
    cost, copies_file = loaded.cost, extracted.copies_file
    priced = extracted.graph if extracted.has_same_file else loaded.priced
    before_us = graph_cost_us(priced, cost)
    after_us = before_us if copies_file else graph_cost_us(extracted.chosen, cost)
    before = costs_by_kind_us(loaded.priced, cost)
    after = before if copies_file else costs_by_kind_us(extracted.chosen, cost)
    both = {op: (before.get(op, 0.0), after.get(op, 0.0)) for op in {**before, **after}}
    return Price(
        loaded.runs_on,
        cost.name,
        before_us,
        after_us,
        beside.before_us,
        beside.after_us,
        cost.counts,
        dict(sorted(both.items(), key=lambda item: (-max(item[1]), item[0]))),
        lists_kernels=cost.gives_kernels or cost.counts.any_measured,
    )


def _search(checked: CheckedRun) -> SearchSummary:
    extracted, explored, loaded = checked.extracted, checked.extracted.explored, checked.loaded
    fusion = None
    if checked.kernels is not None:
        fusion = checked.kernels.fusion
    elif loaded.run.options.fusion.fuse:
        fusion = fusion_report(
            explored.fused_parts, explored.kernels, extracted.chosen, loaded.cost
        )
    return SearchSummary(
        explored.exploration,
        extracted.e_nodes,
        extracted.e_classes,
        fusion,
        loaded.resumed_after,
        loaded.untrusted,
    )


def _proof(extracted: ExtractedRun, price: Price, outcome: Outcome) -> Proof:
    extraction, is_unchanged = extracted.extraction, extracted.is_unchanged
    bound_us = min(extraction.bound_us, price.after_us)
    is_cheaper = extraction.cost_us < price.before_us * (1 - COST_TOLERANCE)
    optimal = extraction.optimal and not (outcome.keeps_original or (is_unchanged and is_cheaper))
    gap = relative_gap(price.after_us, bound_us)
    # A runtime may not make the kernels of a file that the e-graph has: the proof is not of its price then.
    optimal &= gap <= COST_TOLERANCE
    has_all = extracted.explored.exploration.is_exhaustive and not extracted.explored.refused
    return Proof(
        extraction.method,
        bound_us,
        gap,
        optimal,
        optimal and has_all,
        {} if is_unchanged else extracted.rules_used,
        ExtractionSummary.of(extraction),
        extracted.extractions,
    )


class BesideKernels(NamedTuple):
    """The time of the original and the result beside kernels, in microseconds, and the parts that it
    lacks."""

    before_us: float
    after_us: float
    note: str = ""


def _kernel_overhead(checked: CheckedRun, values: int) -> BesideKernels:
    """Return what an inference takes beside kernels, before and after; 0 where costs do not tell.

    Args:
        values: how many inputs and outputs the model has.
    """
    cost, model, sized = checked.loaded.cost, checked.loaded.model.dynamic, checked.sized
    run_us = cost.run_us(values)
    if not run_us or model is None:
        return BesideKernels(run_us, run_us)
    try:
        with checked.loaded.run.phases.phase("price"):
            before = after = count_size_nodes(model.frame, model.data)
            if sized is not None and not checked.extracted.copies_file:
                after = count_size_nodes(*sized.file)
    except runtime_errors() as error:
        reason = " ".join(str(error).split())
        note = f"times leave out nodes that compute sizes: onnxruntime does not take the graph: {reason}"
        return BesideKernels(run_us, run_us, note)
    return BesideKernels(cost.run_us(values, before), cost.run_us(values, after))


def count_size_nodes(model: onnx.ModelProto, large: Iterable[str]) -> int:
    """Count the nodes that compute sizes in what onnxruntime makes of a model.

    Args:
        model: a skeleton.
        large: the weights that have a placeholder in it.

    Raises:
        Exception: one of ``runtime_errors``.
    """
    from relational_tensat.formats.onnx_external import with_weights_as_inputs
    from relational_tensat.formats.onnx_sizes import size_nodes

    skeleton = with_weights_as_inputs(model, large).SerializeToString()
    return len(size_nodes(optimized_graph(skeleton)))
