"""The published files and what is known of their rules, where they are beside the project."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relational_tensat.rules.model import Rule

SHARED = Path(__file__).parents[4] / "shared"
PROTOBUF = SHARED / "data" / "taso" / "graph_subst.pb"
SINGLE = SHARED / "data" / "taso" / "converted.txt"
MULTI = SHARED / "data" / "taso" / "converted_multi.txt"
REFERENCE = SHARED / "reference" / "taso_rules.json"

needs_published = pytest.mark.skipif(
    not all(path.exists() for path in (PROTOBUF, SINGLE, MULTI, REFERENCE)),
    reason="the published rules are not beside the project",
)


def content(rule: Rule) -> Rule:
    """Return a rule without what says where it is from."""
    return replace(rule, name="", law="", file="", line=0)


def reference() -> list[dict[str, Any]]:
    """Return what is known of the 139 rules, in TENSAT's order."""
    facts = json.loads(REFERENCE.read_text())
    assert isinstance(facts, list)
    return facts
