"""As a program, with TRITON_INTERPRET=1: prints errors of kernels with maxima of tiles, as JSON."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.mugraph.graph.test_mirage_maxima import of_large_logits, of_largest

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        errors = [of_large_logits("triton", Path(folder)), max(of_largest("triton", Path(folder)))]
    print(json.dumps(errors))  # noqa: T201
