"""The first stage: model, rules and inputs are read, equal weights become one, and the graph goes into the
database."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from relational_tensat.base.errors import UsageError
from relational_tensat.base.outputs import DefaultOutput
from relational_tensat.cost import CostSource, ask_for_graph
from relational_tensat.egraph import EGraph
from relational_tensat.formats import load_dynamic, load_model, need_onnx
from relational_tensat.formats.frontend import check_output, is_onnx
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.library import load_rules, rules_meant_by
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.store import check_trust, content_hash
from relational_tensat.rules.soundness.verdict import Verdict
from relational_tensat.run.options import (
    INSIDE,
    KEEP,
    LOW,
    ONNXRUNTIME,
    fuses_what_is_written,
)
from relational_tensat.run.request import Run
from relational_tensat.run.stages.explore import with_kernel_costs
from relational_tensat.run.stages.race import check_this_machine
from relational_tensat.run.values import LoadedRun, Model
from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.operators.opaque import WITH_BODIES
from relational_tensat.tensor.uses import distinct_nodes, share_equal_weights
from relational_tensat.verify.inputs import load_inputs, read_array
from relational_tensat.view.document import RunTables

if TYPE_CHECKING:
    from relational_tensat.run.reports import BodyRewrite


def read(run: Run) -> Model:
    """Read the model, and check where its large weights are to go."""
    if name := run.options.rules.backend:
        load_backend(name)  # a file may have kernels of it
    return _with_data_moved(run, read_model(run, run.source))


def read_model(run: Run, source: Graph | str | Path) -> Model:
    """Return a graph that was given, or is read from its file.

    Where the model has dynamic dimensions that the result is to have, too, it is read at several sizes. One
    that is another graph at other sizes is not explored, and the original is what will be returned: equal
    nodes become one in any e-graph, and what is extracted has the sizes that it was read at.
    """
    if isinstance(source, Graph):
        return Model(source, source)
    path, options = Path(source), run.options.model
    dims, keeps = dict(options.dims), options.keep_overridable
    with run.phases.phase("load"):
        # only ONNX has dynamic dimensions, and only files are written with them
        output = run.output.path if isinstance(run.output, DefaultOutput) else run.output
        if not (is_onnx(path) and is_onnx(output) and not run.options.model.static):
            return Model(source, load_model(path, dims, keep_overridable=keeps))
        need_onnx()
        from relational_tensat.formats.dynamic.sized_model import SizeError

        given = run.options.verification.inputs
        arrays = {name: read_array(file) for name, file in given.items()}
        try:
            model = load_dynamic(path, dims, keep_overridable=keeps, inputs=arrays)
        except SizeError as error:
            if error.base is None:
                raise
            note = f"no dynamic result: {error}; --static writes one of fixed sizes"
            return Model(source, error.base, returns_original=True, notes=(note,))
    if isinstance(model, Graph):
        return Model(source, model)
    defaults = {key: size for key, size in model.base.sizes.items() if key not in model.chosen}
    sizes = ",".join(f"{key}={size}" for key, size in defaults.items())
    note = f"no --dim given: sizes chosen are {sizes}" if defaults else ""
    return Model(source, model.base.graph, model, notes=(note, *model.notes))


def _with_data_moved(run: Run, model: Model) -> Model:
    """Let a model's large weights go where the options say.

    Raises:
        UsageError: the file for the data is not beside the result.
    """
    place, output = run.options.output.external_data, check_output(run.output, model.source)
    if place == KEEP:
        return model
    if place != INSIDE and (
        Path(place).name != place or (output is not None and place == output.name)
    ):
        raise UsageError(
            f"--external-data {place}: expected {KEEP}, {INSIDE}, or the name of a file beside the result"
        )
    if output is None or not is_onnx(output):
        raise UsageError(f"--external-data {place} is for .onnx files")
    if place != INSIDE and output.with_name(place).exists() and not run.options.output.force:
        raise UsageError(f"{output.with_name(place)} exists: give --force to replace it")
    from relational_tensat.formats.onnx_metadata import DATA_KEY  # needs onnx

    name = "" if place == INSIDE else place

    def moved(graph: Graph) -> Graph:
        others = {key: text for key, text in graph.metadata.items() if key != DATA_KEY}
        return replace(graph, metadata={**others, **({DATA_KEY: name} if name else {})})

    dynamic = model.dynamic
    if dynamic is not None:
        base, *rest = (replace(sized, graph=moved(sized.graph)) for sized in dynamic.all)
        dynamic = replace(dynamic, base=base, others=tuple(rest))
    graph = moved(model.graph) if dynamic is None else dynamic.base.graph
    return replace(model, graph=graph, dynamic=dynamic, moved_data=name)


def load(run: Run, model: Model, open_egraph: Callable[[Graph], EGraph] | None = None) -> LoadedRun:
    """Read the rules and the inputs, check where the result is to go, and make the e-graph.

    Args:
        open_egraph: opens the e-graph that was made of this graph, the model's with equal weights shared;
            returns None if none was made yet.
    """
    if model.returns_original:
        run = replace(run, options=run.options.replace(iterations=0))
    cost = _cost_on_backend(run, model)
    kernel_costs = with_kernel_costs(run.options, model, cost)
    cost = kernel_costs or cost
    rules = _read_rules(run, model)
    output = check_output(run.output, model.source)
    _check_opset(run.options.output.opset, output)
    check_this_machine(run.options, cost, output)
    if output is not None and fuses_what_is_written(run.options):
        from relational_tensat.custom_ops.manifest import check_place  # few runs need it

        check_place(output)
    known = {} if model.dynamic is None else model.dynamic.base.known_inputs
    inputs = {**known, **load_inputs(model.graph, run.options.verification.inputs)}
    untrusted = _check_rules(run, rules)
    _time_opaque(run, model, cost, inputs)
    rewrites, note = _rewrite_bodies(run, model)
    rules = [*(rewrite.rule for rewrite in rewrites), *_resize_rules(run, model), *rules]
    with run.phases.phase("price"):
        original = share_equal_weights(model.graph)
        cost.adapt_to(original)
        shared = _measured(run, model.graph, original, cost, rules)
    with run.phases.phase("explore"):
        egraph = (open_egraph or partial(_new_egraph, run))(shared.original)
    loaded = LoadedRun(
        run, model, cost, kernel_costs, rules, untrusted, inputs, output, *shared, egraph,
        _tables_of(run, egraph), tuple(filter(None, (run.purpose.note, *model.notes, note))),
        bodies=tuple(rewrites),
    )  # fmt: skip
    if open_egraph is None:
        _record(loaded)
    return loaded


def load_without(loaded: LoadedRun, rule: str) -> LoadedRun:
    """Return the model in an e-graph of its own again, to be explored without a rule."""
    loaded.run.resources.close()
    options = loaded.run.options
    options = options.replace(skip=(*options.rules.skip, rule))
    run = replace(loaded.run, options=options)
    rules = [candidate for candidate in loaded.rules if candidate.name != rule]
    with run.phases.phase("price"):
        original = share_equal_weights(loaded.model.graph)
        loaded.cost.adapt_to(original)
        shared = _measured(run, loaded.model.graph, original, loaded.cost, rules)
    with run.phases.phase("explore"):
        egraph = _new_egraph(run, shared.original)
    loaded = replace(
        loaded, run=run, rules=rules, original=shared.original, priced=shared.priced,
        run_hash=shared.run_hash, egraph=egraph, tables=_tables_of(run, egraph), kernels=(),
    )  # fmt: skip
    _record(loaded)
    return loaded


def _time_opaque(run: Run, model: Model, cost: CostSource, inputs: Mapping[str, Array]) -> None:
    """Time the operators that nobody has a price for, where the result is for this processor, once."""
    purpose, file = run.options.purpose, model.file
    is_here = purpose.runs_on == ONNXRUNTIME and purpose.effort != LOW
    has_some = any(node.op == "opaque" for node in model.graph.nodes)
    if not is_here or not has_some or file is None or not is_onnx(file) or not cost.is_instant:
        return
    from relational_tensat.cost.cache import CostCache, default_cache
    from relational_tensat.run.backend_costs import BackendCosts
    from relational_tensat.run.stages.opaque_times import opaque_times_us  # few models have these

    if isinstance(cost, BackendCosts):
        with run.phases.phase("price"):
            seed, costs = run.options.process.seed, run.options.costs
            cache = CostCache(costs.cache or default_cache(), is_dispensable=True)
            given = (file, model.graph, inputs, cost.n_threads, seed, cache)
            cost.know(opaque_times_us(*given, again=costs.race_again))


def _rewrite_bodies(run: Run, model: Model) -> tuple[list[BodyRewrite], str]:
    """Return what became of bodies of the model's nodes, and a note."""
    nodes = (node for node in model.graph.nodes if node.op == "opaque")
    if model.returns_original or not any(node.attrs["op_type"] in WITH_BODIES for node in nodes):
        return [], ""
    from relational_tensat.run.stages.bodies import rewrite_bodies  # few models have bodies

    return rewrite_bodies(run, model)


