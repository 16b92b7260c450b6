"""``python -m bench synthesize``: find rules for operators, or for what models have after a run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.synthesis.found_report import found_text, page_text
from bench.synthesis.funnel import RuleFunnel, SynthesisRequest
from bench.synthesis.store import SynthesisStore
from bench.synthesis.tools import SynthesisTools
from relational_tensat.base.errors import UsageError
from relational_tensat.base.files import write_aside
from relational_tensat.base.outputs import PAGE, Written, check_outputs
from relational_tensat.cli.console import stdout_console, table
from relational_tensat.cli.parser import dimensions, merged, seconds, whole_number
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import rule_text

_RULES = Written("rules", (".rules",))


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser(
        "synthesize", help="find rules for operators, or for what models have after a run"
    )
    add = parser.add_argument
    add("models", nargs="*", type=Path, metavar="MODEL", help="whose parts shall become cheaper")
    add("--operators", default="", metavar="NAME,…", help="laws are sought among these")
    add(
        "--size", type=whole_number, default=2, metavar="N",
        help="operators of a term; windows of models have up to four more (2)",
    )  # fmt: skip
    add(
        "--sources", type=int, choices=(1, 2), default=1,
        help="2: with --operators, rules of two sources, too: parts of one tensor (1)",
    )  # fmt: skip
    add("--for", dest="runs_on", default="cpu-avx2", metavar="PROFILE", help="models costs")
    add(
        "--goal", choices=("cheaper", "any"), default="cheaper",
        help="any: also rules whose result costs as much (cheaper)",
    )  # fmt: skip
    add("--time-limit", type=seconds, default=120.0, metavar="S", help="CPU seconds (120)")
    add("--db", type=Path, metavar="DB", help="keep all stages; the same command goes on")
    add("-o", "--output", type=_RULES, metavar="FILE", help="write the rules")
    add("--html", type=PAGE, metavar="FILE", help="write a page: what became of each law")
    add("--dim", type=dimensions, action="append", default=[], metavar="NAME=SIZE,…")
    add(
        "--rules", type=Path, action="append", default=[], metavar="PATH",
        help="derive from a rule file or folder, instead of the rules that ship (repeatable)",
    )  # fmt: skip
    add("--seed", type=whole_number, default=0, metavar="N", help="of the random operands (0)")
    add("-q", "--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Find rules, print the funnel, write the rules."""
    operators = tuple(filter(None, options.operators.split(",")))
    if not operators and not options.models:
        raise UsageError("expected models, or --operators NAME,…")
    written = [
        (path, kind) for path, kind in ((options.output, _RULES), (options.html, PAGE)) if path
    ]
    check_outputs(written, [*options.models, *options.rules])
    request = SynthesisRequest(
        models=tuple(options.models), operators=operators, size=options.size, sources=options.sources,
        cheaper=options.goal == "cheaper", time_limit_s=options.time_limit, seed=options.seed,
    )  # fmt: skip
    laws, dims = load_rules(options.rules or None), merged(options.dim, "--dim")
    tools = SynthesisTools(options.runs_on, laws, dims)
    with SynthesisStore(options.db) as store:
        rules = RuleFunnel(
            store, request, tools, (lambda text: None) if options.quiet else print
        ).run()
        rows = table("funnel", "number", numbers=("number",))
        for name, count in store.rows("funnel"):
            rows.add_row(name, f"{count:,}")
        stdout_console().print(rows)
        for rule in rules:
            sys.stdout.write(rule_text(rule).partition("\n")[2] + "\n")
        if options.output is not None:
            sought = [
                *map(str, options.models),
                *([f"--operators {options.operators}"] * bool(operators)),
            ]
            command = f"bench synthesize {' '.join(sought)} --size {options.size}"
            _write(options.output, found_text(store, command))
        if options.html is not None:
            _write(options.html, page_text(store))
    return 0


def _write(path: Path, text: str) -> None:
    with write_aside(path) as aside:
        (aside / path.name).write_text(text, encoding="utf-8", errors="replace")
