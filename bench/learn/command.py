"""``python -m bench learn``: each model searched as it is, and with what runs on all others have taught."""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from bench.common.arguments import add_cost, add_save
from bench.common.saving import RESULTS, report_saved, save_result
from bench.tensat.measure import stopwatch
from relational_tensat.base.checks import check_choice
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cost import Profile, load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.strategies.best_first import explore_best_first
from relational_tensat.explore.strategies.focus import explore_focus
from relational_tensat.extract import ExtractionOptions
from relational_tensat.extract.anytime import AnytimeExtractor
from relational_tensat.models import MODELS
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.run.needed import keep_needed
from relational_tensat.run.progress import Silent

#: Models on which the order of applications matters: others saturate within the limits.
HARD = ("bert", "nasrnn", "nasnet_a", "inception_v3", "vit_huge", "transformer_transducer")


@dataclass(frozen=True, slots=True)
class LearnRun:
    """What was measured.

    Attributes:
        learned_from: the other models; none where nothing was learned.
        cost_us: of the cheapest graph.
        cpu_s: CPU seconds of this process until then.
        best_cpu_s: of them, until the first graph as cheap was known.
    """

    model: str
    search: str
    learned_from: tuple[str, ...]
    seed: int
    cost_us: float
    cpu_s: float
    best_cpu_s: float


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser(
        "learn", help="a search with what runs on other models have taught"
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="[six models]")
    parser.add_argument(
        "--search", choices=("focus", "best-first"), default="focus", help="(focus)"
    )
    parser.add_argument("--node-limit", type=int, default=2_000, help="of a world (2000)")
    parser.add_argument("--cpu-seconds", type=float, default=10.0, help="of exploration (10)")
    parser.add_argument("--seeds", type=int, default=1, help="(1)")
    add_cost(parser, "tensat_t4")
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run each model without and with what the others have taught; print and keep costs and times.

    Raises:
        UsageError: a model or profile that does not exist.
    """
    models = [check_choice("model", name, MODELS) for name in options.models or HARD]
    profile, rules = load_profile(options.cost), load_rules()
    runs: list[LearnRun] = []
    print(f"{'model':>22} {'seed':>4} {'alone µs':>10} {'at s':>6} {'learned µs':>10} {'at s':>6}")
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.duckdb" for name in models}
        alone: dict[tuple[str, int], LearnRun] = {}
        for name in models:
            for seed in range(options.seeds):
                path = paths[name] if seed == 0 else None
                alone[name, seed] = _measure(name, {}, options, seed, rules, profile, path)
        for (name, seed), plain in alone.items():
            others = {other: path for other, path in paths.items() if other != name}
            taught = _measure(name, others, options, seed, rules, profile)
            runs += [plain, taught]
            print(
                f"{name:>22} {seed:4} {plain.cost_us:10.1f} {plain.best_cpu_s:6.1f} "
                f"{taught.cost_us:10.1f} {taught.best_cpu_s:6.1f}",
                flush=True,
            )
    if options.save:
        report_saved(save(runs, options, RESULTS))
    return 0


def save(runs: Sequence[LearnRun], options: argparse.Namespace, directory: Path) -> Path:
    """Write the runs with their settings, machine, versions and commit; return the file."""
    settings = {
        key: value
        for key, value in sorted(vars(options).items())
        if key not in ("command", "run", "save")
    }
    path = directory / f"learn-{date.today().isoformat()}-{options.search}.json"
    return save_result(path, {"settings": settings, "runs": [asdict(run) for run in runs]})


def _measure(
    model: str,
    earlier: Mapping[str, Path],
    options: argparse.Namespace,
    seed: int,
    rules: Sequence[Rule],
    profile: Profile,
    path: Path | None = None,
) -> LearnRun:
    """Search one model with one thread.

    Args:
        earlier: databases to learn from, by model.
        path: where its own is written, for others to learn from.
    """
    limits = ExplorationOptions(
        search=options.search,
        node_limit=options.node_limit,
        time_limit_s=None,
        learn_from=tuple(earlier.values()),
    )
    gc.collect()
    with stopwatch() as watch, closing(EGraph.create(MODELS[model](), path)) as egraph:
        started, moments = time.process_time(), [(0.0, 0.0)]
        extractor = AnytimeExtractor(
            egraph, profile, ExtractionOptions(), ProcessOptions(), Silent()
        )

        def after(_: int) -> str | None:
            best_us = extractor.log[-1].best_us if extractor.log else extractor.original_us
            moments.append((best_us, time.process_time() - started))
            return "time" if moments[-1][1] >= options.cpu_seconds else None

        observer = Observer(after=after, watch=extractor.watch)
        if options.search == "focus":
            exploration = explore_focus(egraph, rules, limits, extractor, observer, seed=seed)
        else:
            exploration = explore_best_first(
                egraph, rules, limits, extractor, seed=seed, observer=observer
            )
        extraction = extractor.finish(exploration.iterations)
        moments.append((extraction.cost_us, time.process_time() - started))
        if path is not None:
            keep_needed(egraph.database)
    cheap = [at for cost_us, at in moments[1:] if cost_us <= extraction.cost_us * (1 + 1e-9)]
    return LearnRun(
        model, options.search, tuple(earlier), seed, extraction.cost_us, watch.cpu_s, cheap[0]
    )
