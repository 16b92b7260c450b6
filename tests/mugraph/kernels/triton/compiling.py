"""As a program: prints what Triton makes of attention for three generations; how the too large is refused.

In a process of its own: where a test has had Triton interpreted, it does not compile any more.
"""

from __future__ import annotations

import json

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.kernels.triton import machine_code
from relational_tensat.mugraph.kernels.triton.emit_triton import emit_triton
from tests.mugraph.kernels.mugraphs import attention


def _codes() -> list[dict[str, object]]:
    graph = attention(2, 256, 64, 4096, 64, (2, 4), 64)
    emitted = emit_triton(graph.kernels[0], graph.inputs)
    codes = []
    for arch in ("sm_80", "sm_90", "sm_100"):
        code = machine_code.compile_triton(emitted, arch)
        codes.append(
            {
                "arch": arch, "instructions": sorted(code.instructions), "registers": code.registers,
                "spilled_bytes": code.spilled_bytes, "shared_bytes": code.shared_bytes,
                "begins": code.cubin[:4].hex(),
            }
        )  # fmt: skip
    return codes


def _refused() -> str:
    machine_code._SHARED_BYTES = {8: 1024}
    graph = attention()
    try:
        machine_code.compile_triton(emit_triton(graph.kernels[0], graph.inputs), "sm_80")
    except InputError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    print(json.dumps({"codes": _codes(), "refused": _refused()}))  # noqa: T201
