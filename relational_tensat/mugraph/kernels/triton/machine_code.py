"""Emitted Triton as a function, and as machine code; the latter needs neither a GPU nor a driver."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
from dataclasses import dataclass
from typing import Any

from relational_tensat.base.errors import InputError, MissingDependencyError, first_line
from relational_tensat.base.folders import temporary_folder
from relational_tensat.mugraph.kernels.triton.emit_triton import TritonKernel

_POINTERS = {"float32": "*fp32", "float16": "*fp16", "bfloat16": "*bf16", "bool": "*u8"}
#: Of shared memory that a block may have, by the first digits of an architecture's number.
_SHARED_BYTES = {8: 163 << 10, 9: 227 << 10, 10: 227 << 10}
_USED = re.compile(r"Used (\d+) registers")
_SPILLED = re.compile(r"(\d+) bytes spill stores")


@dataclass(frozen=True, slots=True)
class TritonCode:
    """Machine code of one kernel.

    Attributes:
        shared_bytes: of shared memory, all of it stated at the launch.
        registers: of a thread.
        spilled_bytes: that did not fit into registers.
        instructions: the instructions of tensor cores and asynchronous copies in it.
    """

    cubin: bytes
    shared_bytes: int
    registers: int
    spilled_bytes: int
    instructions: tuple[str, ...]


def load_triton(kernel: TritonKernel) -> Any:
    """Return a kernel as a function of Triton's, to be called as ``function[grid](*tensors)``.

    With TRITON_INTERPRET=1 in the environment, Triton runs it by its interpreter, without a GPU.

    Raises:
        MissingDependencyError: Triton is not installed.
    """
    _triton()
    with temporary_folder() as folder:
        path = folder / f"{kernel.name}.py"
        path.write_text(kernel.source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"triton_{kernel.name}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        function = getattr(module, kernel.name)
        inspect.getsource(getattr(function, "fn", function))  # the file goes: Triton reads it later
    return function


def compile_triton(
    kernel: TritonKernel, arch: str, warps: int | None = None, stages: int = 3
) -> TritonCode:
    """Compile a kernel.

    Args:
        kernel: what to compile.
        arch: NVIDIA's, for example ``sm_90``.
        warps: of a block, if not the kernel's own.
        stages: how many iterations' tiles are on their way at once.

    Raises:
        MissingDependencyError: Triton is not installed.
        InputError: it does not compile, or needs more shared memory than a block may have.
    """
    _triton()
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    function = load_triton(kernel)
    places = range(len(kernel.parameters))
    dtypes = {
        **dict.fromkeys(kernel.parameters, kernel.dtype),
        **dict.fromkeys(kernel.wide, "float32"),
        **dict.fromkeys(kernel.conditions, "bool"),
    }
    signature = {name: _POINTERS[dtypes[name]] for name in kernel.parameters}
    aligned = {(place,): [["tt.divisibility", 16]] for place in places}
    source = ASTSource(fn=function, signature=signature, constexprs={}, attrs=aligned)
    try:
        compiled = triton.compile(
            source,
            target=GPUTarget("cuda", _number(arch), 32),
            options={
                "num_warps": warps or kernel.warps,
                "num_stages": stages,
                "enable_fp_fusion": True,
            },
        )
    except Exception as error:  # Triton's passes raise errors of many kinds, MLIR's among them
        raise InputError(
            f"{kernel.name}: Triton does not compile it for {arch}: {first_line(error)}"
        ) from error
    needed, most = compiled.metadata.shared, _SHARED_BYTES.get(_number(arch) // 10)
    if most is not None and needed > most:
        raise InputError(
            f"{kernel.name}: Triton needs {needed:,} bytes of shared memory for a block, "
            f"{arch} has {most:,}"
        )
    ptx = compiled.asm["ptx"]
    log = _ptxas_log(ptx, arch)
    names = re.findall(r"mma\.sync|wgmma\.mma_async|tcgen05\.mma|cp\.async\.c[ag]|ldmatrix", ptx)
    return TritonCode(
        compiled.asm["cubin"],
        compiled.metadata.shared,
        max(map(int, _USED.findall(log)), default=0),
        sum(map(int, _SPILLED.findall(log))),
        tuple(sorted(set(names))),
    )


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_"))


def _ptxas_log(ptx: str, arch: str) -> str:
    """Return what the assembler that comes with Triton says of a kernel."""
    from triton.backends.nvidia.compiler import get_ptxas

    target = re.search(r"\.target (\w+)", ptx)
    assert target is not None
    with temporary_folder() as folder:
        path = folder / "kernel.ptx"
        path.write_text(ptx, encoding="utf-8")
        command = [
            get_ptxas(_number(arch)).path, "-v", f"-arch={target[1]}",
            str(path), "-o", str(path.with_suffix(".cubin")),
        ]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def _triton() -> Any:
    try:
        import triton
    except ImportError:
        raise MissingDependencyError(
            "kernels in Triton need Triton: pip install 'relational-tensat[triton]'"
        ) from None
    return triton
