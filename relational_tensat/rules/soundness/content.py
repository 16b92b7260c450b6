"""What a verdict is about, as hashes: the rule's content, and the meaning of what it says."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from relational_tensat.base.lazy import once_per_object
from relational_tensat.rules.model import Rule

_PACKAGE = Path(__file__).resolve().parents[2]
#: The code that says what rules mean, and that judges them.
_MEANING = (
    "tensor", "tensor/operators", "rules", "rules/functions", "rules/soundness",
    "rules/backends", "rules/backends/cuda", "rules/backends/onnxruntime",
)  # fmt: skip
#: What is in these folders and changes no verdict: keeping, printing, loading, and what runs and costs.
_NO_MEANING = frozenset({
    "expand_to_onnx.py", "content.py", "diagnosis.py", "failure_text.py", "gate.py", "kernel_choice.py",
    "library.py", "parallel.py", "quantized_convolutions.py", "saved_kernels.py", "smallest.py", "store.py",
    "text.py",
})  # fmt: skip


@once_per_object
def content_hash(rule: Rule) -> str:
    """Return the hash of what a rule claims: its law, whatever its name, place and ``worth``."""
    claim = repr((rule.sources, rule.targets, rule.conditions, *["widened"] * rule.widened))
    return hashlib.sha256(claim.encode()).hexdigest()


@cache
def meaning_hash() -> str:
    """Return the hash of the code that gives rules their meaning: a verdict is good for no other."""
    digest = hashlib.sha256()
    for folder in _MEANING:
        for path in sorted((_PACKAGE / folder).glob("*.py")):
            if path.name not in _NO_MEANING:
                digest.update(f"{folder}/{path.name}\n".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
