"""The document: what a model is called cannot become a part of it, and nothing foreign may run in it."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import importlib
import json
import pkgutil
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from relational_tensat.base.duckdb import open_database
from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.cost import load_profile
from relational_tensat.explore.outcome import IterationReport, SubgraphReport
from relational_tensat.view import data as view_data
from relational_tensat.view.collection import collect
from relational_tensat.view.data.graph_data import Condition, plain, to_json
from relational_tensat.view.data.page_data import PageData
from relational_tensat.view.document import json_block, page_html, write_page
from tests.view.runs import HOSTILE, stored_run

VIEW = Path(view_data.__file__).parent.parent


class Elements(HTMLParser):
    """Collects what a browser would find in a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[dict[str, str | None]] = []
        self.texts: list[str] = []
        self._is_open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.append(dict(attrs))
        self.texts.append("")
        self._is_open = True

    def handle_endtag(self, tag: str) -> None:
        self._is_open = False

    def handle_data(self, data: str) -> None:
        if self._is_open:
            self.texts[-1] += data

    def of(self, tag: str) -> list[str]:
        """Return the texts of the elements of a tag."""
        return [text for name, text in zip(self.tags, self.texts, strict=True) if name == tag]


@pytest.fixture(scope="module")
def page() -> Elements:
    parser = Elements()
    parser.feed(page_html(hostile_data()))
    return parser


def hostile_data() -> PageData:
    """Return what the page of the run whose names are hostile shows."""
    with open_database(stored_run("hostile")) as connection:
        return collect(connection)


def test_hostile_names_are_data_and_nothing_else(page: Elements) -> None:
    assert sorted(set(page.tags)) == [
        "body", "div", "head", "html", "meta", "noscript", "script", "style", "title",
    ]  # fmt: skip
    block, _ = page.of("script")
    names = {name for value in json.loads(block)["original"]["values"] for name in value["names"]}
    assert set(HOSTILE[:4]) <= names


def test_only_the_pages_own_script_may_run(page: Elements) -> None:
    _, script = page.of("script")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [a["content"] or "" for a in page.attributes if "http-equiv" in a]
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}';" in policy
    assert "connect-src 'none'" in policy
    assert "http" not in policy


def test_the_bundle_can_stand_in_a_script_element() -> None:
    script = (VIEW / "bundle" / "page.js").read_text(encoding="utf-8")
    assert "</script" not in script.lower()
    assert "<!--" not in script
    assert "</style" not in (VIEW / "bundle" / "page.css").read_text(encoding="utf-8").lower()


def test_json_in_a_page_is_json_without_markup() -> None:
    text = json_block({"a": [*HOSTILE, "&amp; \ud800", 1.5, float("inf"), None, True]})
    assert not set(text) & set("<>&")
    assert json.loads(text) == {"a": [*HOSTILE, "&amp; \ud800", 1.5, None, None, True]}


def test_the_drawing_declares_the_same_data() -> None:
    """``data.ts`` has an interface of the same fields for each class of ``data``."""
    text = (VIEW / "page" / "src" / "data.ts").read_text(encoding="utf-8")
    declared = {
        name: re.findall(r"^  (\w+): ", body, flags=re.MULTILINE)
        for name, body in re.findall(r"^export interface (\w+) \{\n(.*?)^\}", text, re.M | re.S)
    }
    classes = {
        name: [field.name for field in dataclasses.fields(kind)]
        for module in pkgutil.iter_modules(view_data.__path__, f"{view_data.__name__}.")
        for name, kind in vars(importlib.import_module(module.name)).items()
        if dataclasses.is_dataclass(kind)
    }
    assert {IterationReport.__name__, SubgraphReport.__name__} <= set(classes)
    assert declared == classes


def test_plain_data_is_what_json_has() -> None:
    condition = Condition("(= 1 1)", "")
    assert plain((condition, {1: float("nan")})) == [{"text": "(= 1 1)", "values": ""}, {"1": None}]
    assert to_json([Path("a")]) == '["a"]'


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    data = hostile_data()
    with pytest.raises(InputError, match="cannot be written"):
        write_page(data, tmp_path / "no" / "page.html")


def test_view_writes_the_page_beside_the_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert main(["view", str(stored_run("shared_matmuls")), "-o", str(page)]) == 0
    assert capsys.readouterr().out == f"{page}: {page.stat().st_size:,} bytes\n"
    assert page.stat().st_size < 5_000_000
    assert main(["view", str(tmp_path / "none.duckdb")]) == 3


@pytest.mark.nightly
def test_costs_of_another_source_stand_beside_the_runs() -> None:
    other = load_profile("a100")
    with open_database(stored_run("shared_matmuls")) as connection:
        alone, both = collect(connection), collect(connection, also=other)
    assert both.summary.cost_sources == (*alone.summary.cost_sources, other.name)
    for value in (*both.original.values, *both.result.values):
        own, others = both.forms[value.form].costs_us
        assert others is not None
        assert own == alone.forms[value.form].costs_us[0] or own is None
    kernels = [both.forms[v.form].costs_us for v in both.result.values if not v.is_constant]
    assert any(own != others for own, others in kernels)
