"""Mirage's saved μGraphs, which lie beside the repository; where they are absent, tests skip."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "mirage"


@cache
def saved(name: str) -> list[Any]:
    """Return the documents of one file, which is read once."""
    path = _FOLDER / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("Mirage's saved graphs are not here")
    return json.loads(gzip.decompress(path.read_bytes()))
