"""The page of a result: from memory, from its file, in a notebook, and written by the run itself."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from relational_tensat import InputError, Options, Result, UsageError, optimize
from relational_tensat.cli.main import main
from relational_tensat.formats import save_model
from relational_tensat.run import summary
from tests.graphs import shared_matmuls


@pytest.fixture(scope="module")
def result() -> Result:
    return optimize(shared_matmuls(), Options.of(iterations=3))


def test_a_result_without_a_file_has_its_page(result: Result, tmp_path: Path) -> None:
    page = result.view(check=True)
    assert page.data.summary.before_us == pytest.approx(result.cost_before_us)
    assert page.data.summary.after_us == pytest.approx(result.cost_after_us)
    assert page.data.summary.e_nodes == result.e_nodes
    assert all("within the tolerance" in step.check for step in page.data.film.steps)
    assert page.save(tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    assert repr(page).startswith("RunPage(shared_matmuls: ")


def test_a_notebook_shows_the_page_in_a_frame(result: Result) -> None:
    page = result.view()
    frames = []

    class Frames(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            frames.append((tag, dict(attrs)))

    Frames().feed(page._repr_html_())
    ((tag, attributes),) = frames
    assert (tag, attributes["sandbox"]) == ("iframe", "allow-scripts")
    assert attributes["srcdoc"] == page.html


def test_a_file_is_read_again_and_may_be_gone(result: Result, tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    stored = optimize(shared_matmuls(), Options.of(iterations=3, db=path))
    assert stored.view().data.film == result.view().data.film
    path.unlink()
    with pytest.raises(InputError, match="cannot be opened"):
        stored.view()


def test_large_tables_are_not_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "MOST_KEPT_ENODES", 3)
    large = optimize(shared_matmuls(), Options.of(iterations=1))
    with pytest.raises(UsageError, match="run with the option db, or view"):
        large.view()


def test_run_writes_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, page = tmp_path / "m.json", tmp_path / "page.html"
    save_model(shared_matmuls(), model)
    arguments = ["run", str(model), "-o", str(tmp_path / "o.json"), "--iterations", "2", "--quiet"]
    assert main([*arguments, "--view", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    for wrong in (tmp_path / "none" / "page.html", tmp_path / "page.txt", tmp_path):
        assert main([*arguments, "--view", str(wrong)]) == 2
        assert str(wrong) in capsys.readouterr().err
