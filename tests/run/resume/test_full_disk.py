"""A disk that is full at whatever commit: one line, exit 3, what was there stays, and the run can go on.

The disk is a limit on the size of files, which the system refuses to write beyond.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.kills.kills import broken_invariants
from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.formats import save_model
from tests.run.resume.models import RULES, layers

_FLAGS = [
    *(arg for file in RULES for arg in ("--rules", str(file))),
    *("--iterations", "8", "--multi-iterations", "2", "--node-limit", "800"),
    *("--search", "saturation"),
    *("--extractor", "greedy-dag", "--cost", "tensat_t4", "--set", "verify-runs=1", "--json"),
]
_KIB = 1024


@contextmanager
def file_limit(n_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.nightly
def test_a_disk_that_is_full_at_a_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, output = tmp_path / "layers.json", tmp_path / "out.json"
    save_model(layers(), model)
    assert main(["run", str(model), "-o", str(output), *_FLAGS]) == 0
    capsys.readouterr()
    refused, resumed = 0, 0
    for size in range(2 * _KIB, 1024 * _KIB, 45 * _KIB):
        db = tmp_path / f"{size}.duckdb"
        output.write_text("what was there")
        with file_limit(size):
            code = main(["run", str(model), "-o", str(output), "--db", str(db), "--quiet", *_FLAGS])
        (line, *others) = (*capsys.readouterr().err.splitlines(), "")
        if code == 0:
            break
        assert (code, others) == (InputError.exit_code, [""])
        assert "File too large" in line
        assert output.read_text() == "what was there"
        refused += 1
        if main(["run", "--resume", str(db), "-o", str(output), "--quiet", "--json"]) == 0:
            result = json.loads(capsys.readouterr().out)
            assert result["verified"]["ok"]
            assert result["cost_after_us"] < result["cost_before_us"]
            assert list(broken_invariants(db)) == []
            resumed += 1
        capsys.readouterr()
    assert code == 0
    assert refused > 2
    assert resumed > 0
