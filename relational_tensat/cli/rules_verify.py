"""``rules verify``: are the rules true? On random instances, exactly, with counterexamples."""

from __future__ import annotations

import argparse
import time

from relational_tensat.base.outputs import Written
from relational_tensat.cli.parser import Parser, whole_number
from relational_tensat.cli.rules_frame import add_json, add_rule_files, add_seed, collect, report

HELP = "try rules on random operands, exactly; print the smallest counterexample of what is wrong"

_FAILED = 4


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules verify``."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="verify these rules only; NAME is also NAME[…]"
    )
    add_rule_files(parser, "--file", "F")
    parser.add_argument(
        "--trials", type=whole_number, metavar="N",
        help="configurations to try a rule on at least; more, while they bring something new [80]",
    )  # fmt: skip
    add_seed(parser)
    parser.add_argument(
        "--jobs", type=whole_number, default=0, metavar="N",
        help="processes; 0 for one per core [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--record", type=Written("verdicts on rules", (".json",)), metavar="FILE",
        help="write the verdicts here: rules/verdicts.json are those of the rules that ship",
    )  # fmt: skip
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Verify and report; 4 where a rule is unsound or untested."""
    from relational_tensat.base.process import processors
    from relational_tensat.cli.rules_text import print_verdicts, verdicts_json
    from relational_tensat.rules.library import load_rules
    from relational_tensat.rules.soundness.content import content_hash
    from relational_tensat.rules.soundness.parallel import verified
    from relational_tensat.rules.soundness.rule_verification import DEFAULT_TRIALS
    from relational_tensat.rules.soundness.store import keep_verdicts, write_verdicts
    from relational_tensat.rules.targets.backend import all_rule_files, know_kernels

    know_kernels()
    rules = load_rules(args.file or all_rule_files(), only=args.names)
    start_s = time.monotonic()
    results = verified(
        rules,
        seed=args.seed,
        trials=DEFAULT_TRIALS if args.trials is None else args.trials,
        on=f"processes:{args.jobs or processors()}",
    )
    timed = collect(
        results,
        lambda count, last: f"{count} of {len(rules)} rules verified, last {last.verdict.rule}",
        as_json=args.json,
    )
    seconds = time.monotonic() - start_s
    verdicts = {
        content_hash(rule): result.verdict for rule, result in zip(rules, timed, strict=True)
    }
    if args.record is not None:
        write_verdicts(args.record, verdicts)
    if args.trials is None or args.trials >= DEFAULT_TRIALS:
        keep_verdicts(verdicts)
    report(
        lambda: verdicts_json(timed, seconds),
        lambda console: print_verdicts(timed, seconds, console),
        as_json=args.json,
    )
    return 0 if all(result.verdict.status == "sound" for result in timed) else _FAILED
