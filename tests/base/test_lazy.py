"""A registry has names that ship and names that come in later, and imports what is asked for only."""

from __future__ import annotations

import doctest
import sys

import pytest

from relational_tensat.base import lazy, runner
from relational_tensat.base.errors import UsageError
from relational_tensat.base.lazy import Registry


@pytest.mark.parametrize("module", [lazy, runner], ids=lambda module: module.__name__)
def test_the_examples_run(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_a_module_is_imported_when_its_name_is_first_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "this", raising=False)
    poems: Registry[str] = Registry("poem", {"zen": "this:s"})
    assert "zen" in poems and list(poems) == ["zen"] and len(poems) == 1
    assert "this" not in sys.modules
    assert poems["zen"].startswith("Gur Mra bs Clguba")
    assert "this" in sys.modules


def test_what_comes_in_goes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    poems: Registry[str] = Registry("poem", {"zen": "string:digits"})
    with monkeypatch.context() as patch:
        patch.setitem(poems, "haiku", "old pond")
        patch.setitem(poems, "zen", "other")
        assert dict(poems) == {"zen": "other", "haiku": "old pond"}
    assert dict(poems) == {"zen": "0123456789"}
    with pytest.raises(UsageError, match="unknown poem 'haiku', expected one of zen"):
        poems["haiku"]
