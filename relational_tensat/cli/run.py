"""``run``: optimize a model, or, with ``--resume``, continue from what a run's database has."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.base.option import options_in
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cli.closed_output import write_line
from relational_tensat.cli.parser import Parser, add_tree, written_values
from relational_tensat.cli.process_limits import limit_blas_threads
from relational_tensat.formats.frontend import MODEL
from relational_tensat.run.options import Options, resumable_options

if TYPE_CHECKING:
    from relational_tensat.base.outputs import DefaultOutput
    from relational_tensat.run.progress import Progress
    from relational_tensat.run.result import Result

#: The ten options that most people need, each as it is written; ``--help-all`` has all.
_SHORT_HELP = """usage: relational-tensat run MODEL [options]

Make a model faster: find the cheapest graph that computes the same, check it, write it.

  MODEL                 a .onnx model, or a .json one
  -o faster.onnx        where to write [MODEL.opt.onnx in the current folder]
  --for onnxruntime     where the result will run: onnxruntime (this CPU), cuda (the GPU here), or
                        modelled: t4, a100, h100, h200 [onnxruntime for .onnx, t4 for .json]
  --effort high         low: time nothing; normal: time the result, for about 10 s;
                        high: time every kernel, too, for minutes [normal]
  --dim batch=1,seq=64  the sizes to optimize for, where dimensions are dynamic
  --time-limit 30       seconds of exploration [7 for onnxruntime and cuda, else 60]
  --fuse                make parts of the model one kernel each, modelled
  --rules mine.rules    use these rules instead of those that ship
  --db run.duckdb       keep the run, for explain, sql, inspect and view
  --view run.html       write a page that shows the run
  --json                print the result as one JSON object

-q prints one line, -v all details.
All options: relational-tensat run --help-all
"""


def run_arguments(parser: Parser) -> None:
    """Declare the flags of ``run``."""
    parser.short_help = _SHORT_HELP
    parser.usage = "relational-tensat run MODEL [options]"
    parser.add_argument(
        "model", type=Path, nargs="?", metavar="MODEL",
        help="a .json or .onnx model; with --resume, where the run's model is now if it was moved",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=MODEL, metavar="FILE",
        help="where to write [NAME.opt.SUFFIX in the current folder, if nothing is there]",
    )  # fmt: skip
    parser.add_argument(
        "--resume", type=Path, metavar="DB",
        help="continue the run that --db kept here, killed or not, with its options; other values may be "
        "given for how it explores and extracts (--search focus), for where it writes (-o, --view, "
        "--kernels, --cost-cache), for threads and memory",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    parser.add_argument(
        "--json-events", action="store_true",
        help="instead of progress, print one JSON object a line on standard error: seconds, event "
        "(phase, region, iteration, incumbent, bound, extracted, measuring, raced), the phase and "
        "iteration it belongs to, and its values (incumbent and bound in µs)",
    )  # fmt: skip
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="no progress, and the result in one line"
    )
    parser.add_argument(
        "-v", "--verbose", "--details", action="store_true", dest="details",
        help="print all that is known of the run, and where its time went",
    )  # fmt: skip
    add_tree(parser, Options)


def run(args: argparse.Namespace) -> int:
    """Optimize the model, or continue a run, and print the result."""
    if args.quiet and args.details:
        raise UsageError("--quiet and --verbose are both given, expected one of the two")
    limit_blas_threads(int(getattr(args, "threads", ProcessOptions().threads)))
    checked = None if args.resume is not None else _checked_options(args)
    with _progress(args) as progress:
        if checked is None:
            result = _resumed(args, progress)
        else:
            from relational_tensat.base.outputs import default_output
            from relational_tensat.run.pipeline import optimize

            output = args.output or default_output(args.model, force=checked.output.force)
            result = optimize(args.model, checked, output=output, progress=progress)
    _print(result, args)
    return 0


def _resumed(args: argparse.Namespace, progress: Progress) -> Result:
    """Continue a run to its end.

    Raises:
        UsageError: a flag is given that is the run's own to choose.
    """
    changes = written_values(args, resumable_options())
    given = (option for _, option in options_in(Options) if hasattr(args, option.name))
    for option in given:
        if option.name not in changes:
            flag = f"--set {option.text_name}" if option.about.is_rare else option.flag
            raise UsageError(
                f"{flag} cannot be given with --resume: the run has its own, expected flags of how it "
                "explores and extracts, of where it writes, --threads or --memory-limit"
            )
    from relational_tensat.run.pipeline import resume

    output = args.output or _default_output(args.resume, args.model)
    return resume(args.resume, args.model, output=output, progress=progress, **changes)


def _default_output(db: Path, model: Path | None) -> Path | DefaultOutput:
    """Return the place of a result that nobody named one for, called as the model or else the database.

    Raises:
        UsageError: something is there.
    """
    from relational_tensat.base.outputs import default_output
    from relational_tensat.formats.frontend import FRONTENDS
    from relational_tensat.run.resume.run_tables import read_run

    if model is None:
        stored = read_run(db).record.model
        is_known = stored is not None and stored.suffix.lower() in FRONTENDS
        model = db.with_suffix(stored.suffix if stored is not None and is_known else ".json")
    return default_output(model)


def _checked_options(args: argparse.Namespace) -> Options:
    """Return the options; all that the words say is checked before what a run needs is imported.

    Raises:
        UsageError, InputError: there is no such option, value or model.
    """
    if args.model is None:
        raise UsageError("expected MODEL, or --resume DB (see relational-tensat run --help)")
    options = _options(args)
    from relational_tensat.formats.frontend import check_model

    check_model(args.model)
    return options


def _progress(args: argparse.Namespace) -> AbstractContextManager[Progress]:
    """Return what the run reports to; on a terminal, it is shown while it is entered."""
    if args.json_events:
        from relational_tensat.cli.run_progress import RunEvents

        return nullcontext(RunEvents(sys.stderr))
    if args.quiet:
        from relational_tensat.run.progress import Silent

        return nullcontext(Silent())
    from relational_tensat.cli.console import stderr_console
    from relational_tensat.cli.run_progress import shown_progress

    return shown_progress(stderr_console(), details=args.details)


def _options(args: argparse.Namespace) -> Options:
    return Options.of(**written_values(args, (option for _, option in options_in(Options))))


def _print(result: Result, args: argparse.Namespace) -> None:
    if args.json:
        from relational_tensat.cli.run_text import json_report

        sys.stdout.write(json_report(result) + "\n")
        return
    from relational_tensat.cli.run_text import print_report, summary_line

    if args.quiet:
        write_line(summary_line(result))
        return
    from relational_tensat.cli.console import stdout_console

    has_page = hasattr(args, "view") or hasattr(args, "db")
    next_step = "" if has_page else "to see each step: --view run.html"
    print_report(result, stdout_console(), details=args.details, next_step=next_step)
