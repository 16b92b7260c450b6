"""Matrix products that verify take one thread, which NumPy reads when it is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SCRIPT = """
import sys
from relational_tensat.cli import process_limits
process_limits.limit_blas_threads = lambda threads=1: print(threads, "numpy" in sys.modules)
from relational_tensat.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    "command",
    ["run x.onnx", "kernels search x.onnx", "kernels verify x.json x"],
)
def test_numpy_is_not_loaded_yet(command: str) -> None:
    argv = [sys.executable, "-c", _SCRIPT, *command.split()]
    printed = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert printed.stdout.splitlines()[:1] == ["1 False"], printed.stderr
