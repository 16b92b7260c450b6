"""``rules import``: TASO's and TENSAT's rule files into the rule language, each rule judged."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from relational_tensat.base.errors import UsageError
from relational_tensat.cli.parser import Parser, whole_number
from relational_tensat.cli.watching import watched

HELP = "read rules of TASO or TENSAT, say which are sound and under which condition, write them"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules import``."""
    parser.add_argument(
        "file", type=Path, metavar="FILE",
        help="TASO's graph_subst.pb, or TENSAT's converted.txt or converted_multi.txt",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="write a rule file for `rules check`, …"
    )
    parser.add_argument(
        "--trials", type=whole_number, metavar="N",
        help="configurations that a rule is verified on [as many as `rules verify` tries]",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N",
        help="of the operands that are drawn [%(default)s]",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def execute(args: argparse.Namespace) -> int:
    """Import, report, write; what is unsound is said and marked, and no failure of the command."""
    from relational_tensat.cli.console import stdout_console
    from relational_tensat.cli.rules_import_text import imports_json, print_imports
    from relational_tensat.rules.soundness import DEFAULT_TRIALS
    from relational_tensat.rules.taso import import_rules, write_judged

    output: Path | None = args.output
    if output is not None and output.resolve() == args.file.resolve():
        raise UsageError(f"-o {output} is the file that is imported, expected another name")
    if output is not None and not output.parent.is_dir():
        raise UsageError(f"-o {output}: {output.parent} is no folder, expected one that exists")
    trials = DEFAULT_TRIALS if args.trials is None else args.trials
    begin = time.monotonic()
    judged = import_rules(args.file, seed=args.seed, trials=trials)
    judgements = list(
        judged
        if args.json
        else watched(
            judged, lambda count, last: f"{count} rules judged, the last one {last.rule.name}"
        )
    )
    seconds = time.monotonic() - begin
    if output is not None:
        write_judged(output, judgements, args.file.name)
    if args.json:
        sys.stdout.write(json.dumps(imports_json(judgements, args.file, output, seconds)) + "\n")
    else:
        print_imports(judgements, seconds, stdout_console())
        if output is not None:
            stdout_console().print(f"written to {output}")
    return 0
