"""What all tests share: every run draws the same, and none touches the caches of who runs it."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from relational_tensat.base import process
from relational_tensat.base.folders import CACHE_VARIABLE
from relational_tensat.explore.strategies import saturation_then_focus
from relational_tensat.rules.backends.fused_kernel import FusedKernel
from relational_tensat.tensor.operators import registry

_sets_of = process.instruction_sets


def _sets_of_tests(cpu_info: Path | None = None) -> str:
    return "avx avx2 fma avx512f avx512_vnni" if cpu_info is None else _sets_of(cpu_info)


# Costs and blocks of channels follow from the processor: in tests it is one, before the backend asks.
process.instruction_sets = _sets_of_tests


# What Python compiles is kept, whatever the environment says: tests start many processes, and each would
# compile the package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# One commit, one verdict. Other draws, to search for what these do not find:
# python -m pytest --hypothesis-profile=random
settings.register_profile("random", deadline=None)
settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")


# A shell's background jobs ignore Ctrl-C, and so would what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Let the garbage collector look no more at what stays until the end: modules, rules, all tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _little_patience() -> Iterator[None]:
    """Let focus end soon where it gains nothing: by default it has two seconds after each saturation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saturation_then_focus, "LEAST_S", 0.1)
        yield


@pytest.fixture
def plain_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be no operators but the plain ones, whoever has made a target's known before."""
    plain = {n: op for n, op in registry.operators().items() if not isinstance(op, FusedKernel)}
    monkeypatch.setattr(registry, "_REGISTRY", plain)
