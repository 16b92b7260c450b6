"""Models that ship, written by ``example``, and files of graphs converted."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from relational_tensat.cli.main import main
from relational_tensat.cli.models import _EXAMPLES
from relational_tensat.formats import load_model

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["encoder_block", "encoder_block.onnx", "nasrnn"])
def test_an_example_is_written_and_can_be_read(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["example", name]) == 0
    assert main(["example", name]) == 0  # what is there is the same
    (file,) = Path().iterdir()
    assert f"written to {file}; next: relational-tensat run {file}\n" in capsys.readouterr().out
    assert load_model(file).nodes


def test_examples_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example"]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()] == [Path(n).stem for n in _EXAMPLES]


def test_another_file_is_not_replaced_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    Path("nasrnn.json").write_text("mine")
    assert main(["example", "nasrnn"]) == 2
    assert "nasrnn.json: exists already; -o names another file" in capsys.readouterr().err
    assert Path("nasrnn.json").read_text() == "mine"
    assert main(["example", "nasrnn", "--force"]) == 0
    assert main(["example", "nasrnn", "-o", "other.json"]) == 0
    assert Path("nasrnn.json").read_bytes() == Path("other.json").read_bytes()
    assert main(["example", "nasrnn", "-o", "other.onnx"]) == 2
    assert main(["example", "nasnet"]) == 2
    assert "did you mean 'nasrnn'" in capsys.readouterr().err


def test_a_wheel_has_the_examples() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        wheel = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]
    for name in _EXAMPLES:
        place = f"bench/inputs/{name}"
        assert wheel["force-include"][place] == f"relational_tensat/_resources/{place}"
        assert (ROOT / place).is_file()
