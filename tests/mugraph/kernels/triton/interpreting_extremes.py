"""As a program, with TRITON_INTERPRET=1: prints errors of kernels with maxima and powers, as JSON."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.mugraph.kernels.test_extremes import LOOPS, errors

if __name__ == "__main__":
    found = []
    for loop in LOOPS:
        with tempfile.TemporaryDirectory() as folder:
            found += errors("triton", loop, Path(folder))
    print(json.dumps(found))  # noqa: T201
