"""``kernels emit``: the code of a μGraph's kernels, or what a block of them does when and where."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from relational_tensat.base.errors import UsageError
from relational_tensat.base.shown_text import escaped_in_code
from relational_tensat.cli.kernels_frame import DTYPES, add_mugraph, read_mugraph
from relational_tensat.cli.kernels_text import layouts_json, show_plans
from relational_tensat.cli.parser import Parser
from relational_tensat.cli.rules_frame import add_json, report

if TYPE_CHECKING:
    from rich.console import Console

    from relational_tensat.mugraph.kernels.emission import Emitted

HELP = "print the code of a μGraph's kernels: Triton, CUDA C++, or C where there are no products"


def add_arguments(parser: Parser) -> None:
    """Declare the flags of ``kernels emit``."""
    from relational_tensat.mugraph.kernels.emission import TARGETS

    add_mugraph(parser)
    parser.add_argument("--target", choices=TARGETS, default="triton", help="[%(default)s]")
    parser.add_argument(
        "--dtype", choices=DTYPES, metavar="TYPE",
        help=f"of elements: {', '.join(DTYPES)} [float16; float32 in C]",
    )  # fmt: skip
    parser.add_argument(
        "--plan", action="store_true",
        help="instead of code: statements in order with barriers, tensors with places and layouts (cuda)",
    )  # fmt: skip
    parser.add_argument(
        "--arch", metavar="SM",
        help="compile it, too, for example for sm_90: registers, shared memory, spills (cuda, triton)",
    )  # fmt: skip
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Emit and print."""
    from relational_tensat.mugraph.kernels.emission import emit, order_of_steps

    if args.plan and args.target != "cuda":
        raise UsageError(f"--plan goes with --target cuda: {args.target} places nothing itself")
    if args.arch and args.target == "c":
        raise UsageError("--arch goes with --target cuda or triton")
    graph = read_mugraph(args)
    emitted, order = emit(graph, args.target, args.dtype), order_of_steps(graph)
    compiled = [one.compiled(args.arch) for one in emitted] if args.arch else []
    report(
        lambda: {**_content(emitted, compiled), "order": order},
        lambda console: _show(emitted, args.plan, console),
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


def _content(emitted: list[Emitted], compiled: list[Any]) -> dict[str, Any]:
    kernels = []
    for place, one in enumerate(emitted):
        content: dict[str, Any] = {
            "name": one.name, "target": one.target, "source": one.source, "grid": list(one.grid),
            "plan": [row.content() for row in one.plan], "places": [p.content() for p in one.places],
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


def _show(emitted: list[Emitted], as_plan: bool, console: Console) -> None:
    if as_plan:
        show_plans(emitted, console)
        return
    for one in emitted:
        sys.stdout.write(one.source)
