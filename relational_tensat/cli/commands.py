"""The commands: the name, the help and the place of each. Its module is imported when it is asked for.

``MODULE.FUNCTION`` of this package carries a command out, and returns the exit code. A function beside it
declares its arguments.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

from relational_tensat import __version__
from relational_tensat.base.errors import UsageError, nearest
from relational_tensat.base.records import record
from relational_tensat.cli.parser import Parser
from relational_tensat.formats.frontend import FRONTENDS

PROGRAM = "relational-tensat"
SUMMARY = (
    "Makes models faster: finds the cheapest graph that computes the same, and checks that it does."
)


@record
class Command:
    """A command.

    Attributes:
        name: one word, or the word of its group and its own.
        help: one line.
        module: of this package.
        function: carries it out.
        arguments: declares its arguments.
    """

    name: str
    help: str
    module: str
    function: str
    arguments: str

    def declare(self, parser: Parser) -> None:
        """Declare its arguments, and those of all commands."""
        self._named(self.arguments)(parser)
        for flags in (("-q", "--quiet"), ("-v", "--verbose", "--details")):
            if flags[-1] not in parser.flags:  # taken everywhere; here it changes nothing
                parser.add_argument(*flags, action="store_true", help=argparse.SUPPRESS)
        _add_version(parser)

    def load(self) -> Callable[[argparse.Namespace], int]:
        """Return the function that carries it out and returns the exit code."""
        return self._named(self.function)

    def _named(self, name: str) -> Callable[[Any], Any]:
        function: Callable[[Any], Any] = getattr(
            import_module(f"relational_tensat.cli.{self.module}"), name
        )
        return function


#: The first word of several commands, and what they are about.
GROUPS = {
    "rules": "rewrite rules: list, show, check, derive, verify",
    "kernels": "fused kernels: find, show, verify, emit as code",
    "costs": "measured costs: show, export, import, clear, farm",
    "fleet": "many models: make all of a folder faster, look at the results",
}
#: Stands for its group where no second word is given.
_DEFAULTS = {"rules": "rules list", "fleet": "fleet run"}
#: Groups whose default takes any other word, too.
_TAKES_WORDS = ("fleet",)

COMMANDS = {
    name: Command(name, help, *place)
    for name, help, *place in (
        ("run", "make a model faster, check the result, write it",
         "run", "run", "run_arguments"),
        ("example", "write a small model to try this with",
         "models", "write_example", "example_arguments"),
        ("check", "check a result against its certificate: run --certificate FILE writes one",
         "certificates", "check", "check_arguments"),
        ("explain", "the steps from the original graph to the result, or why a rule did not fire",
         "databases", "explain", "explain_arguments"),
        ("view", "a run as a page: before and after, every step, the search, the e-graph",
         "databases", "view", "view_arguments"),
        ("sql", "query a run's database, read-only",
         "databases", "query", "sql_arguments"),
        ("inspect", "sizes, largest classes, rules by matches and time, of a run's database",
         "databases", "inspect", "inspect_arguments"),
        ("schema", "the tables and columns of a run's database, as Markdown",
         "databases", "schema", "schema_arguments"),
        ("export", "write a run's e-graph as egraph-serialize JSON, for other tools",
         "databases", "export", "export_arguments"),
        ("extract", "choose the cheapest graph of an e-graph file (egraph-serialize JSON)",
         "models", "extract_graph", "extract_arguments"),
        ("convert", "write a model in the other format (.json or .onnx), unchanged",
         "models", "convert", "convert_arguments"),
        ("fleet run", "make many models faster; the same command goes on",
         "fleet", "run_fleet", "fleet_arguments"),
        ("fleet status", "the results of the models of an output folder",
         "fleet", "fleet_status", "status_arguments"),
        ("fleet page", "write a page about the models of an output folder",
         "fleet", "write_page", "page_arguments"),
        ("fleet lake", "put the ledgers of fleets into one DuckLake catalogue",
         "fleet", "write_lake", "lake_arguments"),
        ("rules list", "list the rewrite rules",
         "rules", "list_rules", "list_arguments"),
        ("rules show", "show a rule, or the SQL that it runs",
         "rules", "show_rule", "show_arguments"),
        ("rules check", "check that a rule file is well-formed",
         "rules", "check_rules", "check_arguments"),
        ("rules derive", "report for each rule of a file whether the rules that ship prove it",
         "rules", "derive_rules", "derive_arguments"),
        ("rules verify", "try rules on random operands, exactly; print the smallest counterexample",
         "rules", "verify_rules", "verify_arguments"),
        ("rules functions", "list the functions that conditions and attributes of rules may use",
         "rules", "list_functions", "words_arguments"),
        ("rules operators", "list the operators that rules may use, with their attributes",
         "rules", "list_operators", "words_arguments"),
        ("kernels regions", "list the parts of a model that kernels can be found for, and why not others",
         "kernel_search", "list_regions", "regions_arguments"),
        ("kernels search", "find fused kernels for a program, choose their sizes, verify the cheapest",
         "kernel_search", "search_kernels", "search_arguments"),
        ("kernels show", "print a μGraph: kernels, blocks and threads, dims and maps of tensors",
         "mugraphs", "show_kernel", "show_arguments"),
        ("kernels verify", "test a μGraph against its program: in finite fields, and in float64",
         "mugraphs", "verify_kernel", "verify_arguments"),
        ("kernels emit", "print the code of a μGraph's kernels: Triton, CUDA C++ or C",
         "mugraphs", "emit_kernels", "emit_arguments"),
        ("costs show", "show the measured times, by device, and those that are stale",
         "costs", "show_costs", "show_arguments"),
        ("costs export", "write the times of one device as a table for --cost table:FILE",
         "costs", "export_costs", "export_arguments"),
        ("costs import", "add a recorded table to the cost cache",
         "costs", "import_costs", "import_arguments"),
        ("costs farm", "measure the kernels of many models once, on quiet cores, into a snapshot",
         "costs", "farm_costs", "farm_arguments"),
        ("costs clear", "forget measured times, of all devices or of one",
         "costs", "clear_costs", "clear_arguments"),
    )
}  # fmt: skip


def build_parser(names: Iterable[str] = tuple(COMMANDS)) -> Parser:
    """Return the parser of these commands; a line that begins with one needs no other."""
    parser = Parser(prog=PROGRAM, description=SUMMARY)
    _add_version(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in names:
        command = COMMANDS[name]
        command.declare(commands.add_parser(name, help=command.help, description=command.help))
    return parser


def _add_version(parser: Parser) -> None:
    parser.add_argument(
        "-V", "--version", action="version", version=_VERSION_LINE, help=argparse.SUPPRESS
    )


#: Flags that may stand before a command, and those that stand for one.
_BEFORE = ("-q", "--quiet", "-v", "--verbose", "--details")
_HELP = ("-h", "--help", "--help-all")
_VERSION = ("-V", "--version", "version")
_VERSION_LINE = f"{PROGRAM} {__version__}"


def command_and_rest(line: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command that a line names, and its other arguments.

    Returns:
        The name; "" and a page to print where help or the version is asked for.

    Raises:
        UsageError: there is no such command; names the nearest.
    """
    flags, words = _flags_first(line)
    if words[:1] == ["help"]:
        words = [*words[1:3], "--help"]
    word = words[0] if words else "--help"
    if word in GROUPS:
        more, words = _flags_first(words[1:])
        return _in_group(word, words, [*flags, *more])
    if word in COMMANDS:
        return word, [*flags, *words[1:]]
    if word in _HELP:
        return "", [_program_help()]
    if word in _VERSION:
        return "", [f"{_VERSION_LINE}\n"]
    if word.startswith("-"):
        raise UsageError(f"{word}: expected a command first (see {PROGRAM} --help)")
    singles = [name for name in COMMANDS if " " not in name]
    raise UsageError(
        f"unknown command {word!r}, expected one of {', '.join((*singles, *GROUPS))}{_suggested(word)}"
    )


