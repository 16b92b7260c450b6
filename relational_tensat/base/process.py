"""The means of a process: a processor, threads, memory, a seed, a garbage collector that seldom runs."""

from __future__ import annotations

import gc
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from relational_tensat.base.errors import check_memory_limit
from relational_tensat.base.option import OptionGroup, option

#: The garbage collector looks for cycles once there are so many new objects. A run keeps nearly all that it
#: makes: at Python's 700, traversing 50,000 rules, forms and modules again and again took 3 % of it, and
#: graphs of a tree search 10 % of that.
_NEW_OBJECTS = 100_000


def collect_rarely() -> None:
    """Let the garbage collector of this process search less often."""
    gc.set_threshold(_NEW_OBJECTS)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep the garbage collector from searching millions of new objects again and again.

    For code that makes many objects and no cycles of them; other cycles are collected later.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_CPU_INFO = Path("/proc/cpuinfo")
#: The instruction sets for which onnxruntime has kernels of their own, as the flags of /proc/cpuinfo.
INSTRUCTION_SETS = (
    "sse4_1", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16",
    "avx512_fp16", "amx_tile", "asimd", "asimddp", "asimdhp", "i8mm", "bf16", "sve",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProcessOptions(OptionGroup):
    """Limits on the database, the solver and verification, and the seed of their random numbers."""

    threads: int = option(
        1,
        "threads of the database, the solver and verification",
        metavar="N",
        minimum=1,
        may_change=True,
    )
    seed: int = option(0, "seed of all random numbers", metavar="N")
    memory_limit: str | None = option(
        None,
        "the most memory of the database, for example 2GB",
        metavar="SIZE", check=check_memory_limit, default_text="80 % of the machine's", may_change=True,
    )  # fmt: skip
    temp_directory: Path | None = option(
        None, "the folder for data that does not fit into memory", metavar="DIR",
        default_text="beside --db, or the system's", may_change=True, writes="folder",
        is_rare=True,
    )  # fmt: skip
    deterministic: bool = option(
        False,
        "the same bytes on every machine, busy or not: no race, no measuring, no limit of seconds; "
        "--search auto is saturation",
    )


def physical_cores(cpu_info: Path = _CPU_INFO) -> int:
    """Return how many cores there are, each counted once; the processors where the system does not say."""
    if cpu_info.is_file():
        blocks = cpu_info.read_text(encoding="utf-8").split("\n\n")
        cores = {
            tuple(re.findall(r"^(?:physical|core) id\s*: (\d+)", block, re.MULTILINE))
            for block in blocks
        }
        if cores - {()}:
            return len(cores - {()})
    return os.cpu_count() or 1


def default_threads() -> int:
    """Return how many threads a library takes by itself: one for each core, of those it may use."""
    return max(1, min(physical_cores(), processors()))


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_name(cpu_info: Path = _CPU_INFO) -> str:
    """Return what the maker calls the processor; the architecture where the system does not say."""
    return _field(cpu_info, "model name") or platform.processor() or platform.machine()


def instruction_sets(cpu_info: Path = _CPU_INFO) -> str:
    """Return those of ``INSTRUCTION_SETS`` that the processor has, else the architecture."""
    flags = (_field(cpu_info, "flags") or _field(cpu_info, "Features")).split()
    return " ".join(name for name in INSTRUCTION_SETS if name in flags) or platform.machine()


def is_avx2_at_most(instruction_sets: str) -> bool:
    """Whether a processor has AVX2 and no AVX-512: its registers are half as wide."""
    sets = instruction_sets.split()
    return "avx2" in sets and "avx512f" not in sets


def _field(cpu_info: Path, name: str) -> str:
    """Return the first value of a field of /proc/cpuinfo, or ""."""
    if not cpu_info.is_file():
        return ""
    for line in cpu_info.read_text(encoding="utf-8").splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            return value.strip()
    return ""
