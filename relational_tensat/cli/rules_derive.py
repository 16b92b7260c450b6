"""``rules derive``: do the rules that ship prove the rules of a file?"""

from __future__ import annotations

import argparse
from pathlib import Path

from relational_tensat.cli.parser import Parser, seconds, whole_number
from relational_tensat.cli.rules_frame import add_json, add_rule_files, add_seed, collect, report

HELP = "report for each rule of a file whether the rules that ship prove its two sides equal"

_MISSING = 4


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules derive``."""
    parser.add_argument(
        "file", type=Path, metavar="FILE",
        help="a rule file or folder",
    )  # fmt: skip
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="derive these rules only; NAME is also NAME[…]"
    )
    add_rule_files(parser, "--rules", "PATH", "derive from ")
    parser.add_argument(
        "--time-limit", type=seconds, default=30.0, metavar="S",
        help="seconds for a rule [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--node-limit", type=whole_number, default=10_000, metavar="N",
        help="at most so many e-nodes in an e-graph [%(default)s]",
    )  # fmt: skip
    add_seed(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Derive and report; 4 where a rule is not derived."""
    from relational_tensat.cli.rules_text import derivations_json, print_derivations
    from relational_tensat.explore.derivation import DerivationEffort, derive_rules
    from relational_tensat.rules.library import load_rules
    from relational_tensat.rules.soundness import verify_rules
    from relational_tensat.rules.soundness.gate import check_trust

    rules = load_rules([args.file], only=args.names)
    laws = load_rules(args.rules or None)
    if args.rules:  # those that ship are known to be sound; what is not proves nothing
        check_trust(laws, verify=lambda unknown: verify_rules(unknown, shrink=False))
    effort = DerivationEffort(
        e_nodes=max(args.node_limit, 1), seconds=args.time_limit, seed=args.seed
    )
    derived = derive_rules(rules, laws, effort)
    derivations = collect(
        derived,
        lambda count, last: f"{count} of {len(rules)} rules tried, the last one {last.rule}",
        as_json=args.json,
    )
    report(
        lambda: derivations_json(derivations),
        lambda console: print_derivations(derivations, len(laws), console),
        as_json=args.json,
    )
    return 0 if all(subject.derived for subject in derivations) else _MISSING
