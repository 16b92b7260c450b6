"""``kernels regions`` and ``kernels search``: parts of a model, and kernels that compute them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.deadline import now_s
from relational_tensat.base.errors import UsageError
from relational_tensat.base.outputs import NEW_DATABASE, Written
from relational_tensat.cli.closed_output import write_line
from relational_tensat.cli.common import add_dims, add_json, add_quiet, report
from relational_tensat.cli.mugraphs import add_program, read_stored_program
from relational_tensat.cli.parser import Parser, add_options, merged, written_values
from relational_tensat.cli.process_limits import limit_blas_threads

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from relational_tensat.mugraph.kernel_finder import Finding
    from relational_tensat.mugraph.regions.regions import ModelRegion, RegionRow
    from relational_tensat.mugraph.search.kernel_search import SearchProgress
    from relational_tensat.mugraph.search.search_options import SearchOptions

_NONE_FOUND = 5
_SHOWN = 8
_SHOWN_EVERY_S = 5.0
_LEVEL_COLUMNS = (
    "kernel", "jobs", "configurations", "candidates", "terms", "tensors", "hits", "too costly",
)  # fmt: skip


def regions_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels regions``."""
    parser.add_argument(
        "model", type=Path, metavar="MODEL",
        help="a .json or .onnx model; or a database of --db or of run --fuse --db",
    )  # fmt: skip
    add_dims(parser)
    parser.add_argument(
        "--db", type=NEW_DATABASE, metavar="FILE",
        help="write the regions to a new database: tables region and fused_region",
    )  # fmt: skip
    add_json(parser)


def list_regions(args: argparse.Namespace) -> int:
    """List the regions of a model, or those that a database has."""
    if args.model.suffix == ".duckdb":
        if args.db is not None:
            raise UsageError(f"--db goes with a model, {args.model} is a database already")
        regions, left_out = _stored(args.model)
    else:
        regions, left_out = _found(args)
    report(
        lambda: _regions_json(regions, left_out),
        lambda console: _show_regions(regions, left_out, console),
        as_json=args.json,
    )
    return 0


def _found(args: argparse.Namespace) -> tuple[list[ModelRegion], list[RegionRow]]:
    """Return the regions of a model, and what was left out; written to a database, if one is named."""
    from relational_tensat.formats import load_model
    from relational_tensat.mugraph.regions.regions import find_regions, write_regions

    regions, left_out = find_regions(load_model(args.model, merged(args.dim, "--dim")))
    if args.db is not None:
        write_regions(args.db, regions, left_out)
    return regions, left_out


def _stored(path: Path) -> tuple[list[ModelRegion], list[RegionRow]]:
    """Return the rows of a database, and the regions, which that of a run has not.

    Raises:
        InputError: it is no database of a run with ``--fuse``, or of this command.
    """
    from relational_tensat.cli.database import RunDatabase
    from relational_tensat.mugraph.regions.regions import RegionRow, regions_of

    database = RunDatabase(path)
    try:
        rows = database.named("inspect/fused_regions").rows
        tables = database.query("SELECT 1 FROM duckdb_tables() WHERE table_name = 'region'").rows
        regions = regions_of(database.named("inspect/regions").rows if tables else ())
    finally:
        database.close()
    return regions, [
        RegionRow(
            source, tuple(outputs), tuple(operators), fate, reason, us, kernel_us, mugraph or ""
        )
        for source, outputs, operators, fate, reason, us, kernel_us, mugraph in rows
    ]


def _regions_json(regions: Sequence[ModelRegion], rows: Sequence[RegionRow]) -> dict[str, Any]:
    from relational_tensat.mugraph.graph.mugraph_json import encoded

    return {
        "regions": [
            {
                "outputs": r.outputs,
                "values": r.values,
                "nodes": r.nodes,
                "program": encoded(r.program),
            }
            for r in regions
        ],
        "left_out": [asdict(row) for row in rows],
    }


