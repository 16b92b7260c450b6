"""``python -m bench mirage``: the kernels of Mirage's benchmarks, searched, sized by a model, verified."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from bench.common.arguments import add_save
from bench.common.plots import check_plotting
from bench.common.result_file import RESULTS, report_saved, save_result
from bench.mirage.alternatives import PROFILE, tuning_run
from bench.mirage.cases import TABLE_5, Case, cases
from bench.mirage.figures import FIGURES, drawn
from bench.mirage.folder import write_figures, write_runs, write_searches
from bench.mirage.machine_code import HEADER as CODE_HEADER
from bench.mirage.machine_code import code_rows, code_table, is_fit, kept_runs
from bench.mirage.measure import MirageRun, SearchRun, left_out, measure, measure_search
from bench.mirage.table import HEADER, SEARCH_HEADER, Table, cells, line, search_cells
from bench.mirage.values import HEADER as VALUES_HEADER
from bench.mirage.values import is_right, value_rows, value_table
from relational_tensat.base.errors import UsageError, unknown
from relational_tensat.mugraph.search.search_options import MEANS, SearchOptions

_SPILLS = _DIFFERENT = 4
#: RMSNorm's operators in a block at most, in the sweep of the paper's artifact.
_SWEEP = range(5, 12)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("mirage", help="kernels of Mirage's benchmarks, found by joins")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="[all]; a name's beginning")
    parser.add_argument("--max-kernels", metavar="K,L", default="1,5", help="(1,5)")
    parser.add_argument("--time-limit", type=float, default=120.0, help="of one search (120)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--ablation", action="store_true",
        help="searches alone: GQA at 4 to 7 operators with each means off (Table 5), RMSNorm at 5 to 11",
    )  # fmt: skip
    what.add_argument("--figures", action="store_true", help="Figures 4, 8, 9 and 10, as Markdown")
    what.add_argument(
        "--code", type=Path, metavar="FILE",
        help="compile the kernels of a kept benchmarks.json for three architectures; 4 if one spills",
    )  # fmt: skip
    what.add_argument(
        "--tune", type=int, metavar="N",
        help="N μGraphs of each benchmark, of other kernels or sizes, that the model of an H100 likes "
        "best: with --save, --gpu chooses from them by time",
    )  # fmt: skip
    what.add_argument(
        "--gpu", type=Path, metavar="FILE",
        help="run the kernels of a kept benchmarks.json on this NVIDIA GPU, by way of Triton and CUDA, "
        "beside PyTorch's operators; 4 if one differs",
    )  # fmt: skip
    parser.add_argument(
        "--limit-s", metavar="S", type=float, default=480.0,
        help="with --gpu: no benchmark is begun later (480)",
    )  # fmt: skip
    parser.add_argument(
        "--no-timing", action="store_true",
        help="with --gpu: run and compare only, as is wanted where a tool slows the kernels down",
    )  # fmt: skip
    parser.add_argument("--target", choices=("cuda", "triton", "c"), default="cuda", help="(cuda)")
    parser.add_argument(
        "--values", action="store_true",
        help="with --code: instead, run them on the CPU (CUDA thread by thread, races counted; Triton by "
        "its interpreter) and compare with float64; 4 if one differs",
    )  # fmt: skip
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Search every benchmark and print what was found; modelled times are of an A100.

    Raises:
        UsageError: there is no such benchmark.
        MissingDependencyError: results shall be kept, and what draws their plots is not installed.
    """
    draws = not (options.code or options.gpu or options.tune or options.figures)
    if options.save and draws:
        check_plotting()
    if options.code:
        return _run_on_cpu(options) if options.values else _compile(options)
    if options.gpu:
        return _run_on_gpu(options)
    if options.tune:
        _tune(options)
    elif options.figures:
        _draw(options)
    elif options.ablation:
        _search(options)
    else:
        _measure(options)
    return 0


def _measure(options: argparse.Namespace) -> None:
    runs: list[MirageRun] = []
    print(line(HEADER), flush=True)
    for case, max_kernels in _chosen(options):
        runs.append(measure(case, _options(options, case.max_operators, max_kernels)))
        print(line(cells(runs[-1])), flush=True)
    if options.save:
        folder = RESULTS / f"mirage-{date.today().isoformat()}"
        report_saved(write_runs(runs, _settings(options), folder))


def _search(options: argparse.Namespace) -> None:
    runs: list[tuple[SearchRun, str]] = []
    over: set[tuple[str, tuple[str, ...], str]] = set()
    print(line(SEARCH_HEADER), flush=True)
    for case, search_options in _ablations(options):
        kind = case.name, search_options.disable, search_options.on
        made = left_out if kind in over else measure_search
        runs.append((made(case, search_options), case.published_search))
        if not runs[-1][0].is_complete:
            over.add(kind)
        print(line(search_cells(*runs[-1])), flush=True)
    if options.save:
        folder = RESULTS / f"mirage-{date.today().isoformat()}"
        report_saved(write_searches(runs, _settings(options), folder))


