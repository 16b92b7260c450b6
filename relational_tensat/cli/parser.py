"""argparse that says what was meant, in one line with the nearest name; its flags are made from options.

A field of an option says of itself what becomes a flag, its help and its converter.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from relational_tensat.base.errors import UsageError, nearest
from relational_tensat.base.option import Option, OptionTree, groups_of, options_of, options_schema
from relational_tensat.base.outputs import OF_OPTIONS, Written, check_outputs

_T = TypeVar("_T")


class Parser(argparse.ArgumentParser):
    """A parser that raises ``UsageError``, and knows the flags, inputs and outputs that it has."""

    def __init__(self, **kwargs: Any) -> None:
        self.flags: list[str] = []
        self._paths: list[argparse.Action] = []
        self.former_flags: dict[str, str] = {}
        super().__init__(**{**kwargs, "allow_abbrev": False})

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        """Add an argument, and remember its flags."""
        return self.note(super().add_argument(*args, **kwargs))

    def note(self, action: argparse.Action) -> argparse.Action:
        """Remember an argument that was added to a section of the help."""
        self.flags += action.option_strings
        if isinstance(action.type, Written) or action.type in (Path, input_file, program_or_file):
            self._paths.append(action)
        return action

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{message} (see {self.prog} --help)")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse, and refuse what is left over with the nearest flag.

        Returns:
            The arguments; ``flags`` are those that were written, whether or not their values are the
            defaults.

        Raises:
            UsageError: an argument is unknown.
        """
        args = None if args is None else [self._current(text) for text in args]
        arguments, extra = super().parse_known_args(args, namespace)
        if extra:
            hint = nearest(extra[0].partition("=")[0], self.flags)
            self.error(f"unknown argument {extra[0]!r}{hint}")
        written = {text.partition("=")[0] for text in args or ()}
        of_command = getattr(arguments, "flags", [])
        arguments.flags = [*of_command, *(flag for flag in self.flags if flag in written)]
        self._check_paths(arguments)
        return arguments, extra

    def _check_paths(self, arguments: argparse.Namespace) -> None:
        """Check that no file is lost, whatever the command."""
        inputs: list[Path] = []
        outputs: list[tuple[Path, Written]] = []
        for action in self._paths:
            for path in _paths_in(getattr(arguments, action.dest, None)):
                if isinstance(action.type, Written):
                    outputs.append((path, action.type))
                else:
                    inputs.append(path)
        check_outputs(outputs, inputs)

    def _current(self, text: str) -> str:
        """Return an argument with the present name of its flag, and note that the former will go."""
        flag, equals, value = text.partition("=")
        current = self.former_flags.get(flag)
        if current is None:
            return text
        sys.stderr.write(f"note: {flag} is called {current} now, its former name will go\n")
        return f"{current}{equals}{value}"


def one_of(kind: str, choices: Collection[str]) -> Callable[[str], str]:
    """Return a converter that takes only known names."""

    def convert(text: str) -> str:
        if text in choices:
            return text
        raise argparse.ArgumentTypeError(
            f"unknown {kind} {text!r}, expected one of {', '.join(choices)}{nearest(text, choices)}"
        )

    return convert


def whole_number(text: str) -> int:
    """Convert a whole number, not negative; underscores are allowed."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 0 or more")
    return value


def seconds(text: str) -> float:
    """Convert a number of seconds, not negative."""
    return number(text, "a number of seconds")


def number(text: str, kind: str = "a number") -> float:
    """Convert a finite number, not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not {kind}, 0 or more")
    return value


def dimensions(text: str) -> dict[str, int]:
    """Convert ``batch=1,seq=128``."""
    return dict(_pairs(text, "NAME=SIZE", whole_number))


def input_file(text: str) -> dict[str, Path]:
    """Convert ``NAME=FILE.npy``."""
    name, equals, path = text.partition("=")
    if not name or not equals or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FILE.npy")
    return {name: Path(path)}


def program_or_file(text: str) -> str:
    """Leave it to the command whether it is the name of a program or a file."""
    return text


