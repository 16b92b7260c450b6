"""``python -m bench exports``: models of today, exported on the spot, optimized and compared."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bench.exports.catalogue import EXPORTS, HELD_OUT, OF_A_DAY, OF_FAMILIES
from relational_tensat.base.errors import UsageError, VerificationError

if TYPE_CHECKING:
    from bench.exports.cold_warm import ColdWarm
    from bench.exports.kept_timings import Kept
    from bench.exports.models import Made
    from bench.exports.of_a_day import DayRow
    from bench.exports.times import Timing

    _Row = TypeVar("_Row", bound=Timing | ColdWarm | DayRow)

RESULTS = Path(__file__).parents[1] / "results"

#: What is run with an empty cache, and again.
COLD_WARM_OPTIONS = ("--cost", "cpu", "--backend", "onnxruntime")
#: What is timed: costs of onnxruntime's kernels, and the race.
TIMED_OPTIONS = ("--cost", "analytic:cpu", "--backend", "onnxruntime", "--budget", "60")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("exports", help="optimize exports of today's models")
    add = parser.add_argument
    add("names", metavar="NAME", nargs="*", help="parts of the names of models; default: all")
    add("--python", metavar="PATH", help="an interpreter that has torch, torchvision, timm, transformers,"
        " diffusers, onnx, onnxscript and onnxruntime: it makes the models")  # fmt: skip
    add("--folder", type=Path, help="where the models are, or are kept; by default they are not")
    add("--limit", metavar="S", type=float, default=600.0, help="wall seconds of one run (600)")
    add(
        "--time",
        action="store_true",
        help="time the files instead: the original's, ours, the peers'",
    )
    add(
        "--cold-warm",
        action="store_true",
        help="run each twice with costs measured here instead: with an empty cache, and again",
    )
    add(
        "--of-a-day",
        action="store_true",
        help="run models that default options were tried on instead, time the files again, and hold the"
        " reports against that",
    )
    add("--heats", type=int, default=10, help="heats that each file is in (10)")
    add("--threads", type=int, nargs="+", default=[1], help="of onnxruntime, each in turn (1)")
    add(
        "--kept",
        type=Path,
        metavar="FILE",
        help="with --time, --of-a-day or --cold-warm, write here what is timed, a model after the"
        " other, and do not time again what is here already: the command goes on where it was ended",
    )
    add("--minutes", type=float, metavar="M", help="with --time, --of-a-day or --cold-warm,"
        " begin no model later; the table has those that were timed")  # fmt: skip
    add("--note", default="", help="what the kept table says of the machine")
    add("--option", action="append", metavar="TEXT", help="of our runs; with --time instead of"
        f" {' '.join(TIMED_OPTIONS)}, and with --cold-warm, of {' '.join(COLD_WARM_OPTIONS)}")  # fmt: skip
    add(
        "--held-out",
        action="store_true",
        help="the models that nothing was made after, instead of the 25",
    )
    add("--families", action="store_true", help="forty models of ten families, instead of the 25")
    add("--save", action="store_true", help="keep the table in bench/results/")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Make, optimize and compare the models, print what became of them; 4 if one has a defect.

    Raises:
        UsageError: no model has such a name.
        InputError: a model is not there and cannot be made.
    """
    from bench.exports.models import make_all
    from bench.exports.report import markdown, save
    from bench.exports.trial import try_model

    parts = options.names or [""]
    models = EXPORTS
    for flag, others in (("of_a_day", OF_A_DAY), ("held_out", HELD_OUT), ("families", OF_FAMILIES)):
        models = others if getattr(options, flag) else models
    exports = {e.name: e for part in parts for e in models if part in e.name}
    if not exports:
        raise UsageError(
            f"no model has {parts[0]!r} in its name: {', '.join(e.name for e in models)}"
        )
    if options.cold_warm:
        return run_all_twice(list(exports), options)
    if options.of_a_day:
        return try_all_of_the_day(list(exports), options)
    if options.time:
        return time_all(list(exports), options)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="relational-tensat-") as temporary:
        folder = options.folder or Path(temporary)
        for made in make_all(list(exports), folder, options.python):
            print(f"{made.name} ...", file=sys.stderr, flush=True)
            export = exports[made.name]
            ours = _own_options(options, ())
            outcome = try_model(made, export.library, export.variant, ours, options.limit)
            outcomes.append(outcome)
            for defect in outcome.defects():
                print(f"  {defect}", file=sys.stderr, flush=True)
    print(markdown(outcomes))
    if options.save:
        print(f"saved {save(outcomes, RESULTS, date.today(), _stem(options))}", file=sys.stderr)
    return VerificationError.exit_code if any(o.defects() for o in outcomes) else 0


