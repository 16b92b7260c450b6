"""``kernels …`` on one μGraph: show it, emit its code, verify it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.errors import UsageError
from relational_tensat.base.outputs import KERNELS, PAGE
from relational_tensat.base.shown_text import escaped_in_code
from relational_tensat.cli.closed_output import write_line
from relational_tensat.cli.common import add_dims, add_json, add_seed, report
from relational_tensat.cli.parser import Parser, dimensions, merged, program_or_file, whole_number
from relational_tensat.cli.process_limits import limit_blas_threads

if TYPE_CHECKING:
    import argparse

    from rich.console import Console

    from relational_tensat.mugraph.graph.mugraph import MuGraph
    from relational_tensat.mugraph.kernels.emission import Emitted
    from relational_tensat.mugraph.regions.regions import ModelRegion

#: Languages of ``kernels emit``: as the module has them, which is too heavy for ``--help``.
TARGETS = ("triton", "cuda", "c")
#: Element types that kernels are made for.
_DTYPES = ("float16", "bfloat16", "float32")
_KEY = re.compile("k[0-9a-f]{16}")
#: The exit code where a μGraph computes something else.
_FAILED = 4


def _add_mugraph(parser: Parser) -> None:
    parser.add_argument(
        "file", type=Path, metavar="FILE",
        help="a μGraph as JSON, or a file of Mirage's; or the key of a kernel that a search kept",
    )  # fmt: skip
    parser.add_argument(
        "--graph", type=whole_number, default=0, metavar="N",
        help="number of the μGraph, if the file has several [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--db", type=Path, metavar="DB",
        help="FILE is the key of a kernel in this database, of run --fuse --db or kernels search --db",
    )  # fmt: skip


def _read_mugraph(args: argparse.Namespace) -> MuGraph:
    """Return the μGraph that was named.

    Raises:
        InputError: its file is malformed, or has no such graph; or nothing has a kernel of that key.
    """
    from relational_tensat.mugraph.graph.mugraph_json import load_mugraph

    key = str(args.file)
    if args.db is not None:
        from relational_tensat.cli.kernels_text import mugraph_of

        return mugraph_of(args.db, key)
    if _KEY.fullmatch(key) and not args.file.exists():
        from relational_tensat.mugraph.candidate_cache import CandidateCache

        return CandidateCache.of_user().found(key)
    return load_mugraph(args.file, args.graph)


def add_program(parser: Parser) -> None:
    """Declare what names a program, and its sizes."""
    parser.add_argument(
        "program", type=program_or_file, metavar="PROGRAM",
        help="a model, with --region; or a program: a JSON file of a μGraph without "
        "kernels, or a known name: attention, gated_mlp, lora, mlp, moe, ntrans, qknorm, rmsnorm_linear, "
        "swiglu",
    )  # fmt: skip
    parser.add_argument(
        "--region", type=whole_number, metavar="N",
        help="number of a region of the model; kernels regions MODEL lists them",
    )  # fmt: skip
    parser.add_argument(
        "--size", type=dimensions, action="append", default=[], metavar="VARIABLE=N,…",
        help="sizes of a known program's index variables",
    )  # fmt: skip
    add_dims(parser)


def read_stored_program(
    args: argparse.Namespace,
) -> tuple[MuGraph, tuple[tuple[str, ...], ...]]:
    """Return the program that was named, and of a model's region how its values lie in memory.

    Raises:
        UsageError: no program has that name, or it has no such variable.
        InputError: its file is malformed.
    """
    from relational_tensat.formats.frontend import is_onnx
    from relational_tensat.mugraph.graph.mugraph_json import load_mugraph
    from relational_tensat.mugraph.programs import program

    sizes, dims = merged(args.size, "--size"), merged(args.dim, "--dim")
    if args.region is not None or is_onnx(args.program):
        if sizes:
            raise UsageError("--size goes with a known program; sizes of a model's dims: --dim")
        region = _region(Path(args.program), args.region, dims)
        return region.program, region.orders
    if dims:
        raise UsageError("--dim goes with a model, of which --region is meant")
    if Path(args.program).suffix == ".json":
        if sizes:
            raise UsageError("--size goes with a known program, a file has its sizes")
        return load_mugraph(Path(args.program)), ()
    return program(args.program, **sizes), ()


def _region(model: Path, number: int | None, dims: Mapping[str, int]) -> ModelRegion:
    from relational_tensat.formats import load_model
    from relational_tensat.mugraph.regions.regions import find_regions

    regions, _ = find_regions(load_model(model, dims))
    if number is None:
        raise UsageError(f"{model} is a model: --region N names one of its {len(regions)} regions")
    if number >= len(regions):
        raise UsageError(f"{model} has {len(regions)} regions, no region {number}")
    return regions[number]


def show_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels show``."""
    _add_mugraph(parser)
    parser.add_argument(
        "--sql", action="store_true",
        help="print the rows of the search that found it, too, and with --db the SQL that asks for them",
    )  # fmt: skip
    parser.add_argument(
        "--html", type=PAGE, metavar="OUT",
        help="write a page, too, that draws the three levels, with maps and the bytes that move",
    )  # fmt: skip
    parser.add_argument(
        "--dtype", choices=_DTYPES, default="float16", metavar="TYPE",
        help=f"with --html: the element type: {', '.join(_DTYPES)} [%(default)s]",
    )  # fmt: skip
    add_json(parser, "it as JSON, also a file of Mirage's")


