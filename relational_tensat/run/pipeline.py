"""The whole run: load, explore, extract, verify, write."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from relational_tensat.base.paths import check_database, check_output
from relational_tensat.cost import (
    CostModel,
    CostSource,
    Device,
    Unmeasurable,
    as_source,
    ask_for_graph,
    graph_cost_us,
    open_source,
)
from relational_tensat.cost.end_to_end import WholeTiming
from relational_tensat.extract import relative_gap
from relational_tensat.formats import load_model, save_model
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.gate import check_trust
from relational_tensat.rules.soundness.verdict import Verdict
from relational_tensat.run import resume as resuming
from relational_tensat.run.checking import check_result
from relational_tensat.run.choosing import settle
from relational_tensat.run.end_to_end import time_on_device
from relational_tensat.run.options import Options
from relational_tensat.run.phases import Phases
from relational_tensat.run.progress import Progress, Silent
from relational_tensat.run.result import ExtractionSummary, Result
from relational_tensat.run.searching import search
from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.sharing import share_equal_weights
from relational_tensat.verify import Verification
from relational_tensat.verify.given import load_inputs


def optimize(
    model: Graph | str | Path,
    options: Options | None = None,
    *,
    output: str | Path | None = None,
    cost_model: CostModel | None = None,
    progress: Progress | None = None,
) -> Result:
    """Find the cheapest graph that computes the same as ``model``, and prove both.

    Args:
        model: a graph, or the path of a ``.json`` or ``.onnx`` model.
        options: rules, limits, extractor, cost profile, …; see ``Options``.
        output: where the optimized model is written, ``.json`` or ``.onnx``; None writes nothing.
        cost_model: one's own source of costs, instead of the one in ``options``.
        progress: is told of every step.

    Returns:
        The graph, its cost before and after, and how it was found. It never costs more than the
        original: where nothing cheaper is found, or what was found is slower whole on the device that
        costs are measured on, the original is returned.

    Raises:
        UsageError: a rule, profile, dimension or input does not exist, or a path is unusable.
        InputError: the model, a rule file, a profile or an input file cannot be used.
        VerificationError: the optimized graph computes something else; nothing is written.
        NoSolutionError: no graph could be extracted within the limits.
        UnsoundRuleError: a rule united two classes of different types.
        MissingDependencyError: the device that costs are to be measured on is not here.
        KeyboardInterrupt: Ctrl-C while measuring; what was measured is kept, as its text says.
    """
    run = _Run(options or Options(), progress or Silent())
    check_database(run.options.output.db)
    return run.carry_out(lambda: resuming.FoundModel(model, run.load(model)), output, cost_model)


def resume(
    db: str | Path,
    model: Graph | str | Path | None = None,
    *,
    output: str | Path | None = None,
    cost_model: CostModel | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Result:
    """Resume a run with the option ``db`` whose process was killed, and bring it to its end.

    It goes on after the last iteration that was complete (or after the multi-pattern rules of the next)
    to the e-graph that the run would have reached, with the run's own options. A run whose exploration
    had ended is extracted from.

    Args:
        db: the run's database.
        model: where the run's model is now, if not where it was, or the graph that it was.
        output: where the optimized model is written; None for where the run was to write it.
        cost_model: the run's own source of costs, if it had one.
        progress: every step is reported to it.
        changes: options that are not the run's: ``time_limit_s``, ``extract_time_limit_s``,
            ``memory_limit``, ``threads``. Time is counted from now on.

    Raises:
        UsageError, InputError, VerificationError, NoSolutionError, UnsoundRuleError: as ``optimize``.
        InputError: also, ``db`` is no run's database, another process is using it, the run had not begun
            to explore, or its rules, its model, or the file that its costs are from have changed since.
    """
    stored = resuming.read_run(Path(db))
    options = stored.options(**changes)
    stored.check_costs(own=cost_model is not None)
    run = _Run(options, progress or Silent(), stored)
    return run.carry_out(
        lambda: stored.find_model(model, run.load), output or stored.record.output, cost_model
    )


class _Run:
    """The phases of one run."""

    def __init__(
        self, options: Options, progress: Progress, stored: resuming.StoredRun | None = None
    ) -> None:
        """Prepare a run.

        Args:
            stored: what another process has done of it.
        """
        self.options = options
        self.phases = Phases(progress)
        self.stored = stored

    def carry_out(
        self,
        find_model: Callable[[], resuming.FoundModel],
        output: str | Path | None,
        cost_model: CostModel | None,
    ) -> Result:
        """Do all phases; see ``optimize`` and ``resume``."""
        started = time.perf_counter()
        cost = as_source(cost_model) if cost_model else self.open_costs()
        found_model = find_model()
        with self.phases.phase("load"):
            rules = self.load_rules()
        model, graph = found_model.model, found_model.graph
        target = check_output(output, model)
        given = load_inputs(graph, self.options.verification.inputs)
        with self.phases.phase("load"):
            untrusted = self.check_rules(rules)
        shared = share_equal_weights(graph)
        cost.suit(shared)
        ask_for_graph(cost, graph)
        record = None
        if self.stored is None and self.options.output.db is not None:
            own = cost_model is not None
            record = resuming.RunRecord.of(self.options, model, graph, target, own_costs=own)
        found = search(
            shared, rules, cost, self.options, self.phases, record=record, stored=self.stored
        )
        ask_for_graph(cost, found.graph)
        source = None if isinstance(model, Graph) else Path(model)
        settled = settle(
            shared,
            found.graph,
            cost,
            lambda chosen: self.check(shared, chosen, given, source, target),
            lambda folded: self.time_whole(shared, folded, given, cost.device),
        )
        if settled.keeps_original and self.options.output.db is not None:
            resuming.remember_kept_original(self.options.output.db, settled.notes[-1])
        if target is not None:
            with self.phases.phase("write"):
                save_model(settled.folded, target)
        seconds = self.phases.seconds | {
            "measure": cost.measuring_s, "total": time.perf_counter() - started,
        }  # fmt: skip
        was = "" if self.stored is None else self.stored.said
        before, after = graph_cost_us(graph, cost), graph_cost_us(settled.graph, cost)
        said = (was, found_model.note, *settled.notes, found.extraction.note, *cost.notes)
        bound = min(found.extraction.bound_us, after)
        return Result(
            model=str(model) if isinstance(model, str | Path) else model.name,
            graph=settled.folded,
            original=graph,
            cost_profile=cost.name,
            cost_before_us=before,
            cost_after_us=after,
            bound_us=bound,
            gap=relative_gap(after, bound),
            optimal=found.extraction.optimal and not settled.keeps_original,
            extractor=found.extraction.method,
            e_nodes=found.e_nodes,
            e_classes=found.e_classes,
            iterations=found.exploration.iterations,
            statements=found.exploration.statements,
            stop_reason=found.exploration.stop_reason,
            rules=found.exploration.rules,
            rules_used={} if settled.graph is shared else found.rules_used,
            log=found.exploration.log,
            extraction=ExtractionSummary.of(found.extraction),
            extractions=found.extractions,
            time_spent=found.time_spent,
            blocks=found.blocks,
            seconds=seconds,
            verification=settled.verification,
            output=target,
            notes=tuple(filter(None, said)),
            resumed_after=None if self.stored is None else self.stored.iteration,
            untrusted_rules=untrusted,
            costs=cost.counts,
            whole=settled.whole,
        )

    def check(
        self,
        original: Graph,
        chosen: Graph,
        given: Mapping[str, Array],
        source: Path | None,
        target: Path | None,
    ) -> tuple[Graph, Verification]:
        """Fold and verify a graph; see ``check_result``."""
        with self.phases.phase("verify"):
            return check_result(original, chosen, given, self.options, source=source, target=target)

    def time_whole(
        self, original: Graph, folded: Graph, given: Mapping[str, Array], device: Device | None
    ) -> WholeTiming | Unmeasurable | None:
        """Time original and optimized graph, if that is wanted and the device is here."""
        if device is None or not self.options.costs.end_to_end:
            return None
        with self.phases.phase("whole"):
            return time_on_device(device, original, folded, given, self.options.process.seed)

    def open_costs(self) -> CostSource:
        """Open what the options name; nothing is measured yet."""
        costs = self.options.costs
        return open_source(costs.source, cache=costs.cache, watch=self._measuring)

    def _measuring(self, done: int, total: int) -> None:
        self.phases.progress.measuring(done, total)

    def load_rules(self) -> list[Rule]:
        options = self.options.rules
        rules = load_rules(options.files or None, options.only, options.skip)
        if self.stored is not None:
            self.stored.check_rules(rules)
        return rules

    def check_rules(self, rules: list[Rule]) -> Mapping[str, str]:
        """Refuse unsound rules, or say why some are not known to be sound, if that is allowed."""
        trust = check_trust(
            rules, allow_unsound=self.options.rules.allow_unsound, verify=self._verify_rules
        )
        return trust.untrusted

    def _verify_rules(self, rules: Sequence[Rule]) -> list[Verdict]:
        from relational_tensat.rules.soundness import verify_rules

        self.phases.progress.phase("verify rules")
        return verify_rules(rules, shrink=False)

    def load(self, model: Graph | str | Path) -> Graph:
        if isinstance(model, Graph):
            return model
        with self.phases.phase("load"):
            return load_model(Path(model), dict(self.options.model.dims))
