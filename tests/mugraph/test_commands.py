"""``kernels search`` and ``kernels verify``, as they are used."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from relational_tensat.cli.main import main
from relational_tensat.mugraph.graph.mugraph_json import encoded
from relational_tensat.mugraph.verify import verification
from tests.mugraph.mirage_graphs import saved
from tests.mugraph.mugraphs import flash_attention

SIZES = ["--size", "m=16,k=64,r=16,n=64"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what is found apart from the user's; and be content with fewer random tests."""
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(verification, "ERROR", 0.1)


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


def test_what_search_kept_has_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = str(tmp_path / "search.duckdb")
    assert main(["kernels", "search", "mlp", *SIZES, "--db", db]) == 0
    (key,) = re.findall("kept as (k[0-9a-f]{16}) in ", capsys.readouterr().out)
    shown = []
    for where in ([], ["--db", db]):
        assert main(["kernels", "show", key, "--json", *where]) == 0
        shown.append(json.loads(capsys.readouterr().out))
        assert main(["kernels", "verify", key, "mlp", *SIZES, *where]) == 0
        assert main(["kernels", "emit", key, "--target", "cuda", *where]) == 0
        assert "__global__" in capsys.readouterr().out
    assert shown[0] == shown[1]
    assert main(["kernels", "emit", "k0123456789abcdef"]) == 3
    assert re.search(r"k0\w+: no such file, and no kernel of that key in ", capsys.readouterr().err)


def test_nothing_found_has_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "search", "mlp", *SIZES, "--max-operators", "1", "--json"]) == 5
    assert json.loads(capsys.readouterr().out)["best"] is None
    assert main(["kernels", "search", "mlp", *SIZES, "--max-operators", "1"]) == 5
    printed = " ".join(capsys.readouterr().out.split())
    assert "--max-operators 1 and --max-kernels 5 allow none; more of either may" in printed
    assert "--no-libraries" not in printed
    ended = ["kernels", "search", "mlp", *SIZES, "--time-limit", "0", "--no-cache", "--quiet"]
    assert main(ended) == 5
    printed = " ".join(capsys.readouterr().out.split())
    assert "ended before it found one; more --time-limit, or --on processes:N, may" in printed


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


def test_what_is_wrong_is_refused_with_the_entry_that_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, broken = tmp_path / "wrong.json", tmp_path / "broken.json"
    text = json.dumps(encoded(flash_attention())).replace('"div"', '"mul"')
    wrong.write_text(text, encoding="utf-8")
    broken.write_text(text[:-9], encoding="utf-8")
    named = ["attention", "--size", "h=2,q=4,d=4,k=8,e=2"]
    assert main(["kernels", "verify", str(wrong), *named]) == 4
    assert re.search(r"t5\[0, 0, 0\] is \d+, expected \d+", capsys.readouterr().out)
    assert main(["kernels", "verify", str(broken), *named]) == 3
    error = capsys.readouterr().err
    assert "broken.json: no JSON" in error and error.count("\n") == 1


def test_mirages_wrong_graphs_are_refused_with_the_entry_that_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "qknorm_gqa_bs1.json"
    file.write_text(json.dumps(saved("qknorm_gqa_bs1")[:1]), encoding="utf-8")
    assert main(["kernels", "verify", str(file), "qknorm"]) == 4
    assert re.search(r"t\d+\[[0-9, ]+\] is \d+, expected \d+", capsys.readouterr().out)
