"""Machine code of kept kernels; as a program, it prints that as JSON.

For Triton it is to be one: where a test has had Triton interpreted, it does not compile any more.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.mirage.machine_code import code_row, kept_codes, kept_runs, source_hash
from relational_tensat.mugraph.graph.mugraph_json import decoded
from relational_tensat.mugraph.kernels.emission import emit
from relational_tensat.mugraph.kernels.emit_cuda import ARCHITECTURES


def compiled_rows(benchmarks: Path, target: str) -> list[tuple[str, ...]]:
    """Return a row for each kernel and architecture, and the last one, compiled in any case, once more.

    Rows of the kept table are taken for the very same source and compiler; others are compiled.
    """
    kept = kept_codes(benchmarks.with_name(f"code-{target}.csv"))
    made = [
        (run["search"]["case"], kernel)
        for run in kept_runs(benchmarks)
        for kernel in emit(decoded(run["mugraph"], str(benchmarks)), target)
    ]
    rows = [
        kept.get((source_hash(kernel), arch)) or code_row(name, kernel, arch)
        for name, kernel in made
        for arch in ARCHITECTURES
    ]
    return [*rows, code_row(*made[-1], ARCHITECTURES[-1])]


if __name__ == "__main__":
    print(json.dumps(compiled_rows(Path(sys.argv[1]), sys.argv[2])))  # noqa: T201
