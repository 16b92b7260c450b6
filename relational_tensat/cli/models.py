"""Commands on files of graphs: ``example``, ``convert``, and ``extract``, of e-graphs of any tool."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError, unknown
from relational_tensat.base.option import Option, options_in
from relational_tensat.base.outputs import Written
from relational_tensat.cli.closed_output import write_line
from relational_tensat.cli.common import add_dims, add_json
from relational_tensat.cli.parser import Parser, add_options, merged, written_values
from relational_tensat.formats.frontend import MODEL

if TYPE_CHECKING:
    import argparse

    from relational_tensat.extract import Extraction
    from relational_tensat.extract.interchange import SerializedEGraph

#: The models that ship, by their files in ``bench/inputs``.
_EXAMPLES = {
    "encoder_block.onnx": "a transformer's encoder block, for run --for onnxruntime",
    "nasrnn.json": "a recurrent cell of the TENSAT paper, for run --for t4; needs no onnx",
}


def example_arguments(parser: Parser) -> None:
    """Declare the flags of ``example``."""
    names = "; ".join(f"{Path(file).stem}: {text}" for file, text in _EXAMPLES.items())
    parser.add_argument("name", metavar="NAME", nargs="?", help=f"{names} [list them]")
    parser.add_argument(
        "-o", "--output", type=MODEL, metavar="FILE",
        help="where to write it [a file of its name in the current folder]",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def write_example(args: argparse.Namespace) -> int:
    """Write a small model that ships, or list those that there are."""
    files = {Path(file).stem: file for file in _EXAMPLES}
    if args.name is None:
        for stem, file in files.items():
            sys.stdout.write(f"{stem:<15} {_EXAMPLES[file]}\n")
        return 0
    stem = Path(args.name).stem
    if stem not in files:
        raise unknown("example", args.name, files)
    file = files[stem]
    from relational_tensat.base.files import resource_dir, write_aside
    from relational_tensat.formats.frontend import check_output

    source = resource_dir("bench/inputs") / file
    place = check_output(args.output or Path(file), source) or Path(file)
    if place.suffix != source.suffix:
        raise UsageError(
            f"{place}: this example is written as {source.suffix}; convert changes that"
        )
    content = source.read_bytes()
    if place.exists() and not args.force and place.read_bytes() != content:
        raise UsageError(
            f"{place}: exists already; -o names another file, --force replaces this one"
        )
    with write_aside(place) as folder:
        (folder / place.name).write_bytes(content)
    write_line(f"written to {place}; next: relational-tensat run {place}")
    return 0


def convert_arguments(parser: Parser) -> None:
    """Declare the flags of ``convert``."""
    parser.add_argument("model", type=Path, metavar="IN", help="a .json or .onnx model")
    parser.add_argument("output", type=MODEL, metavar="OUT", help="a .json or .onnx file")
    add_dims(parser)


def convert(args: argparse.Namespace) -> int:
    """Load a model and write it in the other format."""
    from relational_tensat.formats import load_model, save_model
    from relational_tensat.formats.frontend import check_output

    graph = load_model(args.model, merged(args.dim, "--dim"))
    target = check_output(args.output, args.model)
    if target is not None:
        save_model(graph, target)
    return 0


def _extraction_options() -> list[Option]:
    """Return the options of a run that hold for a file, too: but for extracting while exploring."""
    from relational_tensat.run.options import Options

    return [
        option
        for group, option in options_in(Options)
        if (group == "extraction" and option.field != "extract_every")
        or option.name in ("threads", "seed")
    ]


def extract_arguments(parser: Parser) -> None:
    """Declare the flags of ``extract``."""
    parser.add_argument(
        "file", type=Path, metavar="EGRAPH.json", help="an e-graph file; .json.gz, too"
    )
    parser.add_argument(
        "-o", "--output", type=Written("a choice of e-nodes", (".json",)), metavar="FILE",
        help="write the choice here: the e-node of each e-class that is needed",
    )  # fmt: skip
    add_options(parser, _extraction_options())
    add_json(parser)
    parser.add_argument(
        "--json-events", action="store_true",
        help="print each better graph and bound on standard error, one JSON object a line",
    )  # fmt: skip


def extract_graph(args: argparse.Namespace) -> int:
    """Choose the cheapest graph of an e-graph file and print what was found."""
    from relational_tensat.cli.run_progress import ExtractionEvents
    from relational_tensat.extract import extract
    from relational_tensat.extract.interchange import read_egraph_json
    from relational_tensat.run.options import Options

    options = Options.of(**written_values(args, _extraction_options()))
    egraph = read_egraph_json(args.file)
    egraph.check_derivable(str(args.file))
    extraction = extract(
        egraph.problem,
        options.extraction,
        options.process,
        progress=ExtractionEvents(sys.stderr).extraction if args.json_events else None,
    )
    if args.output is not None:
        _write_choice(args.output, egraph, extraction)
    if args.json:
        content = {
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
            "note": "; ".join(filter(None, [egraph.note, extraction.note])),
        }
        sys.stdout.write(json.dumps(content, allow_nan=False) + "\n")
    else:
        _print_extraction(args.file, egraph, extraction)
    return 0


_SIZES = ("e_nodes", "e_classes", "edges")


def _write_choice(path: Path, egraph: SerializedEGraph, extraction: Extraction) -> None:
    from relational_tensat.base.files import write_aside

    content = {"cost": extraction.cost_us, "choices": egraph.named(extraction.choice)}
    with write_aside(path) as folder:
        (folder / path.name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _print_extraction(path: Path, egraph: SerializedEGraph, extraction: Extraction) -> None:
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
