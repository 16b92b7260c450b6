"""Flags made from options: what a field says of itself becomes a flag, its help and its converter."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from relational_tensat.base.option import Option, OptionTree, groups_of, options_of, options_schema
from relational_tensat.base.outputs import OF_OPTIONS
from relational_tensat.cli.parser import (
    Parser,
    dimensions,
    input_file,
    merged,
    number,
    one_of,
    seconds,
    whole_number,
)

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
