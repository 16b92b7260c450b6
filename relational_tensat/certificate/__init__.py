"""Certificates of results, and their check, which shares no code with the search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def certificate_schema() -> dict[str, Any]:
    """Return the JSON Schema of certificates, which stands in ``certificate.schema.json``."""
    text = Path(__file__).with_name("certificate.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