def time_all(names: list[str], options: argparse.Namespace) -> int:
    """Time models' files, print the table.

    Raises:
        MissingDependencyError: they shall be kept, and what draws their plot is not installed.
    """
    from bench.common.plots import check_plotting
    from bench.exports.kept_timings import Kept, read_timing
    from bench.exports.times import time_model
    from bench.exports.timing_report import markdown as table
    from bench.exports.timing_report import save as save_timings

    if options.save:
        check_plotting()
    ours = _own_options(options, TIMED_OPTIONS)
    setting = {"options": ours, "heats": options.heats, "threads": options.threads}
    kept = Kept(options.kept, {**setting, "commit": _commit()}, read_timing)
    timings = _each_once(
        names,
        options,
        kept,
        lambda made: time_model(made, ours, options.heats, options.threads, options.limit),
    )
    print(table(timings))
    if options.save:
        path = save_timings(timings, RESULTS, ours, options.note, stem=_stem(options))
        print(f"saved {path}", file=sys.stderr)
    return 0


def try_all_of_the_day(names: list[str], options: argparse.Namespace) -> int:
    """Run models by default options, time the files again, print the table; 4 if one is slower."""
    from bench.exports.kept_timings import Kept
    from bench.exports.of_a_day import markdown as table
    from bench.exports.of_a_day import read_row, try_of_the_day
    from bench.exports.of_a_day import save as save_rows

    threads = options.threads[0]
    ours = _own_options(options, ("--threads-at-inference", str(threads)))
    setting = {"options": ours, "heats": options.heats, "threads": threads, "commit": _commit()}
    kept = Kept(options.kept, setting, read_row)
    rows = _each_once(
        names,
        options,
        kept,
        lambda made: [try_of_the_day(made, ours, options.heats, threads, options.limit)],
    )
    print(table(rows))
    if options.save:
        print(f"saved {save_rows(rows, RESULTS, ours, threads, options.note)}", file=sys.stderr)
    return VerificationError.exit_code if any(row.failure or row.is_slower for row in rows) else 0


def run_all_twice(names: list[str], options: argparse.Namespace) -> int:
    """Run models with an empty cache and again, print the table; 4 if a run failed."""
    from bench.exports.cold_warm import markdown as table
    from bench.exports.cold_warm import run_twice
    from bench.exports.cold_warm import save as save_runs
    from bench.exports.kept_timings import Kept, read_cold_warm

    ours = _own_options(options, COLD_WARM_OPTIONS)
    kept = Kept(options.kept, {"options": ours, "commit": _commit()}, read_cold_warm)
    rows = _each_once(names, options, kept, lambda made: [run_twice(made, ours, options.limit)])
    print(table(rows))
    if options.save:
        path = save_runs(rows, RESULTS, ours, options.note, stem=_stem(options))
        print(f"saved {path}", file=sys.stderr)
    return VerificationError.exit_code if any(r.cold.failure or r.warm.failure for r in rows) else 0


def _own_options(options: argparse.Namespace, usual: tuple[str, ...]) -> list[str]:
    return [text for each in options.option or () for text in each.split()] or [*usual]


def _stem(options: argparse.Namespace) -> str:
    """Return what the names of kept files begin with."""
    kind = "-held-out" if options.held_out else "-families" if options.families else ""
    return f"exports{kind}"


def _commit() -> Any:
    from bench.common.result_file import provenance

    return provenance({})["commit"]


def _each_once(
    names: list[str],
    options: argparse.Namespace,
    kept: Kept[_Row],
    timed: Callable[[Made], list[_Row]],
) -> list[_Row]:
    """Return the rows of models: those that are kept, and of the others while there is time."""
    from bench.exports.models import make_all

    start_s = time.monotonic()
    rows: list[_Row] = []
    with tempfile.TemporaryDirectory(prefix="relational-tensat-") as temporary:
        for made in make_all(names, options.folder or Path(temporary), options.python):
            own = kept.of(made.name)
            if not own:
                if options.minutes and time.monotonic() - start_s > 60 * options.minutes:
                    print(f"{made.name}: not timed, the time is over", file=sys.stderr)
                    continue
                print(f"{made.name} ...", file=sys.stderr, flush=True)
                own = timed(made)
                kept.keep(made.name, own)
            rows += own
    return rows
