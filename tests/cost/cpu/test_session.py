"""What the system says of a processor."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from relational_tensat.base.process import instruction_sets, is_avx2_at_most, processor_name
from relational_tensat.cost.cpu.session import l2_bytes, l3_bytes

_INTEL = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Some Processor @ 2.50GHz
flags\t\t: fpu sse4_1 avx2 avx512f avx fma hypervisor

processor\t: 1
model name\t: Another
"""
_ARM = "processor\t: 0\nFeatures\t: fp asimd asimddp\n"


def _write(folder: Path, text: str) -> Path:
    path = folder / "file"
    path.write_text(text)
    return path


def test_name_and_instruction_sets_of_an_x86_processor(tmp_path: Path) -> None:
    path = _write(tmp_path, _INTEL)
    assert processor_name(path) == "Some Processor @ 2.50GHz"
    assert instruction_sets(path) == "sse4_1 avx avx2 fma avx512f"


def test_what_an_arm_processor_says(tmp_path: Path) -> None:
    path = _write(tmp_path, _ARM)
    assert processor_name(path) == (platform.processor() or platform.machine())
    assert instruction_sets(path) == "asimd asimddp"
    assert not is_avx2_at_most(instruction_sets(path))


def test_registers_are_narrow_where_there_is_no_avx_512(tmp_path: Path) -> None:
    wide = _write(tmp_path, _INTEL)
    assert not is_avx2_at_most(instruction_sets(wide))
    assert is_avx2_at_most(instruction_sets(_write(tmp_path, _INTEL.replace(" avx512f", ""))))


def test_a_system_that_says_nothing(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    assert processor_name(absent) != ""
    assert instruction_sets(absent) == platform.machine()
    assert l2_bytes(absent) == 4 << 20
    assert l3_bytes(absent) == 32 << 20


@pytest.mark.parametrize(
    ("text", "size"), [("1024K\n", 1 << 20), ("2M", 2 << 20), ("512", 512), ("many", 4 << 20)]
)
def test_size_of_the_second_cache(tmp_path: Path, text: str, size: int) -> None:
    assert l2_bytes(_write(tmp_path, text)) == size