def _resize_rules(run: Run, model: Model) -> list[Rule]:
    """Return rules by which this model's interpolations are products, where onnxruntime is to run them."""
    is_here = ONNXRUNTIME in (run.options.purpose.runs_on, run.options.rules.backend)
    nodes = (node for node in model.graph.nodes if node.op == "opaque")
    has_some = any(node.attrs["op_type"] == "Resize" for node in nodes)
    if not is_here or not has_some or model.returns_original or model.dynamic is not None:
        return []
    from relational_tensat.run.stages.resizes import resize_rules  # few models have these

    return resize_rules(share_equal_weights(model.graph))


def _new_egraph(run: Run, original: Graph) -> EGraph:
    return EGraph.create(original, run.options.output.db, run.options.process)


def _record(loaded: LoadedRun) -> None:
    """Write what bodies became, and how the run was requested for another process that goes on with it."""
    run, model = loaded.run, loaded.model
    loaded.egraph.database.append("body_rewrite", [body.row() for body in loaded.bodies])
    if run.options.output.db is None:
        return
    from relational_tensat.run.resume.record import RunRecord, write_record  # few runs need it

    record = RunRecord.of(
        run.options,
        model.source,
        model.graph,
        own_costs=run.has_own_costs,
        is_dynamic=model.stays_dynamic,
    )
    write_record(loaded.egraph.database, record)