def _flags_first(line: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the flags that a line begins with and that may stand before a command, and the rest."""
    flags = list(takewhile(lambda text: text in _BEFORE, line))
    return flags, list(line[len(flags) :])


def _in_group(group: str, words: list[str], flags: list[str]) -> tuple[str, list[str]]:
    own = [name.partition(" ")[2] for name in COMMANDS if name.startswith(f"{group} ")]
    word = words[0] if words else ""
    if word in own:
        return f"{group} {word}", [*flags, *words[1:]]
    if word in _HELP or not (word or group in _DEFAULTS):
        return "", [_group_help(group)]
    if word in _VERSION:
        return "", [f"{_VERSION_LINE}\n"]
    later = next((text for text in words if text in own), "")
    if word.startswith("-") and later:
        raise UsageError(f"{word}: flags come after both words: {group} {later} …")
    takes_word = not word or word.startswith("-") or group in _TAKES_WORDS
    if group in _DEFAULTS and takes_word:
        return _DEFAULTS[group], [*flags, *words]
    raise UsageError(
        f"unknown command '{group} {word}', expected {group} and one of {', '.join(own)}"
        f"{nearest(word, own)}"
    )


def _suggested(word: str) -> str:
    """Return the command that is meant: by its first or only word, or else by its second."""
    if Path(word).suffix in FRONTENDS:
        return f"; did you mean '{PROGRAM} run {word}'?"
    own = {name.partition(" ")[2]: name for name in COMMANDS if " " in name}
    if word in own:
        return f"; did you mean {own[word]!r}?"
    return nearest(word, (*(name for name in COMMANDS if " " not in name), *GROUPS))


def _program_help() -> str:
    """Return the first screen of help."""
    singles = {name: command.help for name, command in COMMANDS.items() if " " not in name}
    groups = {name: f"{text}  ({name} --help)" for name, text in GROUPS.items()}
    return f"""{SUMMARY}

Try it:
  {PROGRAM} example encoder_block
  {PROGRAM} run encoder_block.onnx -o faster.onnx

Commands:
{_listed(singles | groups)}

Each has --help. -q prints less and -v more; --version prints the version.
"""


def _group_help(group: str) -> str:
    own = {name: command.help for name, command in COMMANDS.items() if name.startswith(f"{group} ")}
    return (
        f"{GROUPS[group][:1].upper()}{GROUPS[group][1:]}.\n\n{_listed(own)}\n\nEach has --help.\n"
    )


def _listed(texts: Mapping[str, str]) -> str:
    width = max(map(len, texts))
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in texts.items())
