"""``rules import``: TASO's and TENSAT's rule files into the rule language, each rule judged."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.outputs import Written
from relational_tensat.cli.parser import Parser, whole_number
from relational_tensat.cli.rules_frame import add_json, add_seed, collect, report

if TYPE_CHECKING:
    from rich.console import Console

HELP = "read rules of TASO or TENSAT, report which are sound and under which condition, write them"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules import``."""
    parser.add_argument(
        "file", type=Path, metavar="FILE",
        help="TASO's graph_subst.pb, or TENSAT's converted.txt or converted_multi.txt",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        type=Written("rules", (".rules",)),
        metavar="OUT",
        help="write a rule file for `rules check`, …",
    )
    parser.add_argument(
        "--trials", type=whole_number, metavar="N",
        help="configurations that a rule is verified on [as many as `rules verify` tries]",
    )  # fmt: skip
    add_seed(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Import, report, write; what is unsound is reported and marked, and no failure of the command."""
    from relational_tensat.cli.rules_import_text import imports_json, print_imports
    from relational_tensat.rules.soundness import DEFAULT_TRIALS
    from relational_tensat.rules.taso import import_rules, write_judged

    output: Path | None = args.output
    trials = DEFAULT_TRIALS if args.trials is None else args.trials
    start_s = time.monotonic()
    results = import_rules(args.file, seed=args.seed, trials=trials)
    judgements = collect(
        results,
        lambda count, last: f"{count} rules judged, the last one {last.rule.name}",
        as_json=args.json,
    )
    seconds = time.monotonic() - start_s
    if output is not None:
        write_judged(output, judgements, args.file.name)

    def show(console: Console) -> None:
        print_imports(judgements, seconds, console)
        if output is not None:
            console.print(f"written to {output}")

    report(lambda: imports_json(judgements, args.file, output, seconds), show, as_json=args.json)
    return 0
