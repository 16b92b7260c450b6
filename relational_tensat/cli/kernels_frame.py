"""What the ``kernels`` commands share: how a program is named, and how a verification is reported."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.base.errors import UsageError
from relational_tensat.cli.kernels_text import mugraph_of
from relational_tensat.cli.parser import Parser, dimensions, merged, program_or_file, whole_number

if TYPE_CHECKING:
    import argparse

    from relational_tensat.mugraph.graph.mugraph import MuGraph
    from relational_tensat.mugraph.verify.verification import MuGraphVerification

#: Element types that kernels are made for.
DTYPES = ("float16", "bfloat16", "float32")
_KEY = re.compile("k[0-9a-f]{16}")


def add_mugraph(parser: Parser) -> None:
    """Declare what names a μGraph."""
    parser.add_argument(
        "file", type=Path, metavar="FILE",
        help="a μGraph as JSON, or a file of Mirage's; or the key of a kernel that a search kept",
    )  # fmt: skip
    parser.add_argument(
        "--graph", type=whole_number, default=0, metavar="N",
        help="which one, where the file has several [%(default)s]",
    )  # fmt: skip
    parser.add_argument(
        "--db", type=Path, metavar="DB",
        help="FILE is the key of a kernel in a database: of run --fuse --db, or of kernels search --db",
    )  # fmt: skip


def read_mugraph(args: argparse.Namespace) -> MuGraph:
    """Return the μGraph that was named.

    Raises:
        InputError: its file is malformed, or has no such graph; or nothing has a kernel of that key.
    """
    from relational_tensat.mugraph.graph.mugraph_json import load_mugraph

    key = str(args.file)
    if args.db is not None:
        return mugraph_of(args.db, key)
    if _KEY.fullmatch(key) and not args.file.exists():
        from relational_tensat.mugraph.candidate_cache import CandidateCache

        return CandidateCache.of_user().found(key)
    return load_mugraph(args.file, args.graph)


def add_program(parser: Parser, flag: str) -> None:
    """Declare what names a program, and its sizes."""
    parser.add_argument(
        flag, type=program_or_file, metavar="PROGRAM",
        help="a model, of which --region is meant; or a program: a JSON file of a μGraph without "
        "kernels, or a known name: attention, gated_mlp, lora, mlp, moe, ntrans, qknorm, rmsnorm_linear, "
        "swiglu",
    )  # fmt: skip
    parser.add_argument(
        "--region", type=whole_number, metavar="N",
        help="which region of a model; kernels regions MODEL lists them",
    )  # fmt: skip
    parser.add_argument(
        "--size", type=dimensions, action="append", default=[], metavar="VARIABLE=N,…",
        help="sizes of a known program's index variables",
    )  # fmt: skip
    parser.add_argument(
        "--dim", type=dimensions, action="append", default=[], metavar="NAME=SIZE,…",
        help="sizes of a model's dynamic dimensions",
    )  # fmt: skip


def read_program(args: argparse.Namespace) -> MuGraph:
    """Return the program that was named.

    Raises:
        UsageError: there is none of that name, or it has no such variable.
        InputError: its file is malformed.
    """
    from relational_tensat.formats.frontend import is_onnx
    from relational_tensat.mugraph.graph.mugraph_json import load_mugraph
    from relational_tensat.mugraph.programs import program

    sizes, dims = merged(args.size, "--size"), merged(args.dim, "--dim")
    if args.region is not None or is_onnx(args.program):
        if sizes:
            raise UsageError("--size goes with a known program; sizes of a model's dims: --dim")
        return _region(Path(args.program), args.region, dims)
    if dims:
        raise UsageError("--dim goes with a model, of which --region is meant")
    if Path(args.program).suffix == ".json":
        if sizes:
            raise UsageError("--size goes with a known program, a file has its sizes")
        return load_mugraph(Path(args.program))
    return program(args.program, **sizes)


def _region(model: Path, number: int | None, dims: Mapping[str, int]) -> MuGraph:
    from relational_tensat.formats import load_model
    from relational_tensat.mugraph.regions.regions import find_regions

    regions, _ = find_regions(load_model(model, dims))
    if number is None:
        raise UsageError(f"{model} is a model: --region N names one of its {len(regions)} regions")
    if number >= len(regions):
        raise UsageError(f"{model} has {len(regions)} regions, no region {number}")
    return regions[number].program


def verification_json(verification: MuGraphVerification) -> dict[str, Any]:
    """Return a verification as JSON."""
    return {
        "passed": verification.passed,
        "difference": None if verification.difference is None else str(verification.difference),
        "small_tests": verification.small_tests,
        "error": verification.error,
        "full_tests": verification.full_tests,
        "entry_tests": verification.entry_tests,
        "float64_error": verification.float64_error,
        "float16_error": finite(verification.float16_error),
        "large_error": finite(verification.large_error),
        "level_error": finite(verification.level_error),
        "takes_masks": verification.takes_masks,
        "is_stable": verification.is_stable,
    }


def finite(number: float | None) -> float | None:
    """Return a number as JSON can have it: None for an infinite one."""
    return None if number is None or math.isinf(number) else number


def verification_lines(verification: MuGraphVerification) -> list[str]:
    """Return a verification for people."""
    if verification.difference is not None:
        return [f"refused: {verification.difference} (modulo p)"]
    if verification.takes_masks is False:
        return ["refused: where masks leave little or nothing, the result is another"]
    lines = []
    if verification.small_tests:
        odds = (
            f"; a wrong graph passes them with odds of {verification.error:g} (Theorem 4, at these sizes)"
            if verification.error
            else "; no theorem bounds the odds of an error"
        )
        lines.append(
            f"finite fields, small sizes: {verification.small_tests} random tests passed{odds}"
        )
    where = "its own sizes" if verification.full_tests else "small sizes, as it is large"
    if verification.full_tests:
        lines.append(f"finite fields, its own sizes: {verification.full_tests} random tests passed")
    if verification.entry_tests:
        which = (
            "all sums and loops" if verification.has_all_sums else "each sum and loop in some test"
        )
        lines.append(
            f"finite fields, some entries of the result, {which} at their own sizes: "
            f"{verification.entry_tests} random tests passed"
        )
    if verification.float64_error is not None:
        lines.append(f"float64, {where}: relative error {verification.float64_error:.1e}")
    if verification.float16_error is not None:
        lines.append(f"float16, {where}: relative error {verification.float16_error:.1e}")
    if verification.large_error is not None:
        if verification.takes_large_logits:
            large = f"finite, relative error {verification.large_error:.1e}"
        else:
            large = "exponentials overflow"
        lines.append(f"float16, logits up to 600 and more: {large}")
    if verification.level_error is not None:
        if verification.takes_large_sums:
            level = f"relative error {verification.level_error:.1e}"
        else:
            level = "what is stored between kernels overflows"
        lines.append(f"float16, equal logits, values of 10,000: {level}")
    if verification.takes_masks:
        lines.append(
            "float64 and float16, masks that leave half of a row, any part, nothing: right"
        )
    return lines or ["refused: nothing could be tested"]
