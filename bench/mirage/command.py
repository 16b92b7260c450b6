"""``python -m bench mirage``: the kernels of Mirage's benchmarks, searched, sized by a model, verified."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path

from bench.common.arguments import add_save
from bench.common.saving import RESULTS, report_saved, save_result
from bench.mirage.cases import TABLE_5, Case, cases
from bench.mirage.measure import MirageRun, measure
from relational_tensat.base.errors import unknown
from relational_tensat.mugraph.search.search_options import MEANS, SearchOptions

HEADER = (
    "benchmark", "operators", "without", "kernels", "configurations", "candidates", "terms", "CPU s",
    "tests", "library µs", "best µs", "ratio", "published",
)  # fmt: skip


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("mirage", help="kernels of Mirage's benchmarks, found by joins")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="[all]; a name's beginning")
    parser.add_argument("--max-kernels", type=int, default=2, help="(2)")
    parser.add_argument("--time-limit", type=float, default=120.0, help="of one search (120)")
    parser.add_argument(
        "--ablation", action="store_true", help="GQA at 4 to 7 operators, each means off: Table 5"
    )
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search every benchmark and print what was found; modelled times are of an A100.

    Raises:
        UsageError: there is no such benchmark.
    """
    runs: list[MirageRun] = []
    print(_line(HEADER), flush=True)
    for case, search_options in _ablations(options) if options.ablation else _chosen(options):
        runs.append(measure(case, search_options))
        print(_line(_cells(runs[-1])), flush=True)
    if options.save:
        report_saved(save(runs, options, RESULTS))
    return 0


def save(runs: Sequence[MirageRun], options: argparse.Namespace, directory: Path) -> Path:
    """Write the runs with their settings, machine, versions and commit; return the file."""
    kind = "-ablation" if options.ablation else ""
    path = directory / f"mirage{kind}-{date.today().isoformat()}.json"
    content = {
        "settings": {
            key: value
            for key, value in sorted(vars(options).items())
            if key not in ("command", "run", "save")
        },
        "runs": [asdict(run) for run in runs],
    }
    return save_result(path, content)


def _chosen(options: argparse.Namespace) -> Iterator[tuple[Case, SearchOptions]]:
    known = list(cases())
    for name in options.cases:
        if not any(case.name.startswith(name) for case in known):
            raise unknown("benchmark", name, [case.name for case in known])
    for case in known:
        if not options.cases or any(case.name.startswith(name) for name in options.cases):
            yield case, _options(options, case.max_operators)


def _ablations(options: argparse.Namespace) -> Iterator[tuple[Case, SearchOptions]]:
    (gqa,) = (case for case in cases() if case.name == "GQA speculative 1")
    for operators, published in TABLE_5.items():
        columns = dict(zip(((), ("pruning",), ("canonical",)), published, strict=True))
        for disabled in ((), *((means,) for means in MEANS)):
            text = columns.get(disabled, "")
            case = Case(gqa.name, gqa.program, gqa.sizes, operators, text)
            yield case, _options(options, operators, disabled)


def _options(
    options: argparse.Namespace, operators: int, disabled: tuple[str, ...] = ()
) -> SearchOptions:
    return SearchOptions(
        max_operators=operators,
        max_kernels=options.max_kernels,
        time_limit_s=options.time_limit,
        disable=disabled,
    )


def _cells(run: MirageRun) -> tuple[str, ...]:
    ratio = f"{run.library_us / run.best_us:.1f}x" if run.verified else "-"
    return (
        run.case,
        str(run.max_operators),
        ",".join(run.disabled) or "-",
        str(run.kernels) if run.verified else "none",
        f"{run.configurations:,}",
        f"{run.candidates:,}",
        f"{run.terms:,}{'' if run.is_complete else '+'}",
        f"{run.cpu_s:.1f}",
        str(run.bounded_tests or "-"),
        f"{run.library_us:.1f}",
        f"{run.best_us:.1f}",
        ratio,
        run.published or "-",
    )


def _line(cells: Sequence[str]) -> str:
    first, *middle, last = cells
    return f"{first:<27}" + " ".join(f"{cell:>13}" for cell in middle) + f"  {last}"
