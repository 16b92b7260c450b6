"""Progress in a notebook: a bar where one runs, nothing elsewhere, what was asked for everywhere."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from relational_tensat import Options, optimize
from relational_tensat.run.notebook_progress import NotebookBar
from relational_tensat.run.progress import PHASES, Silent, shown
from tests.graphs import shared_matmuls


def notebook(monkeypatch: pytest.MonkeyPatch, shell: Any) -> list[str]:
    """Pretend that IPython runs with a shell; return what is displayed in it, as it comes."""
    texts: list[str] = []

    def display(html: str, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        texts.append(html)
        return SimpleNamespace(update=texts.append)

    package, module = ModuleType("IPython"), ModuleType("IPython.display")
    package.__dict__.update(get_ipython=lambda: shell, display=module)
    module.__dict__.update(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return texts


def test_a_run_in_a_notebook_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = notebook(monkeypatch, SimpleNamespace(kernel=object()))
    optimize(shared_matmuls(), Options.of(cost="t4", iterations=1, extractor="greedy-dag"))
    assert all(text.startswith("<progress") for text in texts[:-1])
    assert any("explore" in text for text in texts)
    assert "ended after" in texts[-1]
    count = len(texts)
    options = Options.of(cost="t4", iterations=0, extractor="greedy-dag")
    optimize(shared_matmuls(), options, progress=Silent())
    assert len(texts) == count


def test_it_ends_with_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = notebook(monkeypatch, SimpleNamespace(kernel=object()))
    with pytest.raises(ValueError, match="x"), shown(None):
        raise ValueError("x")
    assert "ended after" in texts[-1]


@pytest.mark.parametrize("shell", [None, SimpleNamespace()], ids=["none", "terminal"])
def test_elsewhere_nothing_is_shown(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = notebook(monkeypatch, shell)
    with shown(None) as progress:
        assert isinstance(progress, Silent)
    assert texts == []


def test_what_it_says_is_no_markup() -> None:
    texts: list[str] = []

    def display(html: str) -> SimpleNamespace:
        texts.append(html)
        return SimpleNamespace(update=texts.append)

    bar = NotebookBar(display, PHASES)
    bar.phase("<script>")
    bar.extraction(12.5, 3.0)
    bar.measuring(0, 10)
    assert "<script>" not in "".join(texts)
    assert "measured 0 of 10, best graph 12.50 µs" in texts[-1]
