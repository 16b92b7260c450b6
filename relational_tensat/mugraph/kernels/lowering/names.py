"""Names of tensors and kernels as identifiers of a programming language."""

from __future__ import annotations

import keyword
import re


def identifier(name: str) -> str:
    """Return a name that C and Python take; those that are none get a digest of their own."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    if plain == name and not keyword.iskeyword(name) and not name[0].isdecimal():
        return name
    return f"n_{plain}_{name.encode().hex()[:8]}"
