"""Compiling the kernels with NVRTC: no driver, GPU, toolkit or header is needed.

NVRTC is reached through ``cuda.bindings``, which finds its library in the wheel ``nvidia-cuda-nvrtc``, in a
CUDA toolkit or on the system. So are the functions of the driver that PyCUDA does not have. Compiled code
is kept in the user's cache folder, by the sources, the architecture and NVRTC's version.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError, MissingDependencyError, first_line
from relational_tensat.base.files import unless_full, write_aside
from relational_tensat.base.folders import check_own, user_cache
from relational_tensat.gpu.catalogue import HEADERS, UNITS, instances, read_source

#: Ends the one line that says what is missing.
INSTALL = "pip install 'relational-tensat[gpu]'"


def cuda_driver(purpose: str) -> Any:
    """Return the module of the driver's functions.

    Args:
        purpose: the things that need them, in the plural, for the message if they are not there.

    Raises:
        MissingDependencyError: cuda-bindings is not installed.
    """
    try:
        from cuda.bindings import driver
    except ImportError:
        raise MissingDependencyError(f"{purpose} need cuda-bindings: {INSTALL}") from None
    return driver


def checked(answer: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """Return a call's results.

    Raises:
        InputError: it failed.
    """
    status, *results = answer
    if status.value:
        raise InputError(f"{what}: {status.name}")
    return tuple(results)


_log = logging.getLogger("relational_tensat")
_USED = re.compile(r"Used (\d+) registers")
_SPILLED = re.compile(r"(\d+) bytes spill stores")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True, slots=True)
class Compiled:
    """Machine code of one unit.

    Attributes:
        names: each kernel's name in the code, by its full name.
        log: the compiler's notes on each kernel: registers, shared memory, spills; "" if the code comes
            from the cache.
    """

    unit: str
    arch: str
    cubin: bytes
    names: Mapping[str, str]
    log: str = ""

    @property
    def most_registers(self) -> int:
        """Registers a thread of the hungriest kernel."""
        return max(map(int, _USED.findall(self.log)), default=0)

    @property
    def shared_bytes(self) -> int:
        """Shared memory that the neediest kernel declares itself."""
        return max(map(int, _SHARED.findall(self.log)), default=0)

    @property
    def spilled_bytes(self) -> int:
        """Bytes that did not fit into registers, of all kernels."""
        return sum(map(int, _SPILLED.findall(self.log)))


def nvrtc_version() -> str:
    """Return NVRTC's version, e.g. ``13.0``.

    Raises:
        MissingDependencyError: NVRTC, or cuda.bindings, is not installed.
    """
    major, minor = _checked(_nvrtc().nvrtcVersion(), "nvrtcVersion")
    return f"{major}.{minor}"


def compile_unit(unit: str, arch: str) -> Compiled:
    """Compile one file of kernels, e.g. for ``sm_90``.

    Raises:
        MissingDependencyError, InputError: as ``compile_source``.
    """
    headers = {name: read_source(name) for name in HEADERS}
    return compile_source(unit, read_source(unit), headers, instances(unit), arch)


def compile_source(
    unit: str, source: str, headers: Mapping[str, str], kernels: Sequence[str], arch: str
) -> Compiled:
    """Compile CUDA C++.

    Args:
        unit: the source's name in messages.
        source: its text.
        headers: the files that it may include, by name.
        kernels: the full names of its templates' instances; kernels with C linkage need none.
        arch: for example ``sm_90``.

    Raises:
        MissingDependencyError: NVRTC, or cuda.bindings, is not installed.
        InputError: it does not compile, or NVRTC knows no such architecture; gives the first error.
    """
    nvrtc = _nvrtc()
    (program,) = _checked(
        nvrtc.nvrtcCreateProgram(
            source.encode(), unit.encode(), len(headers),
            [text.encode() for text in headers.values()], [name.encode() for name in headers],
        ),
        "nvrtcCreateProgram",
    )  # fmt: skip
    try:
        for name in kernels:
            _checked(nvrtc.nvrtcAddNameExpression(program, name.encode()), name)
        options = [
            f"--gpu-architecture={arch}".encode(), b"--std=c++17", b"--ptxas-options=-v",
        ]  # fmt: skip
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _text(nvrtc, program)
        if status.value:
            lines = [line for line in log.splitlines() if "error" in line] or [status.name]
            raise InputError(f"{unit}: does not compile for {arch}: {lines[0].strip()}")
        names = {
            name: _checked(nvrtc.nvrtcGetLoweredName(program, name.encode()), name)[0].decode()
            for name in kernels
        }
        (size,) = _checked(nvrtc.nvrtcGetCUBINSize(program), "nvrtcGetCUBINSize")
        cubin = b" " * size
        _checked(nvrtc.nvrtcGetCUBIN(program, cubin), "nvrtcGetCUBIN")
        return Compiled(unit, arch, cubin, names, log)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def cached_unit(unit: str, arch: str) -> Compiled:
    """Return a unit compiled, from the cache if it is there.

    A file in the cache that cannot be read is compiled again.

    Raises:
        MissingDependencyError, InputError: as ``compile_unit``.
    """
    path = _cache_file(unit, arch)
    try:
        check_own(path)
        content = json.loads(path.read_text(encoding="utf-8"))
        _log.info("loads the compiled kernels of %s", path)
        return Compiled(unit, arch, base64.b64decode(content["cubin"]), content["names"])
    except (InputError, OSError, ValueError, KeyError, TypeError):
        compiled = compile_unit(unit, arch)
    encoded = base64.b64encode(compiled.cubin).decode()
    text = json.dumps({"names": dict(compiled.names), "cubin": encoded})
    with unless_full():
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_aside(path) as folder:
            (folder / path.name).write_text(text, encoding="utf-8")
    return compiled


def sources_hash() -> str:
    """Return eight digits that stand for all kernels' sources."""
    digest = hashlib.sha256()
    for name in (*HEADERS, *UNITS):
        digest.update(read_source(name).encode())
    return digest.hexdigest()[:8]


def _cache_file(unit: str, arch: str) -> Path:
    digest = hashlib.sha256("\0".join((unit, *instances(unit), arch, nvrtc_version())).encode())
    for name in (*HEADERS, unit):
        digest.update(read_source(name).encode())
    return user_cache() / "cubins" / f"{digest.hexdigest()[:32]}.json"


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        raise MissingDependencyError(
            f"compiling GPU kernels needs cuda-bindings: {INSTALL}"
        ) from None
    try:
        nvrtc.nvrtcVersion()
    except RuntimeError as error:  # cuda.bindings finds the library when it is first called
        reason = first_line(error)
        raise MissingDependencyError(
            f"compiling GPU kernels needs NVRTC ({reason}): {INSTALL}"
        ) from error
    return nvrtc


def _checked(answer: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    return checked(answer, f"NVRTC: {what}")


def _text(nvrtc: Any, program: Any) -> str:
    (size,) = _checked(nvrtc.nvrtcGetProgramLogSize(program), "nvrtcGetProgramLogSize")
    log: bytes = b" " * size
    _checked(nvrtc.nvrtcGetProgramLog(program, log), "nvrtcGetProgramLog")
    return log.decode(errors="replace").rstrip("\0 \n")
