"""``kernels search`` and ``kernels verify``, as they are used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relational_tensat.cli.main import main

SIZES = ["--size", "m=16,k=64,r=16,n=64"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is found apart from the user's."""
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))


def test_what_search_writes_verify_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "best.json")
    assert main(["kernels", "search", "mlp", *SIZES, "-o", path]) == 0
    printed = capsys.readouterr().out
    assert "ways found" in printed
    assert "random tests passed" in printed
    assert main(["kernels", "search", "mlp", *SIZES]) == 0
    assert "as a search before found it" in capsys.readouterr().out
    assert main(["kernels", "verify", path, "mlp", *SIZES, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"]
    assert main(["kernels", "verify", path, "mlp"]) == 4


def test_nothing_found_has_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "search", "mlp", *SIZES, "--max-operators", "1", "--json"]) == 5
    assert json.loads(capsys.readouterr().out)["best"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["attenton"], "did you mean 'attention'?"),
        (["attention", "--size", "z=2"], "z"),
        (["none.json"], "none.json"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kernels", "search", *arguments]) in (2, 3)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
