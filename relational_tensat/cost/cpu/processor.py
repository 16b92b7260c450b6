"""What this machine's processor is: its name, its instruction sets, the sizes of its L2 and L3 caches."""

from __future__ import annotations

import platform
import re
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_L2_SIZE, _L3_SIZE = _CACHES / "index2" / "size", _CACHES / "index3" / "size"

#: The instruction sets for which onnxruntime has kernels of their own, as the flags of /proc/cpuinfo.
INSTRUCTION_SETS = (
    "sse4_1", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16",
    "avx512_fp16", "amx_tile", "asimd", "asimddp", "asimdhp", "i8mm", "bf16", "sve",
)  # fmt: skip

#: What is taken where the system does not say: no processor of today has more by core.
_L2_BYTES = 4 << 20
#: A usual size of those that several cores share.
_L3_BYTES = 32 << 20
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}


def processor_name(cpu_info: Path = _CPU_INFO) -> str:
    """Return what the maker calls the processor; the architecture where the system does not say."""
    return _field(cpu_info, "model name") or platform.processor() or platform.machine()


def instruction_sets(cpu_info: Path = _CPU_INFO) -> str:
    """Return those of ``INSTRUCTION_SETS`` that the processor has, else the architecture."""
    flags = (_field(cpu_info, "flags") or _field(cpu_info, "Features")).split()
    return " ".join(name for name in INSTRUCTION_SETS if name in flags) or platform.machine()


def l2_bytes(size_file: Path = _L2_SIZE) -> int:
    """Return the bytes of a core's L2 cache."""
    return _cache_bytes(size_file) or _L2_BYTES


def l3_bytes(size_file: Path = _L3_SIZE) -> int:
    """Return the bytes of the L3 cache that a core shares with others."""
    return _cache_bytes(size_file) or _L3_BYTES


def _cache_bytes(size_file: Path) -> int:
    text = size_file.read_text(encoding="ascii").strip() if size_file.is_file() else ""
    match = re.fullmatch(r"(\d+)([KM]?)", text)
    return int(match[1]) * _UNITS[match[2]] if match else 0


def _field(cpu_info: Path, name: str) -> str:
    """Return the first value of a field of /proc/cpuinfo, "" where there is none."""
    if not cpu_info.is_file():
        return ""
    for line in cpu_info.read_text(encoding="utf-8").splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            return value.strip()
    return ""
