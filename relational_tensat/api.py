"""The whole run: load, explore, extract, verify, write."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from relational_tensat.cost import CostModel, graph_cost_us, load_profile
from relational_tensat.cost.graph import count_inference_ops
from relational_tensat.egraph import EGraph
from relational_tensat.errors import VerificationError
from relational_tensat.explore import Exploration, Limits, explore
from relational_tensat.extract import Extraction, extract, relative_gap
from relational_tensat.extract.tables import (
    choose,
    chosen_graph,
    extraction_problem,
    rules_of_chosen,
)
from relational_tensat.fold import fold_weights
from relational_tensat.graph import Array, Graph
from relational_tensat.graph.sharing import share_equal_weights
from relational_tensat.load import load_model, save_model
from relational_tensat.options import Options
from relational_tensat.paths import check_database, check_output
from relational_tensat.progress import Progress, Silent
from relational_tensat.result import Result
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.soundness.gate import check_trust
from relational_tensat.soundness.verdict import Verdict
from relational_tensat.verify import Verification, not_compared, verify, verify_files
from relational_tensat.verify.given import load_inputs
from relational_tensat.verify.reseed import can_reseed, reseed
from relational_tensat.verify.shrinking import RandomWeights

#: Costs are sums of floats: two graphs closer than this, relatively, cost the same.
COST_TOLERANCE = 1e-9

_NOT_RESEEDED = (
    "onnxruntime's comparison proves nothing with the model's own weights, and random ones were "
    "not tried: they are too large to be written for a check"
)


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
        cost_model: one's own source of costs, instead of the profile in ``options``.
        progress: is told of every step.

    Returns:
        The graph, its cost before and after, and how it was found. It never costs more than the
        original: where nothing cheaper is found, the original is returned.

    Raises:
        UsageError: a rule, profile, dimension or input does not exist, or a path is unusable.
        InputError: the model, a rule file, a profile or an input file cannot be used.
        VerificationError: the optimized graph computes something else; nothing is written.
        NoSolutionError: no graph could be extracted within the limits.
        UnsoundRuleError: a rule united two classes of different types.
    """
    run = _Run(options or Options(), progress or Silent())
    started = time.perf_counter()
    check_database(run.options.db)
    cost = cost_model or load_profile(run.options.cost)
    rules = run.load_rules()
    graph = run.load(model)
    target = check_output(output, model)
    given = load_inputs(graph, run.options.inputs)
    untrusted = run.check_rules(rules)
    shared = share_equal_weights(graph)
    found = run.search(shared, rules, cost)
    chosen, notes = _cheaper(shared, found.graph, cost)
    folded, verification = run.check(model, shared, chosen, given, target)
    if verification.failure():
        raise VerificationError(verification.failure())
    if target is not None:
        run.progress.phase("write")
        save_model(folded, target)
    run.seconds["total"] = time.perf_counter() - started
    before, after = graph_cost_us(graph, cost), graph_cost_us(chosen, cost)
    bound = min(found.extraction.bound_us, after)
    return Result(
        model=str(model) if isinstance(model, str | Path) else model.name,
        graph=folded,
        original=graph,
        cost_profile=cost.name,
        cost_before_us=before,
        cost_after_us=after,
        bound_us=bound,
        gap=relative_gap(after, bound),
        optimal=found.extraction.optimal,
        extractor=found.extraction.method,
        e_nodes=found.e_nodes,
        e_classes=found.e_classes,
        iterations=found.exploration.iterations,
        statements=found.exploration.statements,
        stop_reason=found.exploration.stop_reason,
        rules=found.exploration.rules,
        rules_used={} if chosen is shared else found.rules_used,
        log=found.exploration.log,
        seconds=run.seconds,
        verification=verification,
        output=target,
        notes=tuple(filter(None, (*notes, found.extraction.note))),
        untrusted_rules=untrusted,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What the search for a cheaper graph brought."""

    graph: Graph
    exploration: Exploration
    extraction: Extraction
    rules_used: Mapping[str, int]
    e_nodes: int
    e_classes: int


@dataclass(frozen=True, slots=True)
class _Files:
    """What is compared in onnxruntime; ``before`` is the original's file if that is ONNX."""

    original: Graph
    optimized: Graph
    folded: Graph
    before: Path | None


class _Run:
    """The phases of one run; each is timed under its name."""

    def __init__(self, options: Options, progress: Progress) -> None:
        self.options = options
        self.progress = progress
        self.seconds = dict.fromkeys(("load", "explore", "extract", "verify", "total"), 0.0)

    def load_rules(self) -> list[Rule]:
        options = self.options
        return load_rules(options.rules or None, options.only, options.skip)

    def check_rules(self, rules: list[Rule]) -> Mapping[str, str]:
        """Refuse unsound rules, or say why some are not known to be sound, if that is allowed."""
        trust = check_trust(
            rules, allow_unsound=self.options.allow_unsound, verify=self._verify_rules
        )
        return trust.untrusted

    def _verify_rules(self, rules: Sequence[Rule]) -> list[Verdict]:
        from relational_tensat.soundness import verify_rules

        with self._phase("load", told="verify rules"):
            return verify_rules(rules, shrink=False)

    def load(self, model: Graph | str | Path) -> Graph:
        if isinstance(model, Graph):
            return model
        with self._phase("load"):
            return load_model(Path(model), dict(self.options.dims))

    def search(self, graph: Graph, rules: list[Rule], cost: CostModel) -> _Found:
        """Explore all rewritings in the database, extract the cheapest graph."""
        options = self.options
        with self._phase("explore"):
            egraph = EGraph.create(
                graph, options.db, threads=options.threads, memory_limit=options.memory_limit
            )
        try:
            with self._phase("explore"):
                exploration = explore(
                    egraph,
                    rules,
                    Limits(
                        iterations=options.iterations,
                        multi_iterations=options.multi_iterations,
                        multi_schedule=options.multi_schedule,
                        e_nodes=options.node_limit,
                        seconds=options.time_limit_s,
                    ),
                    cycle_filter=options.cycle_filter,
                    semi_naive=options.semi_naive,
                    progress=self.progress.iteration,
                )
            with self._phase("extract"):
                table = extraction_problem(egraph, cost)
                extraction = extract(
                    table.problem,
                    options.extractor,
                    cycles=options.ilp_cycles,
                    time_limit_s=options.extract_time_limit_s,
                    threads=options.threads,
                    seed=options.seed,
                    progress=self.progress.extraction,
                )
                choose(egraph, table, extraction.choice)
                optimized = chosen_graph(egraph)
            e_nodes, e_classes = egraph.counts()
            used = rules_of_chosen(egraph)
        finally:
            egraph.close()
        return _Found(optimized, exploration, extraction, used, e_nodes, e_classes)

    def check(
        self,
        model: Graph | str | Path,
        original: Graph,
        optimized: Graph,
        given: Mapping[str, Array],
        target: Path | None,
    ) -> tuple[Graph, Verification]:
        """Fold the optimized graph, compare it with the original; return both outcomes."""
        options = self.options
        with self._phase("verify"):
            folded = fold_weights(optimized)
            outcome = verify(
                original,
                optimized,
                folded=folded,
                seed=options.seed,
                runs=options.verify_runs,
                inputs=given,
            )
            source = None if isinstance(model, Graph) else Path(model)
            if not outcome.failure() and (_is_onnx(source) or _is_onnx(target)):
                files = _Files(original, optimized, folded, source if _is_onnx(source) else None)
                outcome = outcome.joined(self._check_files(files, given, outcome.shrink))
            return folded, outcome

    def _check_files(self, files: _Files, given: Mapping[str, Array], shrink: int) -> Verification:
        """Compare in onnxruntime; where the model's own weights prove nothing, with random ones."""

        def compare(check: str, graph: Graph, file: Path | None, after: Graph) -> Verification:
            return verify_files(
                graph,
                _saved(graph, folder, "original") if file is None else file,
                _saved(after, folder, "optimized"),
                seed=self.options.seed,
                threads=self.options.threads,
                inputs=given,
                shrink=shrink,
                check=check,
            )

        with tempfile.TemporaryDirectory(prefix="relational-tensat-") as name:
            folder = Path(name)
            outcome = compare(
                "onnxruntime, the two files", files.original, files.before, files.folded
            )
            proven = any(check.proves_something for check in outcome.outputs)
            if outcome.failure() or proven or not outcome.runs:
                return outcome
            if not can_reseed(files.original):
                return outcome.joined(not_compared(_NOT_RESEEDED))
            weights = RandomWeights(files.original, self.options.seed, shrink)
            optimized = fold_weights(reseed(files.optimized, weights))
            original = reseed(files.original, weights)
            return outcome.joined(compare("onnxruntime, random weights", original, None, optimized))

    @contextmanager
    def _phase(self, name: str, told: str = "") -> Iterator[None]:
        """Announce a phase and add its wall-clock seconds to those of its name."""
        self.progress.phase(told or name)
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - begun


def _saved(graph: Graph, folder: Path, name: str) -> Path:
    path = folder / f"{name}.onnx"
    save_model(graph, path)
    return path


def _is_onnx(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() == ".onnx"


def _cheaper(original: Graph, optimized: Graph, cost: CostModel) -> tuple[Graph, tuple[str, ...]]:
    """Return the optimized graph unless the original is as good, and what to say about it."""
    before, after = graph_cost_us(original, cost), graph_cost_us(optimized, cost)
    if after < before * (1 - COST_TOLERANCE):
        return optimized, ()
    if after > before * (1 + COST_TOLERANCE):
        return original, (
            f"the extracted graph costs {after:.3f} µs, more than the original's {before:.3f}: "
            "the original is kept",
        )
    n_before = sum(count_inference_ops(original).values())
    if sum(count_inference_ops(optimized).values()) < n_before:
        return optimized, ()
    return original, ("no cheaper graph was found: the original is kept",)
