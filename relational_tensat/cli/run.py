"""``run``: optimize a model."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.cli.parser import (
    Parser,
    dimensions,
    input_file,
    merged,
    one_of,
    seconds,
    whole_number,
)
from relational_tensat.cli.run_resume import WITH_RESUME, resumed
from relational_tensat.run.options import (
    BLOCKS,
    CYCLE_FILTERS,
    EXTRACTORS,
    ILP_CYCLES,
    MULTI_SCHEDULES,
    Options,
)

if TYPE_CHECKING:
    from relational_tensat.run.progress import Progress
    from relational_tensat.run.result import Result

HELP = "optimize a model: explore its rewritings, extract the cheapest, verify it, write it"

_DEFAULTS = Options()

#: What NumPy's matrix products, which verify, take as many threads as. They wait for each other by
#: spinning: on cores that are not idle, more are slower.
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``run``."""
    parser.add_argument(
        "model", type=Path, nargs="?", metavar="MODEL",
        help="a .json or .onnx model; with --resume, where the run's model is now if it was moved",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, help="where to write [NAME.opt.SUFFIX beside the model]"
    )
    parser.add_argument(
        "--resume", type=Path, metavar="DB",
        help="take up the killed run whose --db this is, after its last complete iteration and with its "
        f"options; beside this only {', '.join(WITH_RESUME)} may be given",
    )  # fmt: skip
    parser.add_argument(
        "--dim", type=dimensions, action="append", default=[], metavar="NAME=SIZE,…",
        help="sizes of the model's dynamic dimensions",
    )  # fmt: skip
    _add_rule_arguments(parser)
    _add_limit_arguments(parser)
    _add_search_arguments(parser)
    parser.add_argument(
        "--input", type=input_file, action="append", default=[], metavar="NAME=FILE.npy",
        help="verify with this input instead of random ones (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--verify-runs", type=whole_number, default=_DEFAULTS.verify_runs, metavar="N",
        help="random inputs per set of weights [2, or 1 over 5 Gflop]",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    parser.add_argument(
        "--json-events", action="store_true",
        help="instead of progress, print one JSON object a line on standard error: seconds, event "
        "(phase, iteration, incumbent, bound, extracted, measuring), the phase and iteration it "
        "belongs to, and its values (incumbent and bound in µs)",
    )  # fmt: skip
    parser.add_argument(
        "--profile", action="store_true",
        help="also print where the time went: by phase and SQL statement, and Python's share (in --json "
        "it always is: time_spent)",
    )  # fmt: skip
    parser.add_argument(
        "--quiet", action="store_true", help="no progress, and the result in one line"
    )


def _add_rule_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--rules", type=Path, action="append", default=[], metavar="PATH",
        help="a rule file or folder, instead of the rules that ship (repeatable)",
    )  # fmt: skip
    for flag, text in (("--only", "use this rule"), ("--skip", "leave this rule out")):
        parser.add_argument(
            flag, action="append", default=[], metavar="RULE", help=f"{text} (repeatable)"
        )
    parser.add_argument(
        "--allow-unsound", action="store_true", help="take rules that are not known to be sound"
    )


def _add_limit_arguments(parser: Parser) -> None:
    default = "[%(default)s]"
    parser.add_argument(
        "--iterations", type=whole_number, default=_DEFAULTS.iterations, metavar="N",
        help=f"at most so many iterations {default}",
    )  # fmt: skip
    parser.add_argument(
        "--multi-iterations", type=whole_number, default=_DEFAULTS.multi_iterations, metavar="N",
        help=f"iterations in which multi-pattern rules take part {default}",
    )  # fmt: skip
    parser.add_argument(
        "--node-limit", type=whole_number, default=_DEFAULTS.node_limit, metavar="N",
        help=f"at most so many e-nodes {default}",
    )  # fmt: skip
    parser.add_argument(
        "--time-limit", type=seconds, default=_DEFAULTS.time_limit_s, metavar="S",
        help=f"seconds of exploration {default}",
    )  # fmt: skip
    parser.add_argument(
        "--extract-time-limit", type=seconds, default=_DEFAULTS.extract_time_limit_s, metavar="S",
        help=f"seconds of extraction {default}",
    )  # fmt: skip
    parser.add_argument(
        "--extract-every", type=whole_number, default=_DEFAULTS.extract_every, metavar="N",
        help=f"extract after every N iterations as well, as long as they took; 0: never {default}",
    )  # fmt: skip
    parser.add_argument(
        "--stop-unmoved", type=whole_number, default=_DEFAULTS.stop_unmoved, metavar="K",
        help="explore no further when K such extractions in a row find nothing cheaper; "
        f"0: never {default}",
    )  # fmt: skip
    parser.add_argument("--memory-limit", metavar="SIZE", help="of the database, e.g. 2GB")
    parser.add_argument(
        "--temp-directory", type=Path, metavar="DIR",
        help="where what does not fit into it goes [beside --db, or the system's]",
    )  # fmt: skip


