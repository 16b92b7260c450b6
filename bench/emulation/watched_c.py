"""Emitted C, run with each access to operands and results looked at; see ``races.h``."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.emulation.device_memory import DeviceMemory, check_nothing_was_outside
from bench.emulation.host import FOLDER
from relational_tensat.mugraph.kernels.emit_c import CKernel
from relational_tensat.tensor import Array


class WatchedC:
    """Kernels of one library, by name."""

    def __init__(self, kernels: Sequence[CKernel], folder: Path) -> None:
        """Compile them."""
        watching, library = folder / "watching.cpp", folder / "watched.so"
        watching.write_text('#include "races.h"\n', encoding="utf-8")
        objects = [folder / "watching.o", *(folder / f"{kernel.name}.o" for kernel in kernels)]
        command = ["g++", "-std=c++20", "-w", "-fPIC", f"-I{FOLDER}", "-c", str(watching)]
        subprocess.run([*command, "-o", str(objects[0])], check=True)
        for kernel, made in zip(kernels, objects[1:], strict=True):
            source = made.with_suffix(".c")
            source.write_text(kernel.source, encoding="utf-8")
            flags = ["-std=c11", "-O1", "-fPIC", "-fsanitize=thread", "-c"]
            subprocess.run(["cc", *flags, str(source), "-o", str(made)], check=True)
        subprocess.run(["g++", "-shared", *map(str, objects), "-o", str(library)], check=True)
        self._library = ctypes.CDLL(str(library))

    def run(self, name: str, arrays: Sequence[Array]) -> list[Array]:
        """Return the arrays after a kernel has run: its operands, and then its results.

        Raises:
            AssertionError: it reads or writes outside of them.
        """
        memory = DeviceMemory(arrays)
        memory.watch(self._library)
        ctypes.c_int.in_dll(self._library, "outside_of_tensors").value = 0
        pointers = (ctypes.c_void_p(tensor.ctypes.data) for tensor in memory.tensors)
        getattr(self._library, name)(*pointers)
        check_nothing_was_outside(self._library, name)
        return memory.tensors
