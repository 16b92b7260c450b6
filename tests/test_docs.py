"""The pages in ``docs`` are run: their files are written, their commands executed, outputs compared.

A block whose fence reads ``LANGUAGE FILE`` is a file. In a ``console`` block ``$ `` begins a command, what
follows is its output, and ``…`` stands for any text, as a line for any lines. A page runs in one folder,
in order, which has ``bench/inputs``.

The pages are also counted: words a sentence, figures, and words and clauses that are hard to read.
"""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.__main__ import build_parser
from relational_tensat.base.runner import RUNNERS
from relational_tensat.cli.commands import command_and_rest
from relational_tensat.cli.main import main
from relational_tensat.explore.strategies import STRATEGIES
from relational_tensat.extract.extraction_options import EXTRACTORS
from relational_tensat.formats.frontend import FRONTENDS
from relational_tensat.rules.backends.names import BACKENDS
from relational_tensat.tensor.operators import operators
from relational_tensat.tensor.operators.registry import unregister
from tests.tiers import nightly

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TEXTS = [*PAGES, *sorted(ROOT.glob("*.md"))]
#: Made by the program from help and comments; a record by dates; and the map of the code, which those who
#: change the code write.
_NOT_COUNTED = ("command-line.md", "schema.md", "CHANGELOG.md")
READ = [page for page in TEXTS if page.name not in _NOT_COUNTED]
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


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


#: Its examples are tests of their own, too, which it names.
_EXTENDING = ROOT / "docs" / "extending.md"


@pytest.mark.parametrize(
    "page", [nightly(page) if page == _EXTENDING else page for page in PAGES], ids=_name
)
def test_what_a_page_says_is_what_happens(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bench").mkdir()
    Path("bench/inputs").symlink_to(ROOT / "bench" / "inputs")
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))
    shell = Shell(capsys)
    for step in steps(page.read_text(encoding="utf-8")):
        if step.file:
            Path(step.file).write_text(step.text, encoding="utf-8")
            continue
        printed = shell.run(step.command)
        if not agrees(step.output, printed):
            pytest.fail("\n".join([f"$ {step.command}", *printed]), pytrace=False)


def known_flags() -> dict[str, set[str]]:
    """Return the flags of each command, and of the one of the bench that a page is about."""
    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## `([^`]+)`\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S)
    known = {name: set(re.findall(r"(?<!\w)--?[a-z][\w-]*", body)) for name, body in sections}
    (commands,) = (one for one in build_parser()._actions if isinstance(one.choices, dict))
    synthesize = commands.choices["synthesize"]._option_string_actions
    return {**known, "python -m bench synthesize": set(synthesize)}


