"""The kernels of kept μGraphs as machine code: registers, shared memory, spills, by architecture."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.mirage.table import Table
from relational_tensat.base.errors import InputError
from relational_tensat.gpu.nvrtc import nvrtc_version
from relational_tensat.mugraph.graph.mugraph_json import decoded
from relational_tensat.mugraph.kernels.emission import Emitted, emit
from relational_tensat.mugraph.kernels.emit_cuda import ARCHITECTURES, headers
from relational_tensat.mugraph.sizes.waves import a100

HEADER = (
    "benchmark", "kernel", "arch", "registers", "shared bytes", "spilled bytes", "remark", "source",
)  # fmt: skip
#: What calls of functions within a kernel may put aside.
_FEW_BYTES = 64
#: Of shared memory that a block may have: an A100's, for which sizes are chosen; later ones have more.
_SHARED_BYTES = a100().shared_bytes


def kept_runs(path: Path) -> list[dict[str, Any]]:
    """Return the runs of a kept ``benchmarks.json`` that found something, those of most kernels.

    Raises:
        InputError: it is none.
    """
    try:
        runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
        most = max(run["search"]["max_kernels"] for run in runs)
        return [r for r in runs if r["search"]["max_kernels"] == most and r["mugraph"]]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no kept benchmarks ({error})") from error


def code_rows(run: dict[str, Any], target: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each kernel of a run and each architecture."""
    name = run["search"]["case"]
    try:
        emitted = emit(decoded(run["mugraph"], name), target)
    except InputError as error:
        yield (name, "-", "-", "-", "-", "-", str(error), "-")
        return
    for kernel in emitted:
        for arch in ARCHITECTURES:
            yield code_row(name, kernel, arch)


def code_row(name: str, kernel: Emitted, arch: str) -> tuple[str, ...]:
    """Return the row of a benchmark's kernel and an architecture."""
    return (name, kernel.name, arch, *_compiled(kernel, arch), source_hash(kernel))


def source_hash(kernel: Emitted) -> str:
    """Return the hash of all that a kernel's machine code depends on but the architecture."""
    parts = [kernel.source]
    if kernel.target == "cuda":
        parts += [*headers().values(), nvrtc_version()]
    else:
        parts.append(version("triton"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def kept_codes(path: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the rows of a kept table by source and architecture; none where there is no such file."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    if tuple(header) != HEADER:
        return {}
    return {(row[HEADER.index("source")], row[HEADER.index("arch")]): tuple(row) for row in rows}


def is_fit(row: tuple[str, ...]) -> bool:
    """Whether a row's kernel compiled, without spills, and its blocks fit shared memory."""
    limits = {"registers": 255, "shared bytes": _SHARED_BYTES, "spilled bytes": _FEW_BYTES}
    used = ((row[HEADER.index(name)], most) for name, most in limits.items())
    return all(text.isdecimal() and int(text) <= most for text, most in used)


def code_table(rows: list[tuple[str, ...]], target: str) -> Table:
    """Return the rows under a title."""
    return Table(f"Machine code, by way of {target}", HEADER, tuple(rows))


def _compiled(kernel: Emitted, arch: str) -> tuple[str, str, str, str]:
    try:
        code = kernel.compiled(arch)
    except InputError as error:
        return "-", str(kernel.shared_bytes or "-"), "-", str(error)
    return str(code.registers), str(code.shared_bytes), str(code.spilled_bytes), ""
