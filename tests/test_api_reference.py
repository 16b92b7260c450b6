"""The reference of the public interface: mkdocstrings makes it of the docstrings."""

from __future__ import annotations

import re
from pathlib import Path

import relational_tensat

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "python.md"


def test_every_public_name_is_documented() -> None:
    listed = re.findall(r"^ +- (\w+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(relational_tensat.__all__)
    for name in relational_tensat.__all__:
        assert getattr(relational_tensat, name).__doc__, name
