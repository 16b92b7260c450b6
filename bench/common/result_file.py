"""Keeping results: one JSON file each, with where, when and with what it was measured."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from bench.common.machine import describe_commit, describe_machine, describe_versions
from bench.common.table import table_row
from relational_tensat.base.errors import InputError
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


def save_with_table(
    path: Path, content: Mapping[str, Any], versions: Mapping[str, str | None], text: str
) -> Path:
    """Write ``content`` as ``save_result`` does, and a text in Markdown beside it; return ``path``.

    Raises:
        InputError: they cannot be written.
    """
    save_result(path, content, versions)
    table = path.with_suffix(".md")
    with write_aside(table) as aside:
        (aside / table.name).write_text(text, encoding="utf-8")
    return path


def path_of_settings(path: Path, settings: Mapping[str, Any]) -> Path:
    """Return a path, numbered where it has results of other settings: those are not replaced.

    Args:
        path: of the results of a day.
        settings: what ``save_result`` will keep under ``settings``.
    """
    known = json.loads(json.dumps(settings))
    for number in count(1):
        numbered = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        if not numbered.exists():
            return numbered
        if read_object(numbered, "results").get("settings") == known:
            return numbered
    raise AssertionError  # never: numbers do not end


def read_object(path: Path, expected: str) -> dict[str, Any]:
    """Return the JSON object that a file has.

    Args:
        expected: what the object should be, for the error.

    Raises:
        InputError: it is not JSON, or no object.
    """
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}; expected {expected}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected an object with {expected}")
    return content


Row = TypeVar("Row")


def save_rows(
    path: Path,
    options: argparse.Namespace,
    rows: Sequence[Row],
    header: Sequence[str],
    cells: Callable[[Row], Sequence[str]],
) -> Path:
    """Write dataclasses as JSON, with the settings of a command, as CSV and as a table in Markdown.

    What ``path`` and its like had is replaced.

    Args:
        path: of the JSON file; the others have other suffixes.
        header, cells: of the table.

    Raises:
        InputError: it cannot be written.
    """
    left_out = ("command", "run", "save")
    settings = {
        key: str(value) if isinstance(value, Path) else value
        for key, value in sorted(vars(options).items())
        if key not in left_out
    }
    contents = [asdict(row) for row in rows]  # type: ignore[call-overload]
    save_result(path, {"settings": settings, "runs": contents})
    file = io.StringIO()
    writer = csv.DictWriter(file, list(contents[0]) if contents else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(contents)
    path.with_suffix(".csv").write_text(file.getvalue(), encoding="utf-8")
    lines = [header, ["---"] * len(header), *map(cells, rows)]
    text = "".join(f"{table_row(line)}\n" for line in lines)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    return path


def report_saved(path: Path) -> None:
    """Report on stderr where results are kept."""
    print(f"saved {path}", file=sys.stderr)
