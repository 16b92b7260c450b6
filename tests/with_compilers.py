"""Whether the compilers are there of tests that build code: C by cc, CUDA that a CPU carries out by g++."""

from __future__ import annotations

import shutil

import pytest

_COMPILERS = {"c": ("cc", "there is no C compiler"), "cuda": ("g++", "there is no C++ compiler")}


def _is_missing(target: str) -> bool:
    return shutil.which(_COMPILERS[target][0]) is None


needs_c = pytest.mark.skipif(_is_missing("c"), reason=_COMPILERS["c"][1])
needs_cpp = pytest.mark.skipif(_is_missing("cuda"), reason=_COMPILERS["cuda"][1])


def skip_without_compiler(target: str) -> None:
    """Skip the test that asks, where code for a target cannot be built; other targets need no compiler."""
    if target in _COMPILERS and _is_missing(target):
        pytest.skip(_COMPILERS[target][1])
