"""Keeping results: one JSON file each, with where, when and with what it was measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from bench.common.machine import describe_commit, describe_machine, describe_versions
from relational_tensat.base.files import write_aside

#: Where results are kept.
RESULTS = Path(__file__).parents[1] / "results"


def provenance(versions: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """Return date, commit, machine and versions: those of ``versions``, too."""
    return {
        "date": date.today().isoformat(),
        "commit": describe_commit(),
        "machine": describe_machine(),
        "versions": {**describe_versions(), **(versions or {})},
    }


def save_result(
    path: Path, content: Mapping[str, Any], versions: Mapping[str, str | None] | None = None
) -> Path:
    """Write ``content`` under its provenance, in place of what ``path`` had; return ``path``.

    Raises:
        InputError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**provenance(versions), **content}, indent=2)
    with write_aside(path) as aside:
        (aside / path.name).write_text(text + "\n", encoding="utf-8")
    return path


def report_saved(path: Path) -> None:
    """Report on stderr where results are kept."""
    print(f"saved {path}", file=sys.stderr)