def _tune(options: argparse.Namespace) -> None:
    runs = []
    for case, max_kernels in _chosen(options):
        run = tuning_run(case, _options(options, case.max_operators, max_kernels), options.tune)
        if run is not None:
            runs.append(run)
            others = "  ".join(f"{each['us']:.2f}" for each in run["others"])
            print(f"{case.name}, {max_kernels}: {run['best_us']:.2f}  {others}", flush=True)
    if options.save:
        path = RESULTS / f"mirage-{date.today().isoformat()}" / "tunings.json"
        report_saved(save_result(path, {"profile": PROFILE, "runs": runs}))


def _compile(options: argparse.Namespace) -> int:
    runs = kept_runs(options.code)
    rows = _printed(CODE_HEADER, (row for kept in runs for row in code_rows(kept, options.target)))
    _save_table(code_table(rows, options.target), "code", options)
    return 0 if all(map(is_fit, rows)) else _SPILLS


def _run_on_cpu(options: argparse.Namespace) -> int:
    runs = kept_runs(options.code)
    rows = _printed(
        VALUES_HEADER, (row for kept in runs for row in value_rows(kept, options.target))
    )
    _save_table(value_table(rows, options.target), "values", options)
    return 0 if all(map(is_right, rows)) else _DIFFERENT


def _run_on_gpu(options: argparse.Namespace) -> int:
    from bench.mirage.on_gpu import command  # needs PyTorch

    wanted = {case.name for case, _ in _chosen(options)}
    kept = [run for run in kept_runs(options.gpu) if run["search"]["case"] in wanted]
    runs: list[command.GpuRun] = []
    print(line(command.HEADER), flush=True)
    for run in command.measure_all(kept, options.limit_s, times=not options.no_timing):
        runs.append(run)
        for row in run.rows():
            print(line(row), flush=True)
        if options.save:  # each time: a fault of the device ends the process
            command.save(runs, options.gpu, _settings(options))
    if len(runs) < len(kept):
        print(f"{len(kept) - len(runs)} of {len(kept)} benchmarks are missing", file=sys.stderr)
    return 0 if all(one.is_right for run in runs for one in run.contestants) else _DIFFERENT


def _printed(header: Sequence[str], made: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Print rows as they are made; return them."""
    print(line(header), flush=True)
    rows = []
    for row in made:
        rows.append(row)
        print(line(row), flush=True)
    return rows


def _save_table(table: Table, name: str, options: argparse.Namespace) -> None:
    """With ``--save``: keep a table beside the results that it is of."""
    if options.save:
        path = options.code.with_name(f"{name}-{options.target}.csv")
        path.write_text(table.csv(), encoding="utf-8")
        report_saved(path)


def _draw(options: argparse.Namespace) -> None:
    figures = list(map(drawn, FIGURES))
    print(*figures, sep="\n", flush=True)
    if options.save:
        folder = RESULTS / f"mirage-{date.today().isoformat()}"
        report_saved(write_figures(figures, folder))


def _settings(options: argparse.Namespace) -> dict[str, object]:
    left_out = ("command", "run", "save")
    return {key: value for key, value in sorted(vars(options).items()) if key not in left_out}


def _chosen(options: argparse.Namespace) -> Iterator[tuple[Case, int]]:
    known = list(cases())
    for name in options.cases:
        if not any(case.name.startswith(name) for case in known):
            raise unknown("benchmark", name, [case.name for case in known])
    for case in known:
        if not options.cases or any(case.name.startswith(name) for name in options.cases):
            for max_kernels in _kernel_limits(options):
                yield case, max_kernels


def _kernel_limits(options: argparse.Namespace) -> list[int]:
    texts = options.max_kernels.split(",")
    if not all(text.isdecimal() and int(text) > 0 for text in texts):
        raise UsageError(f"--max-kernels: {options.max_kernels!r}, expected numbers such as 1,5")
    return [int(text) for text in texts]


def _ablations(options: argparse.Namespace) -> Iterator[tuple[Case, SearchOptions]]:
    """Yield the searches of Table 5, RMSNorm's and QKNorm's; the case has the published figure."""
    known = {case.name: case for case in cases()}
    most = max(_kernel_limits(options))
    for operators, published in TABLE_5.items():
        columns = dict(zip(((), ("pruning",), ("canonical",)), published, strict=True))
        for disabled in ((), *((means,) for means in MEANS)):
            text = columns.get(disabled, "")
            case = _with_published(known["GQA speculative 1"], text)
            yield case, _options(options, operators, most, disabled)
    sweeps = [*(("RMSNorm + Linear", operators) for operators in _SWEEP), ("QKNorm", 11)]
    for name, operators in sweeps:
        for on in ("here", "processes:2"):
            few = _options(options, operators, most)
            yield _with_published(known[name], ""), replace(few, on=on)


def _with_published(case: Case, text: str) -> Case:
    return Case(case.name, case.program, case.sizes, case.max_operators, "", text)


def _options(
    options: argparse.Namespace, operators: int, kernels: int, disabled: tuple[str, ...] = ()
) -> SearchOptions:
    return SearchOptions(
        max_operators=operators,
        max_kernels=kernels,
        time_limit_s=options.time_limit,
        disable=disabled,
    )
