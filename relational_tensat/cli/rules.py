"""``rules …``: list, show, check, derive and verify rewrite rules, and the words of their language."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError, unknown
from relational_tensat.base.outputs import Written
from relational_tensat.cli.closed_output import write_line
from relational_tensat.cli.common import (
    add_json,
    add_quiet,
    add_rule_files,
    add_seed,
    collect,
    report,
)
from relational_tensat.cli.parser import Parser, seconds, whole_number

if TYPE_CHECKING:
    import argparse

    from relational_tensat.rules.model import Rule

#: The exit code where a rule is not derived, or is unsound or untested.
_FAILED = 4


def list_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules list``."""
    add_rule_files(parser, "--rules", "PATH")


def list_rules(args: argparse.Namespace) -> int:
    """Print a line for each rule."""
    from relational_tensat.cli.console import stdout_console, table

    rules = _load(args.rules)
    rows = table("rule", "sources", "law", numbers=("sources",))
    for rule in rules:
        mark = " (unsound)" if rule.unsound else ""
        rows.add_row(rule.name, str(len(rule.sources)), rule.law + mark)
    console = stdout_console()
    console.print(rows)
    multi = sum(rule.is_multi for rule in rules)
    console.print(f"{len(rules)} rules, {multi} of them with several sources")
    return 0


def show_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules show``."""
    parser.add_argument("name", metavar="NAME", help="the name of a rule")
    parser.add_argument("--sql", action="store_true", help="print the SQL that it runs")
    parser.add_argument(
        "--db", type=Path, metavar="DB",
        help="with --sql: for the e-graph of this run; run there, the SQL gives the matches",
    )  # fmt: skip
    add_rule_files(parser, "--rules", "PATH")


def show_rule(args: argparse.Namespace) -> int:
    """Print a rule, or its SQL."""
    if args.db is not None and not args.sql:
        raise UsageError("--db goes with --sql")
    from relational_tensat.cli.rules_text import rule_sql
    from relational_tensat.rules.model import rule_text

    rules = {rule.name: rule for rule in _load(args.rules)}
    if args.name not in rules:
        raise unknown("rule", args.name, rules)
    rule = rules[args.name]
    # not by a console, which would break lines of SQL
    sys.stdout.write((rule_sql(rule, args.db) if args.sql else rule_text(rule)) + "\n")
    return 0


def check_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules check``."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a rule file or folder")


def check_rules(args: argparse.Namespace) -> int:
    """Read a rule file and report how many rules it has."""

    rules = _load([args.file])
    unsound = sum(rule.unsound for rule in rules)
    marked = f", {unsound} of them marked unsound" if unsound else ""
    amount = "1 rule" if len(rules) == 1 else f"{len(rules)} rules"
    write_line(f"{args.file}: {amount}, well-formed{marked}")
    return 0


def derive_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules derive``."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a rule file or folder")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="derive these rules only; NAME is also NAME[…]"
    )
    add_rule_files(parser, "--rules", "PATH", "derive from ")
    parser.add_argument(
        "--time-limit", type=seconds, default=30.0, metavar="S",
        help="seconds for each rule [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--node-limit", type=whole_number, default=10_000, metavar="N",
        help="the most e-nodes of an e-graph [%(default)s]",
    )  # fmt: skip
    add_seed(parser)
    add_json(parser)
    add_quiet(parser)


def derive_rules(args: argparse.Namespace) -> int:
    """Derive and report; 4 where a rule is not derived."""
    from relational_tensat.cli.rules_text import derivations_json, print_derivations
    from relational_tensat.explore.derivation import DerivationEffort
    from relational_tensat.explore.derivation import derive_rules as derived
    from relational_tensat.rules.library import load_rules
    from relational_tensat.rules.soundness import verify_rules
    from relational_tensat.rules.soundness.store import check_trust

    rules = load_rules([args.file], only=args.names)
    laws = load_rules(args.rules or None)
    if args.rules:  # those that ship are known to be sound; an unsound rule proves nothing
        check_trust(laws, verify=lambda unverified: verify_rules(unverified, shrink=False))
    effort = DerivationEffort(
        e_nodes=max(args.node_limit, 1), seconds=args.time_limit, seed=args.seed
    )
    derivations = collect(
        derived(rules, laws, effort),
        lambda count, last: f"{count} of {len(rules)} rules tried, the last one {last.rule}",
        args,
    )
    report(
        lambda: derivations_json(derivations),
        lambda console: print_derivations(derivations, len(laws), console),
        as_json=args.json,
    )
    return 0 if all(subject.derived for subject in derivations) else _FAILED


def verify_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules verify``."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="verify these rules only; NAME is also NAME[…]"
    )
    add_rule_files(parser, "--file", "F")
    parser.add_argument(
        "--trials", type=whole_number, metavar="N",
        help="the fewest configurations to try a rule on; more follow while they show something new [80]",
    )  # fmt: skip
    add_seed(parser)
    parser.add_argument(
        "--on", metavar="RUNNER",
        help="where: here, processes:N, ray, ray:ADDRESS or slurm:N [a process for each core]",
    )  # fmt: skip
    parser.add_argument(
        "--record", type=Written("verdicts on rules", (".json",)), metavar="FILE",
        help="write the verdicts to this file; rules/verdicts.json has those of the rules that ship",
    )  # fmt: skip
    add_json(parser)
    add_quiet(parser)


def verify_rules(args: argparse.Namespace) -> int:
    """Verify and report; 4 where a rule is unsound or untested."""
    from relational_tensat.base.process import processors
    from relational_tensat.base.runner import spread_over
    from relational_tensat.cli.rules_text import print_verdicts, verdicts_json
    from relational_tensat.rules.backends.backend import all_rule_files, know_kernels
    from relational_tensat.rules.library import load_rules
    from relational_tensat.rules.soundness.parallel import verified
    from relational_tensat.rules.soundness.rule_verification import DEFAULT_TRIALS
    from relational_tensat.rules.soundness.store import content_hash, keep_verdicts, write_verdicts

    know_kernels()
    rules = load_rules(args.file or all_rule_files(), only=args.names)
    start_s = time.monotonic()
    results = verified(
        rules,
        seed=args.seed,
        trials=DEFAULT_TRIALS if args.trials is None else args.trials,
        on=args.on or spread_over(processors()),
    )
    timed = collect(
        results,
        lambda count, last: f"{count} of {len(rules)} rules verified, last {last.verdict.rule}",
        args,
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


def words_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules functions`` and ``rules operators``."""
    add_json(parser, "a JSON array of objects")


def list_functions(args: argparse.Namespace) -> int:
    """Print the functions that rules may use."""
    from relational_tensat.cli.rules_text import functions_json, print_functions

    report(functions_json, print_functions, as_json=args.json)
    return 0


def list_operators(args: argparse.Namespace) -> int:
    """Print the operators that rules may use."""
    from relational_tensat.cli.rules_text import operators_json, print_operators

    report(operators_json, print_operators, as_json=args.json)
    return 0


def _load(paths: list[Path]) -> list[Rule]:
    from relational_tensat.rules.backends.backend import all_rule_files, know_kernels
    from relational_tensat.rules.library import load_rules

    know_kernels()
    return load_rules(paths or all_rule_files())