def merged(parts: Sequence[dict[str, _T]], flag: str) -> dict[str, _T]:
    """Return the pairs of a repeated flag together.

    Raises:
        UsageError: a name is given twice with different values.
    """
    result: dict[str, _T] = {}
    for part in parts:
        for name, value in part.items():
            if result.setdefault(name, value) != value:
                raise UsageError(f"{flag}: {name!r} is given twice, as {result[name]} and {value}")
    return result


def _paths_in(value: object) -> Iterator[Path]:
    if isinstance(value, str | Path):
        yield Path(value)
    elif isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list):
        for part in value:
            yield from _paths_in(part)


def _pairs(text: str, form: str, convert: Callable[[str], _T]) -> list[tuple[str, _T]]:
    pairs: list[tuple[str, _T]] = []
    for item in text.split(","):
        name, equals, value = item.strip().rpartition("=")
        if not equals or not name:
            raise argparse.ArgumentTypeError(f"{item!r} is not {form}")
        pairs.append((name, convert(value)))
    return pairs


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, 1 or more")
    return int(text)


_NAMED_VALUES: Mapping[type, Callable[[str], Any]] = {int: dimensions, Path: input_file}


def add_tree(parser: Parser, tree: type[OptionTree]) -> None:
    """Declare a flag for each option, in a section for each group."""
    for name, group in groups_of(tree).items():
        add_options(parser, options_of(group), parser.add_argument_group(name))


def add_options(
    parser: Parser, options: Iterable[Option], section: argparse._ArgumentGroup | None = None
) -> None:
    """Declare flags; ``written_values`` returns those that were written.

    Args:
        section: of the help, that they are shown in.
    """
    for option in options:
        if section is None:
            parser.add_argument(option.flag, **_arguments(option))
        else:
            parser.note(section.add_argument(option.flag, **_arguments(option)))
        parser.former_flags |= dict.fromkeys(option.former_flags, option.flag)


def written_values(args: argparse.Namespace, options: Iterable[Option]) -> dict[str, Any]:
    """Return the values of the flags that were written, by the names of their options.

    Raises:
        UsageError: an element is given twice with different values.
    """
    values: dict[str, Any] = {}
    for option in options:
        if hasattr(args, option.name):
            value = getattr(args, option.name)
            if option.container == "mapping":
                value = merged(value, option.flag)
            values[option.name] = tuple(value) if option.container == "tuple" else value
    return values


def add_schema_flag(parser: Parser, tree: type[OptionTree]) -> None:
    """Declare ``--options-schema``, which prints the JSON schema of all options and ends."""

    class PrintSchema(argparse.Action):
        def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
            sys.stdout.write(json.dumps(options_schema(tree), indent=2, ensure_ascii=False) + "\n")
            parser.exit()

    parser.add_argument(
        "--options-schema", nargs=0, action=PrintSchema,
        help="print the JSON schema of a run's options, as --db keeps them, and end",
    )  # fmt: skip


def _arguments(option: Option) -> dict[str, Any]:
    """Return how argparse shall read a flag; what was not written leaves no trace."""
    common = {"dest": option.name, "default": argparse.SUPPRESS, "help": _help(option)}
    if option.kind is bool:
        return {**common, "action": "store_const", "const": not option.default}
    metavar = option.about.metavar or (None if option.about.choices is None else "NAME")
    action = "append" if option.container else "store"
    return {**common, "action": action, "type": _converter(option), "metavar": metavar}


def _converter(option: Option) -> Callable[[str], Any]:
    if option.about.choices is not None:
        return one_of(option.noun, option.about.choices)
    if option.about.writes:
        return OF_OPTIONS[option.about.writes]
    if option.container == "mapping":
        return _NAMED_VALUES[option.kind]
    converters: dict[type, Callable[[str], Any]] = {
        int: whole_number,
        float: seconds if option.name.endswith("_s") else number,
    }
    return converters.get(option.kind, option.kind)


def _help(option: Option) -> str:
    """Return an option's help, with its choices and its default."""
    about = option.about
    text = about.help
    if option.container:
        return f"{text} (repeatable)"
    if about.choices is not None:
        text = f"{text}: {', '.join(about.choices)}"
    default = about.default_text
    if not default and option.kind is not bool and option.default is not None:
        default = f"{option.default:g}" if option.kind is float else str(option.default)
    return f"{text} [{default}]".replace("%", "%%") if default else text.replace("%", "%%")
