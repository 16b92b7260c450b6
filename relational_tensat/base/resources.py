"""Where the SQL and rule files are, in a source checkout and in an installed wheel alike."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


@cache
def resource_dir(kind: str) -> Path:
    """Return the folder ``sql`` or ``rules``.

    Raises:
        FileNotFoundError: neither the checkout nor the wheel has it.
    """
    for candidate in (_PACKAGE.parent / kind, _PACKAGE / "_resources" / kind):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"the folder {kind!r} is neither beside nor inside {_PACKAGE}")


@cache
def sql(name: str) -> str:
    """Return the text of ``sql/NAME.sql``."""
    return (resource_dir("sql") / f"{name}.sql").read_text(encoding="utf-8")
