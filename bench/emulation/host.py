"""CUDA C++ as a compiler for the CPU reads it, with ``host.h``: a meaning for each line of PTX."""

from __future__ import annotations

import re
from pathlib import Path

#: Where ``host.h`` and ``races.h`` lie.
FOLDER = Path(__file__).resolve().parent

_PTX = re.compile(r'asm(?: volatile)?\(\s*"(?P<name>[\w.]+).*?\);', re.DOTALL)
#: What each instruction means, in the names of the lines that it stands in.
_MEANINGS = {
    "cvt.f32.f16": "y = host::half(x.bits);",
    "cvt.rn.f16.f32": "y.bits = host::to_half(x);",
    "cvt.rn.bf16.f32": "y.bits = host::to_bfloat(x);",
    "cvt.rna.tf32.f32": "y = host::to_tf32(x);",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": "host::multiply(c, a, b, 2, host::half_of);",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": (
        "host::multiply(c, a, b, 2, host::bfloat_of);"
    ),
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32": "host::multiply(c, a, b, 1, host::tf32_of);",
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16": "host::load_matrices(x, row, false);",
    "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16": "host::load_matrices(x, row, true);",
    "cvta.to.shared.u64": "y = (u64)pointer;",
    "cp.async.cg.shared.global": "host::begin_copy(to, from, BYTES, exists);",
    "cp.async.ca.shared.global": "host::begin_copy(to, from, BYTES, exists);",
    "cp.async.commit_group": "host::end_group();",
    "cp.async.wait_group": "host::wait_for_groups(N);",
    "cp.async.wait_all": "host::end_group(), host::wait_for_groups(0);",
}


def with_meanings(source: str) -> str:
    """Return a source with what its lines of PTX mean in their places."""
    return _PTX.sub(lambda match: _MEANINGS[match["name"]], source)
