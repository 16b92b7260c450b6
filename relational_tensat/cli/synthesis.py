"""``rules synthesize``: find rules for operators, or for what models have after a run."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.base.outputs import PAGE, Written
from relational_tensat.cli.closed_output import write_line
from relational_tensat.cli.common import add_dims, add_quiet, add_rule_files, add_seed
from relational_tensat.cli.parser import Parser, merged, seconds, whole_number

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from relational_tensat.rules.model import Rule, Term
    from relational_tensat.rules.synthesis.funnel import SynthesisTools
    from relational_tensat.rules.synthesis.store import SynthesisStore
    from relational_tensat.tensor.graph import Graph
    from relational_tensat.tensor.types import AttrItems, TensorType, ValueType

#: Laws that a page has.
_MOST_LAWS = 2_000
#: Of the run that a model is mined after: seconds of exploration.
_RUN_S = 20.0


def synthesize_arguments(parser: Parser) -> None:
    """Declare the flags of ``rules synthesize``."""
    parser.add_argument(
        "models", nargs="*", type=Path, metavar="MODEL",
        help="models: rules are sought that make what they have after a run cheaper",
    )  # fmt: skip
    parser.add_argument(
        "--operators", default="", metavar="NAME,…", help="operators: laws are sought among these"
    )
    parser.add_argument(
        "--size", type=whole_number, default=2, metavar="N",
        help="operators of a term; windows of models have up to four more [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--sources", type=int, choices=(1, 2), default=1,
        help="2: with --operators, rules of two sources, too: parts of one tensor [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--for", dest="runs_on", default="cpu-avx2", metavar="PROFILE",
        help="the profile that costs are modelled by, or a .toml file [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--goal", choices=("cheaper", "any"), default="cheaper",
        help="any: also rules whose result costs as much [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--time-limit", type=seconds, default=120.0, metavar="S", help="CPU seconds [%(default)s]"
    )
    parser.add_argument(
        "--db", type=Path, metavar="DB",
        help="keep all stages in this file; the same command goes on where it was ended",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Written("rules", (".rules",)), metavar="FILE", help="write the rules"
    )
    parser.add_argument(
        "--html", type=PAGE, metavar="FILE",
        help="write a page: the funnel, and what became of each law",
    )  # fmt: skip
    add_dims(parser)
    add_rule_files(parser, "--rules", "PATH", "derive from ")
    add_seed(parser)
    add_quiet(parser)


def synthesize_rules(args: argparse.Namespace) -> int:
    """Find rules, print the funnel, write the rules."""
    operators = tuple(filter(None, args.operators.split(",")))
    if not operators and not args.models:
        raise UsageError("expected models, or --operators NAME,…")
    from relational_tensat.base.files import write_aside
    from relational_tensat.cli.console import stdout_console, table
    from relational_tensat.rules.library import load_rules
    from relational_tensat.rules.synthesis.found_file import found_text
    from relational_tensat.rules.synthesis.funnel import RuleFunnel, SynthesisRequest
    from relational_tensat.rules.synthesis.store import SynthesisStore
    from relational_tensat.rules.text import rule_text

    request = SynthesisRequest(
        models=tuple(args.models), operators=operators, size=args.size,
        sources=args.sources, cheaper=args.goal == "cheaper", time_limit_s=args.time_limit, seed=args.seed,
    )  # fmt: skip
    with SynthesisStore(args.db) as store:
        tools = synthesis_tools(
            args.runs_on, load_rules(args.rules or None), merged(args.dim, "--dim")
        )
        report = (lambda text: None) if args.quiet else write_line
        rules = RuleFunnel(store, request, tools, report).run()
        console = stdout_console()
        rows = table("funnel", "number", numbers=("number",))
        for name, count in store.rows("funnel"):
            rows.add_row(name, f"{count:,}")
        console.print(rows)
        for rule in rules:
            sys.stdout.write(rule_text(rule).partition("\n")[2] + "\n")
        if args.output is not None:
            words = [
                *map(str, args.models),
                *((f"--operators {args.operators}",) if operators else ()),
            ]
            text = found_text(store, f"rules synthesize {' '.join(words)} --size {args.size}")
            with write_aside(args.output) as aside:
                (aside / args.output.name).write_text(text, encoding="utf-8")
        if args.html is not None:
            _draw(store, args.html)
    return 0


def _draw(store: SynthesisStore, path: Path) -> None:
    """Write the page of a synthesis.

    Raises:
        InputError: it cannot be written.
    """
    from relational_tensat.view.data import funnel_data as data
    from relational_tensat.view.document import write_page

    funnel = tuple(data.FunnelCount(*row) for row in store.rows("funnel"))
    laws = tuple(
        data.FunnelLaw(law, status, gain, tuple(models), note)
        for law, status, gain, models, note in store.rows("fates", most=_MOST_LAWS)
    )
    page = data.FunnelPage(
        title="Rules that were found",
        funnel=funnel,
        stages=tuple(data.FunnelStage(*row) for row in store.rows("stages")),
        laws=laws,
        left_out=len(store.rows("laws")) - len(laws),
        rules=tuple(text for _, text, *_ in store.rows("found", status="found")),
    )
    write_page(page, path)


def synthesis_tools(
    profile: str, laws: Sequence[Rule], dims: Mapping[str, int] | None = None
) -> SynthesisTools:
    """Return what the stages need of other rooms: runs, costs, and derivations from laws.

    Args:
        dims: sizes of the models' dynamic dimensions.
    """
    from relational_tensat.cost.opener import open_source
    from relational_tensat.cost.source import graph_cost_us
    from relational_tensat.rules.synthesis.funnel import SynthesisTools

    source = open_source(profile)

    def cost_us(
        op: str, kinds: tuple[ValueType, ...], result: ValueType, attrs: AttrItems
    ) -> float:
        return source.cost_us(op, kinds, result, dict(attrs))

    return SynthesisTools(
        optimized=partial(_optimized, profile=profile, dims=dims or {}),
        cost_us=cost_us,
        whole_us=lambda graph: graph_cost_us(graph, source),
        unproved=partial(_unproved, laws),
        derived=partial(_derived, laws),
    )


def _optimized(path: Path, profile: str, dims: Mapping[str, int]) -> Graph:
    from relational_tensat.run.options import Options
    from relational_tensat.run.pipeline import optimize

    options = Options.of(time_limit_s=_RUN_S, cost=profile, dims=dims)
    return optimize(path, options).graph


def _unproved(
    laws: Sequence[Rule],
    pairs: Sequence[tuple[Term, Term]],
    inputs: Mapping[str, TensorType],
) -> list[int]:
    from relational_tensat.explore.derivation import DerivationEffort, unproved_pairs

    effort = DerivationEffort(iterations=4, multi_iterations=1, e_nodes=20_000)
    return unproved_pairs(pairs, inputs, laws, effort)


def _derived(laws: Sequence[Rule], rule: Rule, more: Sequence[Rule]) -> bool:
    from relational_tensat.explore.derivation import DerivationEffort, derive_rules

    effort = DerivationEffort(configurations=2, iterations=6, e_nodes=4_000, seconds=10.0)
    (derivation,) = derive_rules([rule], [*laws, *more], effort)
    return derivation.derived
