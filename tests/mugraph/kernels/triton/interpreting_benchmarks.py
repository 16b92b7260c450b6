"""As a program, with TRITON_INTERPRET=1: prints what kept kernels compute, as rows of ``bench mirage``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.mirage.machine_code import kept_runs
from bench.mirage.values import value_rows

if __name__ == "__main__":
    runs = kept_runs(Path(sys.argv[1]))
    rows = [row for run in runs for row in value_rows(run, "triton")]
    print(json.dumps(rows))  # noqa: T201
