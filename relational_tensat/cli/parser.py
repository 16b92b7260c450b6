"""argparse that says what was meant, in one line with the nearest name; its flags are made from options.

The field of an option has all that its flag needs: help, default and converter. Rare options have no flag
of their own: ``--set NAME=VALUE`` sets them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from relational_tensat.base.errors import UsageError, nearest
from relational_tensat.base.option import Option, OptionTree, SizeRange, groups_of, options_of
from relational_tensat.base.outputs import OF_OPTIONS, Written, check_outputs

_T = TypeVar("_T")


class Parser(argparse.ArgumentParser):
    """A parser that raises ``UsageError``, and knows the flags, inputs and outputs that it has."""

    def __init__(self, **kwargs: Any) -> None:
        self.flags: list[str] = []
        self.short_help = ""
        self._paths: list[argparse.Action] = []
        super().__init__(
            **{**kwargs, "allow_abbrev": False, "formatter_class": _Formatter, "add_help": False}
        )
        self.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
        self.add_argument("--help-all", nargs=0, action=_HelpAll, help=argparse.SUPPRESS)

    def format_help(self) -> str:
        """Return the short help, where there is one."""
        return self.short_help or self.full_help()

    def full_help(self) -> str:
        """Return the help of all arguments."""
        return super().format_help()

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        """Add an argument, and remember its flags."""
        return self.note(super().add_argument(*args, **kwargs))

    def note(self, action: argparse.Action) -> argparse.Action:
        """Remember an argument that was added to a section of the help."""
        self.flags += action.option_strings
        if isinstance(action.type, Written) or action.type in (Path, _input_file, program_or_file):
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

        Raises:
            UsageError: an argument is unknown.
        """
        arguments, extra = super().parse_known_args(args, namespace)
        if extra:
            is_file = Path(extra[0]).exists()  # as where a shell has expanded a pattern
            hint = "" if is_file else nearest(extra[0].partition("=")[0], self.flags)
            self.error(f"unknown argument {extra[0]!r}{hint}")
        self._check_paths(arguments)
        return arguments, extra

    def _check_paths(self, arguments: argparse.Namespace) -> None:
        """Check that no command loses a file."""
        inputs: list[Path] = []
        outputs: list[tuple[Path, Written]] = []
        for action in self._paths:
            for path in _paths_in(getattr(arguments, action.dest, None)):
                if isinstance(action.type, Written):
                    outputs.append((path, action.type))
                else:
                    inputs.append(path)
        check_outputs(outputs, inputs)


class _HelpAll(argparse.Action):
    """Prints the help of all arguments and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        assert isinstance(parser, Parser)
        sys.stdout.write(parser.full_help())
        parser.exit()


class _Formatter(argparse.HelpFormatter):
    """Lines of at most 100 columns, in a pipe, too."""

    def __init__(self, prog: str) -> None:
        columns = shutil.get_terminal_size((100, 24)).columns
        super().__init__(prog, max_help_position=27, width=max(60, min(100, columns - 2)))


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


def _dimensions_or_ranges(text: str) -> dict[str, int]:
    """Convert ``batch=1:64,seq=128``."""
    return dict(_pairs(text, "NAME=SIZE", _size_or_range))


def _size_or_range(text: str) -> int:
    least, colon, most = text.partition(":")
    if not colon:
        return whole_number(text)
    first, last = whole_number(least), whole_number(most)
    if not 0 < first <= last:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not LEAST:MOST, from 1 on: nothing of size 0 is promised"
        )
    return SizeRange.of(first, last)


def _input_file(text: str) -> dict[str, Path]:
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


_NAMED_VALUES: Mapping[type, Callable[[str], Any]] = {
    int: _dimensions_or_ranges,
    Path: _input_file,
}


def add_tree(parser: Parser, tree: type[OptionTree]) -> None:
    """Declare a flag for each option, in a section for each group; ``--set`` for those that are rare."""
    rare: list[Option] = []
    for name, group in groups_of(tree).items():
        own = options_of(group)
        rare += [option for option in own if option.about.is_rare]
        common = [option for option in own if not option.about.is_rare]
        if common:
            add_options(parser, common, parser.add_argument_group(name))
    if rare:
        _add_set(parser, rare)


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


def _add_set(parser: Parser, options: Sequence[Option]) -> None:
    """Declare ``--set NAME=VALUE``, with a line in the help for each option that it sets."""
    by_name = {option.text_name: option for option in options}

    class Set(argparse.Action):
        def __call__(
            self, _: argparse.ArgumentParser, namespace: argparse.Namespace, text: Any, *__: Any
        ) -> None:
            name, equals, value = text.partition("=")
            name = name.replace("_", "-")
            option = by_name.get(name)
            if option is None or not equals:
                hint = nearest(name, by_name) if option is None else ""
                raise argparse.ArgumentError(
                    self, f"{text!r}: expected NAME=VALUE, with a name of --help-all{hint}"
                )
            try:
                read = _truth(value) if option.kind is bool else _converter(option)(value)
            except argparse.ArgumentTypeError as error:
                raise argparse.ArgumentError(self, f"{name}: {error}") from None
            setattr(namespace, option.name, read)

    section = parser.add_argument_group(
        "rare options",
        "The names that --set takes; in Python, Options.of(NAME=VALUE) with _ for -.",
    )
    parser.note(
        section.add_argument(
            "--set", action=Set, default=argparse.SUPPRESS, metavar="NAME=VALUE",
            help="set one of these options (repeatable)",
        )
    )  # fmt: skip
    for name, option in by_name.items():
        value = "yes|no" if option.kind is bool else _arguments(option)["metavar"] or "VALUE"
        help = f"no: {_help(option)} [yes]" if option.default is True else _help(option)
        shown = argparse.Action([], option.name, metavar=f"{name}={value}", help=help)
        section._group_actions.append(shown)  # shown in the help; no argument of its own


def _truth(text: str) -> bool:
    """Convert ``yes`` or ``no``."""
    if text.lower() not in ("yes", "no", "true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no")
    return text.lower() in ("yes", "true", "1")


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


def json_text(content: Any) -> str:
    """Return JSON for people."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _arguments(option: Option) -> dict[str, Any]:
    """Return how argparse reads a flag; a flag that is not written sets nothing."""
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
