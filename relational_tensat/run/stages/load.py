"""The first stages: model and rules are read, and the graph goes into the database."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from relational_tensat.base.errors import UsageError
from relational_tensat.base.outputs import DefaultOutput
from relational_tensat.cost import ask_for_graph
from relational_tensat.egraph import EGraph
from relational_tensat.formats import load_dynamic, load_model, need_onnx
from relational_tensat.formats.frontend import check_output, is_onnx
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.content import content_hash
from relational_tensat.rules.soundness.gate import check_trust
from relational_tensat.rules.soundness.verdict import Verdict
from relational_tensat.rules.targets.backend import load_backend
from relational_tensat.run.stages.fusion import check_fusing
from relational_tensat.run.stages.race import check_this_machine
from relational_tensat.run.state import RunState
from relational_tensat.tensor import Graph
from relational_tensat.tensor.uses import distinct_nodes, share_equal_weights
from relational_tensat.verify.inputs import load_inputs


def load(state: RunState) -> RunState:
    """Read the model, the rules and the inputs, and check where the result is to go."""
    if name := state.options.rules.target:
        load_backend(name)  # a file may have kernels of it
    state = check_fusing(on_target(open_model(state, state.source)))
    return check_plan(replace(state, rules=read_rules(state)))


def share(state: RunState) -> RunState:
    """Let equal weights be one, and put the graph into the database."""
    state = share_weights(state)
    options = state.options
    with state.phases.phase("explore"):
        egraph = EGraph.create(state.original, options.output.db, options.process)
    state = state.with_egraph(egraph)
    if options.output.db is not None:
        _record(state)
    return state


def open_model(state: RunState, source: Graph | str | Path) -> RunState:
    """Return the state with a graph that was given, or is read from its file.

    Where the model has dynamic dimensions that the result is to have, too, it is read at several sizes. One
    that is another graph at other sizes is not explored, and the original is what will be returned: equal
    nodes become one in any e-graph, and what is extracted has the sizes that it was read at.
    """
    if isinstance(source, Graph):
        return replace(state, graph=source)
    path, dims = Path(source), dict(state.options.model.dims)
    keeps = state.options.model.keep_overridable
    with state.phases.phase("load"):
        if not _stays_dynamic(state, path):
            return replace(state, graph=load_model(path, dims, keep_overridable=keeps))
        need_onnx()
        from relational_tensat.formats.dynamic.sized_model import SizeError

        try:
            model = load_dynamic(path, dims, keep_overridable=keeps)
        except SizeError as error:
            if error.base is None:
                raise
            options = state.options.replace(iterations=0)
            note = f"no dynamic result: {error}; --static writes one of fixed sizes"
            state = replace(state, graph=error.base, options=options, returns_original=True)
            return state.noting(note)
    if isinstance(model, Graph):
        return replace(state, graph=model)
    defaults = {key: size for key, size in model.base.sizes.items() if key not in model.chosen}
    sizes = ",".join(f"{key}={size}" for key, size in defaults.items())
    note = f"no --dim given: sizes chosen are {sizes}" if defaults else ""
    return replace(state, graph=model.base.graph, dynamic=model).noting(note, *model.notes)


def _stays_dynamic(state: RunState, path: Path) -> bool:
    """Whether dynamic dimensions are kept: only ONNX has them, and only files are written with them."""
    output = state.output.path if isinstance(state.output, DefaultOutput) else state.output
    return is_onnx(path) and is_onnx(output) and not state.options.model.static


def on_target(state: RunState) -> RunState:
    """Return the state with costs of what the graph will run on, if that is known."""
    name = state.options.rules.target
    if name is None:
        return state
    from relational_tensat.run.target_costs import TargetCosts  # few runs need it

    rules = load_backend(name).rules(has_fixed_shapes=state.dynamic is None)
    return replace(state, cost=TargetCosts(state.cost, load_backend(name), rules))


def read_rules(state: RunState) -> list[Rule]:
    """Read the rules that the options name, and those of the target."""
    with state.phases.phase("load"):
        options = state.options.rules
        rules = load_rules(options.files or None, options.only, options.skip)
        if name := state.options.rules.target:
            # first, so that what the target does itself is not called another rule's doing
            target, is_fixed = load_backend(name), state.dynamic is None
            own = target.rules(has_fixed_shapes=is_fixed)
            if not (options.files or options.only):  # who names rules wants these
                rules = [rule for rule in rules if rule.name not in target.left_out]
            rules = [*own, *rules, *target.rules(has_fixed_shapes=is_fixed, offered=True)]
        if schedule := state.options.exploration.schedule:
            from relational_tensat.explore.schedule import check_rulesets, parse_schedule

            check_rulesets(parse_schedule(schedule), rules)
        return rules


def check_plan(state: RunState) -> RunState:
    """Check where the result goes, read the inputs to verify with, and reject unsound rules."""
    target = check_output(state.output, state.source)
    _check_opset(state.options.output.opset, target)
    check_this_machine(state, target)
    computed = {} if state.dynamic is None else state.dynamic.base.computed
    inputs = {**load_inputs(state.graph, state.options.verification.inputs), **computed}
    with state.phases.phase("load"):
        untrusted = _check_rules(state)
    return replace(state, target=target, inputs=inputs, untrusted=untrusted)


def _check_opset(opset: int | None, target: Path | None) -> None:
    """Check that the result can be written in a version of ONNX's operators.

    Raises:
        UsageError: it cannot, or is not written as ONNX.
    """
    if opset is None or target is None:
        return
    if not is_onnx(target):
        raise UsageError(f"{target}: opset = {opset} is for .onnx files")
    from relational_tensat.formats.onnx_versions import check_opset  # needs onnx

    check_opset(opset)


def share_weights(state: RunState) -> RunState:
    """Let equal weights be one; all that the graph costs is measured now, if it is measured at all."""
    with state.phases.phase("price"):
        original = share_equal_weights(state.graph)
        state.cost.suit(original)
        run = _run_hash(state, original) if state.cost.is_lazy else ""
        state.cost.begin_run(run)
        # Kernels of the file's graph are those of the original, unless equal weights make two nodes one.
        is_same_work = distinct_nodes(original) == distinct_nodes(state.graph)
        priced = original if is_same_work else state.graph
        ask_for_graph(state.cost, priced)
    return replace(state, original=original, priced=priced, run=run)


def _run_hash(state: RunState, original: Graph) -> str:
    """Return the hash of what decides which costs a run asks for: the model, the rules, the search."""
    options = state.options
    groups = (
        options.rules, options.exploration, options.tree, options.extraction, options.fusion,
    )  # fmt: skip
    rules = [content_hash(rule) for rule in state.rules]
    others = options.process.seed, options.costs.learn_costs
    text = repr((state.contents.of(original), rules, groups, others))
    return hashlib.sha256(text.encode()).hexdigest()


def _check_rules(state: RunState) -> Mapping[str, str]:
    """Reject unsound rules, or note why some are not known to be sound, if that is allowed."""

    def verify(rules: Sequence[Rule]) -> list[Verdict]:
        from relational_tensat.rules.soundness import verify_rules

        state.phases.progress.phase("verify rules")
        return verify_rules(rules, shrink=False)

    allow_unsound = state.options.rules.allow_unsound
    return check_trust(state.rules, allow_unsound=allow_unsound, verify=verify).untrusted


def _record(state: RunState) -> None:
    """Write how the run was requested, for another process that goes on with it."""
    from relational_tensat.run.resume.record import RunRecord, write_record  # few runs need it

    record = RunRecord.of(
        state.options,
        state.source,
        state.graph,
        own_costs=state.has_own_costs,
        is_dynamic=state.stays_dynamic,
    )
    write_record(state.egraph.database, record)