def _show_regions(
    regions: Sequence[ModelRegion], rows: Sequence[RegionRow], console: Console
) -> None:
    """Print both; of a region that recurs where it ends first, as --json and --db list each place."""
    from relational_tensat.cli.console import table

    if regions:
        columns = ("region", "ends in", "places", "nodes", "operators")
        found = table(*columns, numbers=("region", "places", "nodes"))
        for number, region in enumerate(regions):
            steps = region.program.operators
            operators = ", ".join(step.op for step in steps)
            ends, places = " + ".join(region.places[0]), str(len(region.places))
            found.add_row(str(number), ends, places, str(region.nodes), operators)
        console.print(found)
    if rows:
        others = table("ends in", "operators", "fate", "µs", "kernel µs", "because",
                       numbers=("µs", "kernel µs"))  # fmt: skip
        for row in rows:
            others.add_row(
                " ".join(row.outputs), ", ".join(row.operators), row.fate, _us(row.operators_us),
                _us(row.kernel_us), row.mugraph or row.reason,
            )  # fmt: skip
        console.print(others)


def _us(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def search_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels search``."""
    from relational_tensat.base.option import options_of
    from relational_tensat.mugraph.search.search_options import SearchOptions

    add_program(parser)
    add_options(parser, options_of(SearchOptions))
    parser.add_argument(
        "-o", "--output", type=Written("a μGraph", (".json",)), metavar="FILE",
        help="write the best as JSON",
    )  # fmt: skip
    parser.add_argument(
        "--no-cache", action="store_true",
        help="ignore earlier searches of this program, and do not keep this one",
    )  # fmt: skip
    parser.add_argument(
        "--db", type=NEW_DATABASE, metavar="FILE",
        help="keep the tables of the search in a new database, for kernels show KEY --db FILE --sql",
    )  # fmt: skip
    add_json(parser)
    add_quiet(parser)


def search_kernels(args: argparse.Namespace) -> int:
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
    program, orders = read_stored_program(args)
    watch = Watch()
    progress = None if args.json or args.quiet else _Progress()
    cache = None if args.no_cache else CandidateCache.of_user()
    tables = None if args.db is None else SearchTables(args.db)
    with watch.watching():
        finding = find_kernels(program, options, watch, progress, cache=cache, tables=tables)
    if finding.best is not None and orders:
        from relational_tensat.mugraph.fusion.kernel_builder import stored_in_order

        as_in_model = stored_in_order(finding.best.graph, program, orders)
        finding = replace(finding, best=replace(finding.best, graph=as_in_model))
    key = None
    if finding.best is not None and cache is not None:
        with unless_full():
            key = cache.keep_found(finding.best.graph)
    report(
        lambda: {**_finding_json(finding), "key": key},
        lambda console: _show_finding(finding, options, console),
        as_json=args.json,
    )
    if finding.best is None:
        return _NONE_FOUND
    if args.output is not None:
        save_mugraph(finding.best.graph, args.output)
        if not args.json:
            write_line(f"written to {args.output}")
    if not args.json and (key is not None or args.db is not None):
        name = key or f"k{content_hash(finding.best.graph)}"
        where = "" if args.db is None else f" in {args.db}"
        write_line(f"kept as {name}{where}")
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


def _finding_json(finding: Finding) -> dict[str, Any]:
    from relational_tensat.cli.kernels_text import verification_json
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


def _show_finding(finding: Finding, options: SearchOptions, console: Console) -> None:
    from relational_tensat.cli.console import table
    from relational_tensat.cli.kernels_text import verification_lines
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
    if finding.best is None:
        console.print(f"no kernel: {_limited_by(finding, options)}")
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


def _limited_by(finding: Finding, options: SearchOptions) -> str:
    """Return why a search found nothing, and what may help."""
    result = finding.result
    limits = f"--max-operators {options.max_operators} and --max-kernels {options.max_kernels}"
    if not result.routes and result.is_complete:
        libraries = "" if options.libraries else ", and no --no-libraries"
        return f"{limits} allow none; more of either may{libraries}"
    if not result.routes:
        return (
            "the search was ended before it found one; more --time-limit, or --on processes:N, may"
        )
    if not result.fitting:
        return "no graph of those found fits shared memory; more --max-kernels makes smaller ones"
    return f"all {finding.refused} graphs that were found were refused; more of {limits} may find others"


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