def show_kernel(args: argparse.Namespace) -> int:
    """Print a μGraph."""
    from relational_tensat.cli.kernels_text import show_rows, show_sql
    from relational_tensat.mugraph.graph.mugraph_json import encoded
    from relational_tensat.mugraph.graph.mugraph_text import mugraph_text

    key = str(args.file)
    graph = _read_mugraph(args)
    if args.html is not None:
        from relational_tensat.view.data.kernel_data import KernelPage
        from relational_tensat.view.document import write_page
        from relational_tensat.view.kernel_figure import drawing

        write_page(KernelPage(graph.name, (drawing(graph, args.dtype),)), args.html)

    def show(console: Console) -> None:
        console.print(mugraph_text(graph))
        if args.sql and args.db is not None:
            show_sql(args.db, key, console)
        elif args.sql:
            show_rows(graph, console)

    report(lambda: encoded(graph), show, as_json=args.json)
    return 0


def emit_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels emit``."""
    _add_mugraph(parser)
    parser.add_argument(
        "--target", choices=TARGETS, default="triton", help="the language of the code [%(default)s]"
    )
    parser.add_argument(
        "--dtype", choices=_DTYPES, metavar="TYPE",
        help=f"the element type: {', '.join(_DTYPES)} [float16; float32 in C]",
    )  # fmt: skip
    parser.add_argument(
        "--plan", action="store_true",
        help="print statements with barriers, tensors with places and layouts, instead of code (cuda)",
    )  # fmt: skip
    parser.add_argument(
        "--module", type=KERNELS, metavar="DIR",
        help="write a folder instead: all code, a torch.nn.Module with named operands, a test of it",
    )  # fmt: skip
    parser.add_argument(
        "--arch", metavar="SM",
        help="compile for this architecture, too, for example sm_90; print its registers (cuda, triton)",
    )  # fmt: skip
    add_json(parser)


def emit_kernels(args: argparse.Namespace) -> int:
    """Print the code of a μGraph's kernels."""
    from relational_tensat.mugraph.kernels.emission import emit, order_of_steps

    if args.plan and args.target != "cuda":
        raise UsageError(f"--plan goes with --target cuda: {args.target} places nothing itself")
    if args.arch and args.target == "c":
        raise UsageError("--arch goes with --backend cuda or triton")
    graph = _read_mugraph(args)
    if args.module is not None:
        return _write_module(graph, args.dtype or "float32", args.module)
    emitted, order = emit(graph, args.target, args.dtype), order_of_steps(graph)
    compiled = [one.compiled(args.arch) for one in emitted] if args.arch else []
    report(
        lambda: {**_emitted_json(emitted, compiled), "order": order},
        lambda console: _show_code(emitted, args.plan, console),
        as_json=args.json,
    )
    comment = "//" if args.target != "triton" else "#"
    for line in order if not args.json else ():
        sys.stdout.write(f"{comment} {escaped_in_code(line)}\n")
    for one, machine_code in zip(emitted, compiled, strict=bool(compiled)):
        if not args.json:
            sys.stdout.write(
                f"{one.name} for {args.arch}: {machine_code.registers} registers, "
                f"{machine_code.shared_bytes} bytes of shared memory, "
                f"{machine_code.spilled_bytes} bytes spilled\n"
            )
    return 0


def _write_module(graph: MuGraph, dtype: str, folder: Path) -> int:
    """Write a folder with a kernel's code, and with it as a module of PyTorch."""
    from relational_tensat.mugraph.fusion.kernel_files import TORCH_MODULE, TORCH_TEST, write_folder
    from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
    from relational_tensat.mugraph.graph.mugraph_json import content_hash
    from relational_tensat.mugraph.graph.validity import kernel_tensors

    dims = kernel_tensors(graph)
    operands, results = (
        tuple(tuple(dim.size for dim in dims[name]) for name in names)
        for names in (graph.inputs, graph.outputs)
    )
    key = f"k{content_hash(graph)}"
    kernel = OwnKernel(key, graph, (), dtype, operands, results, None)
    write_folder([kernel], folder, has_torch=True)
    write_line(f"{folder / TORCH_MODULE}: the module")
    write_line(f"{folder / TORCH_TEST}: its test")
    return 0


def _emitted_json(emitted: list[Emitted], compiled: list[Any]) -> dict[str, Any]:
    from relational_tensat.cli.kernels_text import layouts_json

    kernels = []
    for place, one in enumerate(emitted):
        content: dict[str, Any] = {
            "name": one.name, "target": one.target, "source": one.source, "grid": list(one.grid),
            "plan": [asdict(row) for row in one.plan], "places": [asdict(place) for place in one.places],
        }  # fmt: skip
        if compiled:
            code = compiled[place]
            content["compiled"] = {
                "registers": code.registers,
                "shared_bytes": code.shared_bytes,
                "spilled_bytes": code.spilled_bytes,
            }
        kernels.append(content)
    return {"kernels": kernels, "layouts": layouts_json(emitted[0].layouts)}


def _show_code(emitted: list[Emitted], as_plan: bool, console: Console) -> None:
    if as_plan:
        from relational_tensat.cli.kernels_text import show_plans

        show_plans(emitted, console)
        return
    for one in emitted:
        sys.stdout.write(one.source)


def verify_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels verify``."""
    _add_mugraph(parser)
    add_program(parser)
    add_seed(parser)
    add_json(parser)


def verify_kernel(args: argparse.Namespace) -> int:
    """Verify and report; 4 where the graph is wrong."""
    limit_blas_threads()
    from relational_tensat.cli.kernels_text import verification_json, verification_lines
    from relational_tensat.mugraph.verify.verification import verify_mugraph

    graph = _read_mugraph(args)
    verification = verify_mugraph(read_stored_program(args)[0], graph, args.seed)
    report(
        lambda: verification_json(verification),
        lambda console: console.print("\n".join(verification_lines(verification))),
        as_json=args.json,
    )
    return 0 if verification.passed else _FAILED
