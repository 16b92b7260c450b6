"""Names of tensors and kernels as identifiers of a programming language."""

from __future__ import annotations

import hashlib
import keyword
import re

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: What code says beside the names of a graph, and what is made of these there.
_TAKEN = re.compile(
    r"(in|out|tile|sums|to|end|i|n|tl|triton|block|thread|WARPS|T|fused|arena)(_.*)?|__.*|.*_(now|squares|warps)"
    r"|asm|auto|bool|case|catch|char|const|default|delete|do|double|enum|explicit|export|extern|float|friend|goto"
    r"|inline|int|long|mutable|namespace|new|operator|private|protected|public|register|restrict|short|signed|sizeof"
    r"|static|struct|switch|template|this|throw|typedef|typename|union|unsigned|using|virtual|void|volatile|main"
)


def identifier(name: str) -> str:
    """Return a name that C and Python take; those that are none get a digest of their own."""
    if _PLAIN.fullmatch(name) and not keyword.iskeyword(name) and not _TAKEN.fullmatch(name):
        return name
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"n_{plain}_{digest[:16]}"
