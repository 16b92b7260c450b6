"""The pages in ``docs`` are run: their files are written, their commands executed, outputs compared.

A block whose fence reads ``LANGUAGE FILE`` is a file. In a ``console`` block ``$ `` begins a command, what
follows is its output, and ``…`` stands for any text, as a line for any lines. A page runs in one folder,
in order.
"""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from relational_tensat.base.runner import RUNNERS
from relational_tensat.cli.main import main
from relational_tensat.explore.strategies import STRATEGIES
from relational_tensat.extract.extraction_options import EXTRACTORS
from relational_tensat.formats.frontend import FRONTENDS
from relational_tensat.rules.targets.names import BACKENDS
from relational_tensat.tensor.operators import operators
from relational_tensat.tensor.operators.registry import unregister

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
_PROGRAM, _PYTHON = "relational-tensat ", "python "
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """A file to write, or a command and the lines that it shall print."""

    file: str = ""
    text: str = ""
    command: str = ""
    output: tuple[str, ...] = ()


def steps(page: str) -> Iterator[Step]:
    """Yield what a page says is done, in order."""
    for info, body in _BLOCK.findall(page):
        language, _, file = info.partition(" ")
        if file:
            yield Step(file=file, text=body)
        elif language == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, *output = part.rstrip("\n").split("\n")
                yield Step(command=command, output=tuple(output))


def comparable(line: str) -> str:
    """Return a line without what differs from run to run: seconds, shares, widths of tables."""
    line = re.sub(r"\d+\.\d+ s\b", "# s", line)
    line = re.sub(r"\(\d+%\)", "(#%)", line)
    line = re.sub(r"─+", "─", line)
    return re.sub(r" +", " ", line).strip()


def agrees(documented: tuple[str, ...], printed: list[str]) -> bool:
    """Whether a documented output is the printed one."""
    pattern = "".join(
        r"(?:[^\n]*\n)*?"
        if line == "…"
        else re.escape(comparable(line)).replace("…", r"[^\n]*") + r"\n"
        for line in documented
    )
    text = "".join(f"{comparable(line)}\n" for line in printed)
    return re.fullmatch(pattern, text) is not None


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """Take out again what a page adds to the tables of protocols, and its operators."""
    tables = (FRONTENDS, BACKENDS, STRATEGIES, EXTRACTORS, RUNNERS)
    before, known = [set(table) for table in tables], set(operators())
    yield
    for table, names in zip(tables, before, strict=True):
        for name in set(table) - names:
            del table[name]
    for name in set(operators()) - known:
        if name.startswith("my_"):
            unregister(name)


class Shell:
    """Runs the commands of a page."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._code = 0

    def run(self, command: str) -> list[str]:
        """Return what a command prints: its output, and the line that says what is wrong."""
        if command == "echo $?":
            return [str(self._code)]
        self._capsys.readouterr()
        if command.startswith(_PYTHON):
            runpy.run_path(command.removeprefix(_PYTHON))
        else:
            assert command.startswith(_PROGRAM), command
            self._code = main(shlex.split(command.removeprefix(_PROGRAM)))
        captured = self._capsys.readouterr()
        errors = [
            line for line in captured.err.splitlines() if line.startswith("relational-tensat:")
        ]
        return captured.out.splitlines() + errors


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_says_is_what_happens(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))
    shell = Shell(capsys)
    for step in steps(page.read_text(encoding="utf-8")):
        if step.file:
            Path(step.file).write_text(step.text, encoding="utf-8")
            continue
        printed = shell.run(step.command)
        if not agrees(step.output, printed):
            pytest.fail("\n".join([f"$ {step.command}", *printed]), pytrace=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_named_file_exists(page: Path) -> None:
    for path in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / path).exists(), path


@pytest.mark.parametrize(
    ("documented", "printed", "same"),
    [
        (("a", "…", "c"), ["a", "b", "b", "c"], True),
        (("a", "…"), ["a"], True),
        (("a", "c"), ["a", "b", "c"], False),
        (("…", "a"), ["a", "b"], False),
        (("took 1.50 s (3%)",), ["took 0.20 s (90%)"], True),
        (("1.50 µs",), ["1.51 µs"], False),
        (("a    b", "────"), ["a b  ", "──"], True),
        (("(a|b)",), ["a"], False),
        (("a … d",), ["a b c d"], True),
        (("a … d",), ["a b", "c d"], False),
    ],
)
def test_the_comparison_can_fail(
    documented: tuple[str, ...], printed: list[str], same: bool
) -> None:
    assert agrees(documented, printed) == same