def _tables_of(run: Run, egraph: EGraph) -> RunTables:
    """Return the tables of an e-graph; if it is in a file, it is closed with the run's resources.

    From now on there is a best graph so far. So Ctrl-C is remembered, and ends the search for a better one;
    exploration has a way of its own to take it.
    """
    path = run.options.output.db
    if path is not None:
        run.resources.enter_context(closing(egraph))
    run.attention.enter_context(run.watch.watching())
    if path is None:
        return RunTables(memory=egraph.database.connection)  # open as long as somebody has it
    return RunTables(path)


def _cost_on_backend(run: Run, model: Model) -> CostSource:
    """Return the costs of what the graph will run on, if that is known."""
    name = run.options.rules.backend
    if name is None:
        return run.cost
    from relational_tensat.run.backend_costs import BackendCosts  # few runs need it

    rules = load_backend(name).rules(has_fixed_shapes=model.dynamic is None)
    return BackendCosts(run.cost, load_backend(name), rules)


def _read_rules(run: Run, model: Model) -> list[Rule]:
    """Read the rules that the options name, and those of the backend."""
    with run.phases.phase("load"):
        options = run.options.rules
        backend = options.backend and load_backend(options.backend)
        is_fixed = model.dynamic is None
        own = backend.rules(has_fixed_shapes=is_fixed) if backend else []
        offered = backend.rules(has_fixed_shapes=is_fixed, offered=True) if backend else []
        of_backend, skip = _skipped(options.skip, own, offered)
        rules = load_rules(options.files or None, options.only, skip)
        if backend and not (options.files or options.only):  # who names rules wants these
            rules = [rule for rule in rules if rule.name not in backend.left_out]
        # first, so that what the backend does itself is not called another rule's doing
        return [*own, *rules, *(rule for rule in offered if rule.name not in of_backend)]


