"""The kernels themselves, compiled for the CPU: their CUDA C++ runs, block by block, thread by thread.

What is replaced are CUDA's own words (``host.h``) and the few lines of PTX, by what they mean.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.emulation.host import FOLDER, with_meanings
from relational_tensat.gpu.calls import BoundCall, Call, Resolve
from relational_tensat.gpu.catalogue import (
    HEADERS,
    UNITS,
    Parameter,
    instances,
    read_source,
    signature_of,
)
from relational_tensat.gpu.cuda.modules import packed
from relational_tensat.gpu.library_calls import own_launch
from relational_tensat.tensor import Array

_GUARD_BYTES, _GUARD = 256, 0xA5


def compile_for_host(folder: Path) -> Any:
    """Compile all kernels into a shared library in ``folder``; return it loaded."""
    parts = ['#include "host.h"\n']
    for name in (*HEADERS, *UNITS):
        text = with_meanings(read_source(name))
        text = re.sub(r"#include .*|#pragma .*", "", text)
        unit = name.partition(".")[0]
        parts.append(text if name in HEADERS else f"namespace {unit} {{\n{text}\n}}\n")
    for unit in UNITS:
        parts += [_entry(unit.partition(".")[0], kernel) for kernel in instances(unit)]
    source = folder / "kernels.cpp"
    source.write_text("\n".join(parts), encoding="utf-8")
    library = folder / "kernels.so"
    command = ["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", f"-I{FOLDER}"]
    subprocess.run([*command, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def _entry(unit: str, kernel: str) -> str:
    """Return a C function that launches a kernel, its parameters in an array of 8 bytes each."""
    values, place = [], 0
    for parameter in signature_of(kernel).parameters:
        values.append(_value(parameter, place))
        place += parameter.count or 1
    call = f"{unit}::{_qualified(unit, kernel)}({', '.join(values)})"
    return (
        f'extern "C" void {symbol(kernel)}(const unsigned* grid, const unsigned* block, u64* given)'
        f" {{ host::launch(grid, block, [=] {{ {call}; }}); }}"
    )


def _qualified(unit: str, kernel: str) -> str:
    return kernel.replace("<u128>", f"<{unit}::u128>")


def _value(parameter: Parameter, place: int) -> str:
    if parameter.count is not None:
        kind = "Pointers" if parameter.format == "Q" else "Sizes"
        return f"*({kind}<{parameter.count}>*)(given + {place})"
    return {
        "Q": f"host::Word{{given[{place}]}}",
        "q": f"(i64)given[{place}]",
        "d": f"host::bits_as<f64>(given[{place}])",
    }[parameter.format]


def symbol(kernel: str) -> str:
    """Return the name of a kernel's entry."""
    return "run_" + re.sub(r"\W", "_", kernel)


@dataclass(frozen=True, slots=True)
class _Bound:
    function: Any
    grid: Any
    block: Any
    values: Any
    implementation: str = "kernels"
    workspace_bytes: int = 0

    def start(self, workspace: int) -> None:
        self.function(self.grid, self.block, self.values)

    def close(self) -> None:
        pass


class HostLibrary:
    """Real memory, kernels on the CPU; writes before or behind an allocation are found."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._blocks: dict[int, tuple[Array, int]] = {}
        self.bound: Counter[str] = Counter()

    @property
    def live(self) -> int:
        """How many allocations there are."""
        return len(self._blocks)

    def allocate(self, nbytes: int) -> int:
        block = np.full(nbytes + 3 * _GUARD_BYTES, _GUARD, np.uint8)
        address = -(-(block.ctypes.data + _GUARD_BYTES) // _GUARD_BYTES) * _GUARD_BYTES
        start = address - block.ctypes.data
        block[start : start + nbytes] = 0xFF
        self._blocks[address] = (block, nbytes)
        return address

    def free(self, address: int) -> None:
        block, nbytes = self._blocks.pop(address)
        start = address - block.ctypes.data
        assert (block[:start] == _GUARD).all(), "a kernel wrote before an allocation"
        assert (block[start + nbytes :] == _GUARD).all(), "a kernel wrote behind an allocation"

    def clear(self, address: int, nbytes: int) -> None:
        """Leave the memory as it is: calls are not tried here."""

    def write(self, address: int, data: Array) -> None:
        ctypes.memmove(address, np.ascontiguousarray(data).ctypes.data, data.nbytes)

    def read(self, address: int, nbytes: int) -> Array:
        return np.frombuffer(ctypes.string_at(address, nbytes), np.uint8).copy()

    def synchronize(self) -> None:
        pass

    def bind(self, call: Call, resolve: Resolve) -> BoundCall:
        launch = own_launch(call)
        self.bound[launch.kernel] += 1
        signature = signature_of(launch.kernel)
        values = packed(signature, launch, resolve)
        words = np.zeros(len(values), np.uint64)
        for place, (format_, value) in enumerate(zip(signature.format, values, strict=True)):
            words[place] = np.array([value], {"Q": "u8", "q": "i8", "d": "f8"}[format_]).view("u8")[
                0
            ]
        return _Bound(
            getattr(self._handle, symbol(launch.kernel)),
            (ctypes.c_uint * 3)(*launch.grid),
            (ctypes.c_uint * 3)(*launch.block),
            (ctypes.c_uint64 * len(words))(*map(int, words)),
        )
