"""``run``: optimize a model, or, with ``--resume``, go on from what a run's database has."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.base.option import options_in
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cli.parser import Parser, add_schema_flag, add_tree, written_values
from relational_tensat.cli.process_limits import limit_blas_threads
from relational_tensat.formats.frontend import MODEL
from relational_tensat.run.options import Options, resumable_options

if TYPE_CHECKING:
    from relational_tensat.base.outputs import DefaultOutput
    from relational_tensat.run.progress import Progress
    from relational_tensat.run.result import Result

_MAY_CHANGE = tuple(resumable_options())

#: The flags of ``run`` that may be given beside ``--resume``.
_BESIDE = {
    *("--resume", "-o", "--output", "--json", "--json-events", "--profile", "--quiet"),
    *(flag for option in _MAY_CHANGE for flag in (option.flag, *option.former_flags)),
}


def resumed(args: argparse.Namespace, progress: Progress) -> Result:
    """Go on with the run, to its end.

    Raises:
        UsageError: a flag is given that is the run's own to choose.
    """
    odd = [flag for flag in args.flags if flag not in _BESIDE]
    if odd:
        raise UsageError(
            f"{odd[0]} cannot be given with --resume: the run has its own, expected flags of how it "
            "explores and extracts, of where it writes, --threads or --memory-limit"
        )
    from relational_tensat.run.pipeline import resume

    changes = written_values(args, _MAY_CHANGE)
    output = args.output or _default_output(args.resume, args.model)
    return resume(args.resume, args.model, output=output, progress=progress, **changes)


def _default_output(db: Path, model: Path | None) -> Path | DefaultOutput:
    """Return the place of a result that nobody named one for, called as the model or else the database.

    Raises:
        UsageError: something is there.
    """
    from relational_tensat.base.outputs import default_output
    from relational_tensat.formats.frontend import FRONTENDS
    from relational_tensat.run.resume import read_run

    if model is None:
        stored = read_run(db).record.model
        is_known = stored is not None and stored.suffix.lower() in FRONTENDS
        model = db.with_suffix(stored.suffix if stored is not None and is_known else ".json")
    return default_output(model)


HELP = "optimize a model: explore its rewritings, extract the cheapest, verify it, write it"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``run``."""
    parser.add_argument(
        "model", type=Path, nargs="?", metavar="MODEL",
        help="a .json or .onnx model; with --resume, where the run's model is now if it was moved",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=MODEL,
        help="where to write [NAME.opt.SUFFIX in the current folder, if nothing is there]",
    )  # fmt: skip
    parser.add_argument(
        "--resume", type=Path, metavar="DB",
        help="go on with the run whose --db this is, killed or not, from what is there and with its "
        "options; other values may be given for how it explores and extracts (--search focus), where it "
        "writes (-o, --view, --kernels, --cost-cache), threads and memory",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    parser.add_argument(
        "--json-events", action="store_true",
        help="instead of progress, print one JSON object a line on standard error: seconds, event "
        "(phase, region, iteration, incumbent, bound, extracted, measuring, raced), the phase and "
        "iteration it belongs to, and its values (incumbent and bound in µs)",
    )  # fmt: skip
    parser.add_argument(
        "--profile", action="store_true",
        help="also print where the time went: by phase and SQL statement, and Python's share (in --json "
        "it always is: time_spent)",
    )  # fmt: skip
    parser.add_argument(
        "--quiet", action="store_true", help="no progress, and the result in one line"
    )
    add_schema_flag(parser, Options)
    add_tree(parser, Options)


def execute(args: argparse.Namespace) -> int:
    """Optimize the model, or go on with a run, and print the result."""
    limit_blas_threads(_threads(args))
    result = _optimize(args) if args.resume is None else resumed(args, _progress(args))
    _print(result, args)
    return 0


def _threads(args: argparse.Namespace) -> int:
    return int(getattr(args, "threads", ProcessOptions().threads))


def _optimize(args: argparse.Namespace) -> Result:
    if args.model is None:
        raise UsageError("expected MODEL, or --resume DB (see relational-tensat run --help)")
    options = _options(args)
    from relational_tensat.base.outputs import default_output
    from relational_tensat.formats.frontend import check_model

    check_model(args.model)  # before all is imported that a run needs
    from relational_tensat.run.pipeline import optimize

    return optimize(
        args.model,
        options,
        output=args.output or default_output(args.model, force=options.output.force),
        progress=_progress(args),
    )


def _progress(args: argparse.Namespace) -> Progress:
    if args.json_events:
        from relational_tensat.cli.run_events import RunEvents

        return RunEvents(sys.stderr)
    if args.quiet:
        from relational_tensat.run.progress import Silent

        return Silent()
    from relational_tensat.cli.console import stderr_console
    from relational_tensat.cli.run_watch import ConsoleProgress

    return ConsoleProgress(stderr_console())


def _options(args: argparse.Namespace) -> Options:
    return Options.of(**written_values(args, (option for _, option in options_in(Options))))


def _print(result: Result, args: argparse.Namespace) -> None:
    if args.json:
        from relational_tensat.cli.run_text import json_report

        sys.stdout.write(json_report(result) + "\n")
        return
    from relational_tensat.cli.run_text import print_report, summary_line

    if args.quiet:
        sys.stdout.write(summary_line(result) + "\n")
        return
    from relational_tensat.cli.console import stdout_console

    print_report(result, stdout_console(), profile=args.profile)