def _skipped(
    names: Sequence[str], own: Sequence[Rule], offered: Sequence[Rule]
) -> tuple[set[str], list[str]]:
    """Return the names of a backend's offered rules that are left out, and names of other rules.

    Raises:
        UsageError: a name is that of a rule that the backend applies by itself.
    """
    left_out: set[str] = set()
    others = []
    for name in names:
        if rules_meant_by(name, [rule.name for rule in own]):
            raise UsageError(
                f"--skip {name}: the backend does that by itself, expected a rule that can be left out"
            )
        found = rules_meant_by(name, [rule.name for rule in offered])
        left_out |= found
        if not found:
            others.append(name)
    return left_out, others


def _check_opset(opset: int | None, output: Path | None) -> None:
    """Check that the result can be written in a version of ONNX's operators.

    Raises:
        UsageError: it cannot, or is not written as ONNX.
    """
    if opset is None or output is None:
        return
    if not is_onnx(output):
        raise UsageError(f"{output}: opset = {opset} is for .onnx files")
    from relational_tensat.formats.onnx_versions import check_opset  # needs onnx

    check_opset(opset)


def _check_rules(run: Run, rules: Sequence[Rule]) -> Mapping[str, str]:
    """Reject unsound rules, or return why some are not known to be sound, if that is allowed."""

    def verify(rules: Sequence[Rule]) -> list[Verdict]:
        from relational_tensat.rules.soundness import verify_rules

        run.phases.progress.phase("verify rules")
        return verify_rules(rules, shrink=False)

    with run.phases.phase("load"):
        allow_unsound = run.options.rules.allow_unsound
        return check_trust(rules, allow_unsound=allow_unsound, verify=verify).untrusted


class _Shared(NamedTuple):
    """As ``LoadedRun`` has them."""

    original: Graph
    priced: Graph
    run_hash: str


def _measured(
    run: Run, graph: Graph, original: Graph, cost: CostSource, rules: Sequence[Rule]
) -> _Shared:
    """Ask for all that the graph costs, which is measured now, if it is measured at all.

    Args:
        original: the graph with equal weights shared, which costs were adapted to.
    """
    original = cost.marked(original)
    run_hash = _run_hash(run, original, rules) if cost.is_lazy else ""
    cost.begin_run(run_hash)
    # Kernels of the file's graph are those of the original, unless equal weights make two nodes one.
    is_same_work = distinct_nodes(original) == distinct_nodes(graph)
    priced = original if is_same_work else graph
    ask_for_graph(cost, priced)
    return _Shared(original, priced, run_hash)


def _run_hash(run: Run, original: Graph, rules: Sequence[Rule]) -> str:
    """Return the hash of what decides which costs a run asks for: the model, the rules, the search."""
    options = run.options
    groups = (
        options.rules, options.exploration, options.tree, options.extraction, options.fusion,
    )  # fmt: skip
    hashes = [content_hash(rule) for rule in rules]
    others = options.process.seed, options.costs.learn_costs
    text = repr((run.contents.of(original), hashes, groups, others))
    return hashlib.sha256(text.encode()).hexdigest()
