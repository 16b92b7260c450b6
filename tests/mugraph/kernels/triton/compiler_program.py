"""As a program: prints what Triton makes of attention for three generations; how the too large is refused.

In a process of its own: where a test has had Triton interpreted, it does not compile any more.
"""

from __future__ import annotations

import json

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.kernels import emission
from relational_tensat.mugraph.kernels.emit_triton import emit_triton
from tests.mugraph.kernels.mugraphs import attention
from tests.mugraph.masks import BY_BOOLS


def _codes() -> list[dict[str, object]]:
    graph = attention(2, 256, 64, 4096, 64, (2, 4), 64)
    emitted = emit_triton(graph.kernels[0], graph.inputs)
    codes = []
    for arch in ("sm_80", "sm_90", "sm_100"):
        code = emission.compile_triton(emitted, arch)
        codes.append(
            {
                "arch": arch, "instructions": sorted(code.instructions), "registers": code.registers,
                "spilled_bytes": code.spilled_bytes, "shared_bytes": code.shared_bytes,
                "begins": code.cubin[:4].hex(),
            }
        )  # fmt: skip
    return codes


def _of_bools() -> list[int]:
    """Return the spilled bytes of attention with a mask of bools, by element type."""
    graph = BY_BOOLS[0]
    emitted = (
        emit_triton(graph.kernels[0], graph.inputs, dtype) for dtype in ("float16", "float32")
    )
    return [emission.compile_triton(kernel, "sm_90").spilled_bytes for kernel in emitted]


def _refused() -> str:
    emission._SHARED_BYTES = {8: 1024}
    graph = attention()
    try:
        emission.compile_triton(emit_triton(graph.kernels[0], graph.inputs), "sm_80")
    except InputError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    found = {"codes": _codes(), "of_bools": _of_bools(), "refused": _refused()}
    print(json.dumps(found))  # noqa: T201