def shown_commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of this program's commands in a page's blocks, as shells split them."""
    for block in re.findall(r"^```\w+\n(.*?)^```$", text, flags=re.M | re.S):
        joined = re.sub(r"\\\n| >-\n\s*", " ", block)
        for line in re.findall(r"^[ $\w=/.-]*\brelational-tensat ([a-z].*)$", joined, flags=re.M):
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words = list(lexer)
            ends = (number for number, word in enumerate(words) if set(word) <= set("|>&;"))
            yield words[: next(ends, len(words))]


@pytest.mark.parametrize("page", READ, ids=_name)
def test_commands_and_flags_that_a_page_names_exist(page: Path) -> None:
    known = known_flags()
    text = page.read_text(encoding="utf-8")
    for words in shown_commands(text):
        name, _ = command_and_rest(words)
        assert {one for one in words if re.match(r"--?[a-z]", one)} <= known[name], words
    rare = set(
        re.findall(r"^\| `([\w-]+)=", (ROOT / "docs/command-line.md").read_text("utf-8"), re.M)
    )
    assert set(re.findall(r"--set ([\w-]+)", text)) <= rare | {"NAME"}
    spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"```.*?```", "", text, flags=re.S))
    ours = [span for span in spans if re.match(rf"--|({'|'.join(known)}) ", span)]
    named = {flag for span in ours for flag in re.findall(r"--[a-z][\w-]*", span)}
    gone = page.name in ("tried.md", "CHANGELOG.md")
    assert gone or named <= set[str]().union(
        *known.values(), ["--help", "--version", "--network"]
    ), named


def test_commands_are_found_in_blocks_of_shell() -> None:
    text = "```sh\nA=1 relational-tensat run M \\\n  --effort low > x  # why\nls | relational-tensat\n```\n"
    assert list(shown_commands(text)) == [["run", "M", "--effort", "low"]]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS, ids=_name)
def test_every_named_file_and_heading_exists(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", page.read_text(encoding="utf-8"))
    for path, anchor in links:
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), f"{path}#{anchor}"


def test_the_map_and_the_site_name_every_page() -> None:
    docs = ROOT / "docs"
    index = (docs / "index.md").read_text(encoding="utf-8")
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = {docs / path for path in re.findall(r"\]\(([^)#:]+\.md)", index)}
    assert named == {*PAGES} - {docs / "index.md"}
    assert {docs / path for path in re.findall(r"[\w/-]+\.md", site)} == {*PAGES}


def sentences(text: str) -> list[str]:
    """Return the sentences of a page, without code blocks, tables, headings and pictures.

    Code within a line and a link's text count as words. An item of a list ends a sentence.
    """
    text = re.sub(r"^```.*?^```$|<!--.*?-->|<[^>]+>", "", text, flags=re.M | re.S)
    text = re.sub(r"^\s*(\||#|\[?!\[|!!!).*$", "", text, flags=re.M)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", text))
    found = []
    for block in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", f"\n{text}"):
        found += re.split(r"(?<=[.!?]) (?=[A-Z(])", " ".join(re.sub(r"[*_>]", "", block).split()))
    return [sentence for sentence in found if len(sentence.split()) > 2]


def counts(text: str) -> tuple[float, float, float]:
    """Return words a sentence, the share of sentences above 25 words, and figures a hundred words."""
    words = [len(sentence.split()) for sentence in sentences(text)]
    figures = [re.findall(r"(?<![\w.])\d[\d,.]*", sentence) for sentence in sentences(text)]
    total, number = max(sum(words), 1), max(len(words), 1)
    long = sum(count > 25 for count in words)
    return total / number, long / number, 100 * sum(map(len, figures)) / total


@pytest.mark.parametrize("page", READ, ids=_name)
def test_a_page_is_easy_to_read(page: Path) -> None:
    mean, long, figures = counts(page.read_text(encoding="utf-8"))
    assert (mean <= 14, long <= 0.05, figures <= 1) == (True, True, True), (mean, long, figures)


_WORDS = re.compile(r"\b(anew|dear|dearer|dearest|whoever|as ever|(is|are) none)\b", re.IGNORECASE)
_WHAT = re.compile(r"(^|[,;:(–—] )what\b[^?]*$", re.IGNORECASE)


@pytest.mark.parametrize("page", READ, ids=_name)
def test_a_page_has_no_hard_words_and_no_clause_that_begins_with_what(page: Path) -> None:
    found = sentences(page.read_text(encoding="utf-8"))
    assert [one for one in found if _WORDS.search(one) or _WHAT.search(one)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One two three\n\nOne two three. Four five `six seven` eight.\n", (3.5, 0.0, 0.0)),
        ("- one two three\n- four five 6 7 8\n\n| a | 1 |\n", (4.0, 0.0, 37.5)),
        ("word " * 26, (26.0, 1.0, 0.0)),
        ("```sh\n1 2 3 4\n```\n[one two](x.md) three\n", (3.0, 0.0, 0.0)),
    ],
)
def test_the_counter_counts(text: str, expected: tuple[float, float, float]) -> None:
    assert counts(text) == expected


def test_the_check_of_clauses_can_fail() -> None:
    assert _WHAT.search("It ends, what was found is written.")
    assert _WHAT.search("What differs is not written.")
    assert not _WHAT.search("What changed?")
    assert not _WHAT.search("The page shows what changed.")
    assert _WORDS.search("There are none.")


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 110
    assert len(text.split()) <= 900


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
