"""``extract``: the cheapest graph of an e-graph file, of this or any other tool."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.option import options_in
from relational_tensat.base.outputs import Written
from relational_tensat.cli.parser import Parser, add_options, written_values
from relational_tensat.run.options import Options

if TYPE_CHECKING:
    from relational_tensat.extract import Extraction
    from relational_tensat.extract.interchange import SerializedEGraph

HELP = "choose the cheapest graph of an e-graph file (egraph-serialize JSON)"

#: Options of a run that also hold for a file: all of extraction but those of extracting while exploring.
_OPTIONS = tuple(
    option
    for group, option in options_in(Options)
    if (group == "extraction" and option.field not in ("extract_every", "patience"))
    or option.name in ("threads", "seed")
)


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``extract``."""
    parser.add_argument(
        "file", type=Path, metavar="EGRAPH.json", help="an e-graph file; .json.gz, too"
    )
    parser.add_argument(
        "-o", "--output", type=Written("a choice of e-nodes", (".json",)), metavar="FILE",
        help="write the choice here: the e-node of each e-class that is needed",
    )  # fmt: skip
    add_options(parser, _OPTIONS)
    parser.add_argument("--json", action="store_true", help="print one JSON object, nothing else")
    parser.add_argument(
        "--json-events", action="store_true",
        help="print each better graph and bound on standard error, one JSON object a line",
    )  # fmt: skip


def execute(args: argparse.Namespace) -> int:
    """Extract and print what was found."""
    from relational_tensat.cli.run_events import ExtractionEvents
    from relational_tensat.extract import extract
    from relational_tensat.extract.interchange import read_egraph_json

    options = Options.of(**written_values(args, _OPTIONS))
    egraph = read_egraph_json(args.file)
    egraph.check_derivable(str(args.file))
    extraction = extract(
        egraph.problem,
        options.extraction,
        options.process,
        progress=ExtractionEvents(sys.stderr).extraction if args.json_events else None,
    )
    if args.output is not None:
        _write(args.output, egraph, extraction)
    if args.json:
        sys.stdout.write(json.dumps(to_json(extraction, egraph.note), allow_nan=False) + "\n")
    else:
        _print(args.file, egraph, extraction)
    return 0


def to_json(extraction: Extraction, file_note: str = "") -> dict[str, Any]:
    """Return the object that ``extract --json`` prints; costs are in the file's unit."""
    return {
        "cost": extraction.cost_us,
        "bound": extraction.bound_us,
        "gap": extraction.gap,
        "optimal": extraction.optimal,
        "seconds": extraction.seconds,
        "reductions": {
            "before": dict(zip(_SIZES, extraction.size, strict=True)),
            "after": dict(zip(_SIZES, extraction.reduced_size, strict=True)),
            "dropped": dict(extraction.reductions),
        },
        "method": extraction.method,
        "note": "; ".join(filter(None, [file_note, extraction.note])),
    }


_SIZES = ("e_nodes", "e_classes", "edges")


def _write(path: Path, egraph: SerializedEGraph, extraction: Extraction) -> None:
    from relational_tensat.base.files import write_aside

    content = {"cost": extraction.cost_us, "choices": egraph.named(extraction.choice)}
    with write_aside(path) as folder:
        (folder / path.name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _print(path: Path, egraph: SerializedEGraph, extraction: Extraction) -> None:
    from relational_tensat.cli.console import stdout_console
    from relational_tensat.cli.run_course_text import print_reductions

    console = stdout_console()
    console.print(
        f"{path}: {len(egraph.nodes):,} e-nodes in {len(egraph.classes):,} e-classes, "
        f"{len(egraph.roots):,} to extract"
    )
    print_reductions(extraction, console)
    proof = (
        "optimal"
        if extraction.optimal
        else f"bound {extraction.bound_us:,.6g}, gap {extraction.gap:.2%}"
    )
    console.print(
        f"cost {extraction.cost_us:,.6g} ({proof}), {extraction.method}, {extraction.seconds:.2f} s"
    )
    for note in filter(None, [egraph.note, extraction.note]):
        console.print(f"note: {note}")
