"""``python -m bench taso FILE``: rules of TASO or TENSAT into the rule language, each rule judged."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.taso.rule_files import counts, finding, import_rules, write_judged
from relational_tensat.base.errors import UsageError
from relational_tensat.rules.soundness import DEFAULT_TRIALS


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser(
        "taso", help="rules of TASO or TENSAT: which are sound, and under which condition"
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE",
        help="TASO's graph_subst.pb, TENSAT's converted.txt or converted_multi.txt, or a rule file",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="write them as a rule file"
    )
    parser.add_argument(
        "--trials", type=int, default=DEFAULT_TRIALS, metavar="N",
        help="configurations that a rule is verified on (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="(0)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Judge, print, write; what is unsound is marked so, and no failure of the command.

    Raises:
        UsageError: the output is the file that is read.
        RuleError: the file is missing or malformed, or has what the language cannot express.
        InputError: the output cannot be written.
    """
    output: Path | None = options.output
    if output is not None and output.resolve() == options.file.resolve():
        raise UsageError(f"-o {output} is the file that is imported, expected another name")
    judgements = []
    for judgement in import_rules(options.file, seed=options.seed, trials=options.trials):
        judgements.append(judgement)
        rule = judgement.rule
        text = f"{rule.name:12} {judgement.status:9} {rule.law}  {finding(judgement)}"
        print(text.rstrip(), flush=True)
    totals = ", ".join(f"{count} {status}" for status, count in counts(judgements).items() if count)
    print(f"{len(judgements)} rules: {totals}")
    if output is not None:
        write_judged(output, judgements, options.file.name)
        print(f"written to {output}")
    return 0
