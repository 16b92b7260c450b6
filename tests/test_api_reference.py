"""The reference of the public interface: pdoc makes it of the docstrings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import relational_tensat


def test_every_public_name_is_documented(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pdoc",
        "relational_tensat",
        "!relational_tensat.",
        "-o",
        str(tmp_path),
    ]
    subprocess.run([*command, "--docformat", "google"], check=True, capture_output=True)
    page = (tmp_path / "relational_tensat.html").read_text(encoding="utf-8")
    for name in relational_tensat.__all__:
        assert f'id="{name}"' in page, name
        assert getattr(relational_tensat, name).__doc__, name
