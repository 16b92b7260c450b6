"""Every kernel compiles to machine code; where NVRTC is not installed, one line says so."""

from __future__ import annotations

import importlib.util
import sys
from types import SimpleNamespace

import pytest

from relational_tensat.base.errors import InputError, MissingDependencyError
from relational_tensat.gpu import nvrtc
from relational_tensat.gpu.catalogue import UNITS, instances


def _has_nvrtc() -> bool:
    if importlib.util.find_spec("cuda") is None:
        return False
    try:
        nvrtc.nvrtc_version()
    except MissingDependencyError:
        return False
    return True


#: What calls within a kernel may put aside; a kernel that does not fit into registers spills more.
_FEW_BYTES = 64

needs_nvrtc = pytest.mark.skipif(not _has_nvrtc(), reason="NVRTC is not installed")


@pytest.mark.nightly
@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_every_kernel_compiles(arch: str) -> None:
    for unit in UNITS:
        compiled = nvrtc.compile_unit(unit, arch)
        assert set(compiled.names) == set(instances(unit))
        assert all(name.encode() in compiled.cubin for name in compiled.names.values())
        assert compiled.cubin.startswith(b"\x7fELF")
        assert 0 < compiled.most_registers <= 255
        assert compiled.spilled_bytes <= _FEW_BYTES, unit


@needs_nvrtc
def test_what_was_compiled_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = "window.cu"
    compiled = nvrtc.cached_unit(unit, "sm_90")
    monkeypatch.setattr(nvrtc, "compile_unit", lambda unit, arch: pytest.fail("compiled again"))
    again = nvrtc.cached_unit(unit, "sm_90")
    assert (again.cubin, again.names) == (compiled.cubin, compiled.names)
    monkeypatch.setattr(nvrtc, "compile_unit", lambda unit, arch: compiled)
    (path,) = nvrtc._cache_file(unit, "sm_90").parent.glob("*.json")
    path.write_text("{", encoding="utf-8")
    assert nvrtc.cached_unit(unit, "sm_90") is compiled


@needs_nvrtc
def test_an_architecture_that_nvrtc_does_not_know_is_refused() -> None:
    with pytest.raises(InputError, match=r"map.cu: does not compile for sm_1: "):
        nvrtc.compile_unit("map.cu", "sm_1")


def test_without_cuda_bindings_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(
        MissingDependencyError, match=r"needs cuda-bindings: pip install '.*\[gpu\]'"
    ):
        nvrtc.nvrtc_version()


def test_without_the_library_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> None:
        raise RuntimeError('Failure finding "libnvrtc.so.13"\nlong story')

    bindings = SimpleNamespace(nvrtc=SimpleNamespace(nvrtcVersion=missing))
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bindings=bindings))
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    with pytest.raises(MissingDependencyError) as caught:
        nvrtc.nvrtc_version()
    assert str(caught.value) == (
        'compiling GPU kernels needs NVRTC (Failure finding "libnvrtc.so.13"): '
        "pip install 'relational-tensat[gpu]'"
    )


def test_the_hash_is_of_the_sources() -> None:
    assert len(nvrtc.sources_hash()) == 8
