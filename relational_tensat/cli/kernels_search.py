"""``kernels search``: kernels that compute a program, found, sized and verified."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from relational_tensat.base.deadline import now_s
from relational_tensat.base.outputs import NEW_DATABASE, Written
from relational_tensat.cli.kernels_frame import (
    add_program,
    read_program,
    verification_json,
    verification_lines,
)
from relational_tensat.cli.parser import Parser, add_options, written_values
from relational_tensat.cli.process_limits import limit_blas_threads
from relational_tensat.cli.rules_frame import add_json, report

if TYPE_CHECKING:
    from rich.console import Console

    from relational_tensat.mugraph.kernel_finder import Finding
    from relational_tensat.mugraph.search.kernel_search import SearchProgress
    from relational_tensat.mugraph.search.search_options import SearchOptions

HELP = "search fused kernels that compute a program, choose their sizes, and verify the cheapest"

_NONE_FOUND = 5
_SHOWN = 8
_SHOWN_EVERY_S = 5.0
_LEVEL_COLUMNS = (
    "kernel", "jobs", "configurations", "candidates", "terms", "tensors", "hits", "too costly",
)  # fmt: skip


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels search``."""
    from relational_tensat.base.option import options_of
    from relational_tensat.mugraph.search.search_options import SearchOptions

    add_program(parser, "program")
    add_options(parser, options_of(SearchOptions))
    parser.add_argument(
        "-o",
        "--output",
        type=Written("a μGraph", (".json",)),
        metavar="FILE",
        help="write the best as JSON",
    )
    parser.add_argument(
        "--no-cache", action="store_true",
        help="search, whatever a search of the same program found before, and do not keep it",
    )  # fmt: skip
    parser.add_argument(
        "--db", type=NEW_DATABASE, metavar="FILE",
        help="search, and keep the search's tables in a new database: kernels show KEY --db FILE --sql",
    )  # fmt: skip
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Search and report; 5 where nothing was found."""
    limit_blas_threads()
    from relational_tensat.base.files import unless_full
    from relational_tensat.base.option import options_of
    from relational_tensat.base.watch import Watch
    from relational_tensat.mugraph.candidate_cache import CandidateCache
    from relational_tensat.mugraph.graph.mugraph_json import content_hash, save_mugraph
    from relational_tensat.mugraph.kernel_finder import find_kernels
    from relational_tensat.mugraph.search.search_options import SearchOptions
    from relational_tensat.mugraph.search.structure import SearchTables

    options = SearchOptions(**written_values(args, options_of(SearchOptions)))
    program = read_program(args)
    watch = Watch()
    progress = None if args.json else _Progress()
    cache = None if args.no_cache else CandidateCache.of_user()
    tables = None if args.db is None else SearchTables(args.db)
    with watch.watching():
        finding = find_kernels(program, options, watch, progress, cache=cache, tables=tables)
    key = None
    if finding.best is not None and cache is not None:
        with unless_full():
            key = cache.keep_found(finding.best.graph)
    report(
        lambda: {**_content(finding), "key": key},
        lambda console: _show(finding, options, console),
        as_json=args.json,
    )
    if finding.best is None:
        return _NONE_FOUND
    if args.output is not None:
        save_mugraph(finding.best.graph, args.output)
        if not args.json:
            sys.stdout.write(f"written to {args.output}\n")
    if not args.json and (key is not None or args.db is not None):
        name = key or f"k{content_hash(finding.best.graph)}"
        where = "" if args.db is None else f" in {args.db}"
        sys.stdout.write(f"kept as {name}{where}\n")
    return 0


class _Progress:
    """A line on standard error now and then: level, size, terms."""

    def __init__(self) -> None:
        self._shown_s = now_s()

    def __call__(self, progress: SearchProgress) -> None:
        if now_s() - self._shown_s > _SHOWN_EVERY_S:
            self._shown_s = now_s()
            growth = progress.growth
            sys.stderr.write(
                f"kernel {progress.level}: {growth.done}/{growth.whole} done, {growth.counts.terms} terms "
                f"of {growth.counts.candidates} candidates; {progress.routes} ways so far\n"
            )


def _content(finding: Finding) -> dict[str, Any]:
    from relational_tensat.mugraph.graph.mugraph_json import encoded

    result, best = finding.result, finding.best
    return {
        "routes": result.routes,
        "fitting": result.fitting,
        "refused": finding.refused,
        "is_complete": result.is_complete,
        "is_kept": result.is_kept,
        "levels": [asdict(level) for level in result.levels],
        "abstract_e_nodes": result.abstract_e_nodes,
        "abstract_e_classes": result.abstract_e_classes,
        "best": None if best is None else {"cost_us": best.cost_us, "graph": encoded(best.graph)},
        "verification": finding.verification and verification_json(finding.verification),
    }


def _show(finding: Finding, options: SearchOptions, console: Console) -> None:
    from relational_tensat.cli.console import table
    from relational_tensat.mugraph.graph.mugraph_text import mugraph_text

    result = finding.result
    console.print(
        f"abstract e-graph: {result.abstract_e_nodes} e-nodes in {result.abstract_e_classes} e-classes"
    )
    rows = table(*_LEVEL_COLUMNS, numbers=_LEVEL_COLUMNS)
    for number, level in enumerate(result.levels, 1):
        rows.add_row(str(number), *(str(value) for value in asdict(level).values()))
    console.print(rows)
    if result.is_kept:
        console.print("as a search before found it (--no-cache searches again)")
    if not result.is_complete:
        console.print("the search was ended before it was complete")
    console.print(f"{result.routes} ways found; {result.fitting} μGraphs fit shared memory")
    if not result.routes and result.is_complete:
        console.print(
            f"--max-operators {options.max_operators} and --max-kernels {options.max_kernels} allow none; "
            "more of either may"
        )
    if result.graphs:
        rows = table("kernels", "modelled µs", numbers=("modelled µs",))
        for candidate in result.graphs[:_SHOWN]:
            rows.add_row(_schedule(candidate.graph), f"{candidate.cost_us:.2f}")
        console.print(rows)
    for reason in dict.fromkeys(finding.reasons):
        console.print(f"refused: {reason}")
    if finding.best is not None:
        console.print(mugraph_text(finding.best.graph))
    for line in verification_lines(finding.verification) if finding.verification else ():
        console.print(line)


def _schedule(graph: Any) -> str:
    """Return the grids and loops of a graph's kernels, and libraries' operators, in a line."""
    texts = []
    for kernel in graph.steps:
        if kernel not in graph.kernels:
            texts.append(f"library {kernel.op}")
            continue
        loops = {it.fmap for it in kernel.block.iterators} - {""}
        savers = kernel.block.savers
        grid = " ".join(
            f"{name}/{size}" for name, size in zip(savers[0].omap, kernel.block.grid, strict=True)
        )
        loop = f" loop {'/'.join(sorted(loops))}/{kernel.block.loop}" if loops else ""
        texts.append(f"grid {grid or '1'}{loop}")
    return "; ".join(texts)