def _add_search_arguments(parser: Parser) -> None:
    default = "[%(default)s]"
    for flag, known, value, text in (
        ("--cycle-filter", CYCLE_FILTERS, _DEFAULTS.cycle_filter, "how cycles are kept out"),
        ("--multi-schedule", MULTI_SCHEDULES, _DEFAULTS.multi_schedule, "when multi rules match"),
        ("--blocks", BLOCKS, _DEFAULTS.blocks, "whether blocks that recur are explored only once"),
        ("--extractor", EXTRACTORS, _DEFAULTS.extractor, "how the graph is chosen"),
        ("--ilp-cycles", ILP_CYCLES, _DEFAULTS.ilp_cycles, "how the ILP is kept acyclic"),
    ):
        parser.add_argument(
            flag, type=one_of(flag.lstrip("-").replace("-", " "), known), default=value,
            metavar="NAME", help=f"{text}: {', '.join(known)} {default}",
        )  # fmt: skip
    parser.add_argument(
        "--without", action="append", default=[], metavar="TECHNIQUE",
        help="leave out a reduction or cut of the ILP, for comparison (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--cost", default=_DEFAULTS.cost, metavar="SOURCE",
        help="what costs are from: analytic:PROFILE (a name or a .toml file), cpu or cuda (measured "
        "here; cpu:all with onnxruntime's own optimizations, cuda:tf32 on tensor cores), "
        f"table:TABLE (a name or a .parquet file); a profile or table alone, too {default}",
    )  # fmt: skip
    parser.add_argument(
        "--cost-cache", type=Path, metavar="FILE",
        help="keep measured costs here [in the user's cache folder]",
    )  # fmt: skip
    parser.add_argument(
        "--no-whole", action="store_true",
        help="with --cost cpu and cuda, go by the sums of single operators: without it, original and "
        "optimized graph are run whole on the device as well, in turn (some 5 s), and the original is "
        "written where it is faster beyond the noise",
    )  # fmt: skip
    parser.add_argument("--db", type=Path, metavar="FILE", help="keep the e-graph's database here")
    parser.add_argument(
        "--seed", type=whole_number, default=_DEFAULTS.seed, metavar="N",
        help=f"of everything drawn at random {default}",
    )  # fmt: skip
    parser.add_argument(
        "--threads", type=whole_number, default=_DEFAULTS.threads, metavar="N",
        help=f"of the database, the solver and verification {default}",
    )  # fmt: skip
    parser.add_argument(
        "--no-semi-naive", action="store_true", help="match everything anew in every iteration"
    )


def execute(args: argparse.Namespace) -> int:
    """Optimize the model, or take up a run that was killed, and print the result."""
    os.environ.setdefault(_BLAS_THREADS, str(max(args.threads, 1)))  # NumPy is not loaded yet
    result = _optimized(args) if args.resume is None else resumed(args, _progress(args))
    _print(result, args)
    return 0


def _optimized(args: argparse.Namespace) -> Result:
    if args.model is None:
        raise UsageError("expected MODEL, or --resume DB (see relational-tensat run --help)")
    options = _options(args)
    from relational_tensat.base.paths import check_model, default_output

    check_model(args.model)  # before all is imported that a run needs
    from relational_tensat.run.pipeline import optimize

    return optimize(
        args.model,
        options,
        output=args.output or default_output(args.model),
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
    return Options(
        rules=tuple(args.rules),
        only=tuple(args.only),
        skip=tuple(args.skip),
        allow_unsound=args.allow_unsound,
        iterations=args.iterations,
        multi_iterations=args.multi_iterations,
        multi_schedule=args.multi_schedule,
        node_limit=args.node_limit,
        time_limit_s=args.time_limit,
        memory_limit=args.memory_limit,
        temp_directory=args.temp_directory,
        cycle_filter=args.cycle_filter,
        semi_naive=not args.no_semi_naive,
        blocks=args.blocks,
        extractor=args.extractor,
        ilp_cycles=args.ilp_cycles,
        extract_time_limit_s=args.extract_time_limit,
        without=tuple(args.without),
        extract_every=args.extract_every,
        stop_unmoved=args.stop_unmoved,
        cost=args.cost,
        cost_cache=args.cost_cache,
        whole=not args.no_whole,
        dims=merged(args.dim, "--dim"),
        inputs=merged(args.input, "--input"),
        verify_runs=args.verify_runs,
        db=args.db,
        seed=args.seed,
        threads=args.threads,
    )


def _print(result: Result, args: argparse.Namespace) -> None:
    if args.json:
        from relational_tensat.cli.run_json import json_report

        sys.stdout.write(json_report(result) + "\n")
        return
    from relational_tensat.cli.run_text import print_report, summary_line

    if args.quiet:
        sys.stdout.write(summary_line(result) + "\n")
        return
    from relational_tensat.cli.console import stdout_console

    print_report(result, stdout_console(), profile=args.profile)
