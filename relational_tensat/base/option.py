"""Options: a field of a frozen dataclass has all that is to be known of one.

That field gives the command line's flag, its help, default and converter, and the check of its value. It
also gives its JSON by group and field, the schema of that, and the page of the command line. Groups of
options stand in the rooms that use them, and ``OptionTree`` puts groups together.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from relational_tensat.base.errors import (
    InputError,
    UsageError,
    check_at_least,
    check_choice,
    unknown,
)
from relational_tensat.base.records import record

_Tree = TypeVar("_Tree", bound="OptionTree")
_ABOUT = "option"


@record
class About:
    """The parts of an option beside its field's type and default; see ``option``."""

    help: str
    name: str = ""
    flag: str = ""
    noun: str = ""
    choices: Collection[str] | None = None
    minimum: int = 0
    metavar: str = ""
    default_text: str = ""
    check: Callable[[Any], None] | None = None
    may_change: bool = False
    is_rare: bool = False
    writes: str = ""


def option(
    default: Any = MISSING,
    help: str = "",
    *,
    factory: Any = MISSING,
    **about: Any,
) -> Any:
    """Return a dataclass field that is an option.

    Args:
        default, factory: as for ``dataclasses.field``.
        help: its purpose, or, if it is on by default, the effect of switching it off.
        about: further attributes of ``About``:
            name: its name beside all other options, if not the field's own;
            flag: its flag, if that is not made from the name;
            noun: one of its values in messages, if not its name in words;
            choices: the only values, or elements, that exist; read only when one is needed;
            minimum: the least value of a number;
            metavar: a value's name in ``--help``;
            default_text: what ``--help`` shows instead of the default; a blank for nothing;
            check: raises UsageError for values that cannot be;
            may_change: whether a run that is resumed may have another value; see ``resumable_options``;
            is_rare: whether the command line has no flag for it, but ``--set NAME=VALUE``;
            writes: what is written at a path: a key of ``outputs.OF_OPTIONS``. A run that is resumed has
                none of the run's before: it writes only where it is told to.
    """
    metadata = {_ABOUT: About(help, **about)}
    if factory is MISSING:
        return dataclasses.field(default=default, metadata=metadata)
    return dataclasses.field(default_factory=factory, metadata=metadata)


@record
class Option:
    """One option of a group.

    Attributes:
        kind: the type of a value, or of an element of it: bool, int, float, str or Path.
        container: ``tuple`` or ``mapping`` (by name) if a value has elements; empty if it has none.
        is_optional: whether None is a value.
    """

    field: str
    kind: type
    container: str
    is_optional: bool
    default: Any
    about: About

    @property
    def name(self) -> str:
        """Its name beside all other options: of keyword arguments, and of its flag but for units."""
        return self.about.name or self.field

    @property
    def noun(self) -> str:
        """One of its values in messages."""
        return self.about.noun or self.name.replace("_", " ")

    @property
    def flag(self) -> str:
        """Its flag; for what is on by default, the one that switches it off."""
        return self.about.flag or _flag(self.name, is_off=self.default is True)

    @property
    def text_name(self) -> str:
        """Its name as ``--set`` takes it."""
        return self.name.removesuffix("_s").replace("_", "-")

    def read(self, value: Any) -> Any:
        """Return a value as it is kept: a text is a path where paths are, one element a tuple.

        Raises:
            UsageError: it is no path, or no list, where one is expected.
        """
        if value is None:
            return value
        if self.container == "mapping" and isinstance(value, Mapping):
            return {key: self._read_one(element) for key, element in value.items()}
        if self.container == "tuple":
            elements = [value] if isinstance(value, str | PathLike) else value
            if not isinstance(elements, Iterable):
                raise UsageError(f"{self.name} = {value!r}, expected a list")
            return tuple(self._read_one(element) for element in elements)
        return value if self.container else self._read_one(value)

    def _read_one(self, value: Any) -> Any:
        if self.kind is not Path or isinstance(value, Path):
            return value
        if isinstance(value, PathLike):
            value = fspath(value)
        if not isinstance(value, str) or not value:
            raise UsageError(f"{self.name} = {value!r}, expected a path")
        return Path(value)

    def check(self, value: Any) -> None:
        """Check a value.

        Raises:
            UsageError: it cannot be; names the nearest that can.
        """
        if value is None and self.is_optional:
            return
        if self.container == "mapping":
            for key, element in value.items():
                self._check_one(f"the {self.noun} {key!r}", element)
        elif self.container == "tuple":
            for element in value:
                self._check_one(self.name, element)
        else:
            self._check_one(self.name, value)

    def _check_one(self, name: str, value: Any) -> None:
        about = self.about
        if about.choices is not None:
            check_choice(self.noun, value, about.choices)
        elif self.kind is int:
            check_at_least(name, value, about.minimum)
        elif self.kind is float and not (math.isfinite(value) and value >= about.minimum):
            unit = " of seconds" if self.name.endswith("_s") else ""
            raise UsageError(
                f"{name} = {value!r}, expected a number{unit}, at least {about.minimum}"
            )
        if about.check is not None:
            about.check(value)


class SizeRange(int):
    """A size to optimize at, and those that are promised: from the least to the most."""

    least: int
    most: int

    @classmethod
    def of(cls, least: int, most: int) -> SizeRange:
        """Return a range, with a size in the middle of its orders of magnitude."""
        size = cls(math.isqrt(least * most))
        size.least, size.most = least, most
        return size


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """A frozen dataclass of options, checked when it is made; a text may stand for a path."""

    def __post_init__(self) -> None:
        """Read and check all values.

        Raises:
            UsageError: a value does not exist or cannot be; names the nearest.
        """
        for item in options_of(self.__class__):
            value = item.read(getattr(self, item.field))
            object.__setattr__(self, item.field, value)
            item.check(value)


@dataclass(frozen=True, slots=True)
class OptionTree:
    """A frozen dataclass of groups of options; each option has one name in all of it.

    Attributes:
        given: the names of options that somebody chose a value for, be it the default.
    """

    given: frozenset[str] = dataclasses.field(
        default=frozenset(), compare=False, repr=False, kw_only=True
    )

    @classmethod
    def of(cls: type[_Tree], **values: Any) -> _Tree:
        """Return the options with these values, by their names, from all groups.

        Raises:
            UsageError: there is no such option or value; names the nearest.
        """
        return cls().replace(**values)

    def replace(self: _Tree, **values: Any) -> _Tree:
        """Return the same options but for these values, by their names.

        Raises:
            UsageError: there is no such option or value; names the nearest.
        """
        changes: dict[str, dict[str, Any]] = {}
        given = set(self.given)
        options = {item.name: (group, item) for group, item in options_in(type(self))}
        for name, value in values.items():
            if name not in options:
                raise unknown("option", name, options)
            group, item = options[name]
            changes.setdefault(group, {})[item.field] = value
            given.add(item.name)
        groups = {
            group: dataclasses.replace(getattr(self, group), **fields)
            for group, fields in changes.items()
        }
        return dataclasses.replace(self, **groups, given=frozenset(given))


def choices(group: type, field: str) -> Collection[str]:
    """Return the values that an option of a group can have."""
    (values,) = (item.about.choices or () for item in options_of(group) if item.field == field)
    return values


def options_of(group: type) -> tuple[Option, ...]:
    """Return the options of a group."""
    return _read_all(group)


@cache
def _read_all(group: type) -> tuple[Option, ...]:
    hints = get_type_hints(group)
    return tuple(
        _read(field, hints[field.name])
        for field in dataclasses.fields(group)
        if _ABOUT in field.metadata
    )


def groups_of(tree: type[OptionTree]) -> Mapping[str, type]:
    """Return the groups of a tree by their fields' names."""
    hints = get_type_hints(tree)
    own = {field.name for field in dataclasses.fields(OptionTree)}
    return {f.name: hints[f.name] for f in dataclasses.fields(tree) if f.name not in own}


def options_in(tree: type[OptionTree]) -> Iterator[tuple[str, Option]]:
    """Yield the options of a tree, each with the name of its group's field."""
    for name, group in groups_of(tree).items():
        for item in options_of(group):
            yield name, item


def _read(field: dataclasses.Field[Any], hint: Any) -> Option:
    """Return the option that a field is."""
    variants = [variant for variant in get_args(hint) if variant is not NoneType]
    is_optional = NoneType in get_args(hint)
    if is_optional:
        (hint,) = variants
    container, element = "", hint
    if get_origin(hint) is tuple:
        container, element = "tuple", get_args(hint)[0]
    elif get_origin(hint) is not None:
        container, element = "mapping", get_args(hint)[1]
    if element not in (bool, int, float, str, Path):
        raise TypeError(f"{field.name}: options of type {hint} are not known")
    default = field.default
    if field.default_factory is not MISSING:
        default = field.default_factory()
    return Option(field.name, element, container, is_optional, default, field.metadata[_ABOUT])


def _flag(name: str, *, is_off: bool) -> str:
    words = name.removesuffix("_s").replace("_", "-")
    return f"--no-{words}" if is_off else f"--{words}"


_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", Path: "string"}


def to_json(options: OptionTree) -> dict[str, dict[str, Any]]:
    """Return options as JSON has them; paths are absolute."""
    return {
        name: {
            option.field: _encode(getattr(getattr(options, name), option.field))
            for option in options_of(group)
        }
        for name, group in groups_of(type(options)).items()
    }


def from_json(tree: type[_Tree], content: Mapping[str, Mapping[str, Any]]) -> _Tree:
    """Return the options that ``to_json`` gave; all of them are ``given``.

    Raises:
        InputError: they are those of another version of this program.
    """
    names = {
        f"{name}.{field}"
        for name, group in content.items()
        for field in (group if isinstance(group, Mapping) else ("",))
    }
    expected = {f"{name}.{option.field}" for name, option in options_in(tree)}
    if names != expected:
        difference = ", ".join(sorted(expected ^ names))
        raise InputError(f"the run's options are another version's, they differ in {difference}")
    groups = {
        name: group(
            **{
                option.field: _decode(option, content[name][option.field])
                for option in options_of(group)
            }
        )
        for name, group in groups_of(tree).items()
    }
    return tree(**groups, given=frozenset(option.name for _, option in options_in(tree)))


def options_schema(tree: type[OptionTree]) -> dict[str, Any]:
    """Return the JSON schema of what ``to_json`` gives."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": tree.__name__,
        **_object(
            {
                name: _object({option.field: _schema(option) for option in options_of(group)})
                for name, group in groups_of(tree).items()
            }
        ),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _schema(option: Option) -> dict[str, Any]:
    kind = _TYPES[option.kind]
    value: dict[str, Any] = {"type": kind}
    if option.about.choices is not None:
        value["enum"] = list(option.about.choices)
    if option.kind in (int, float):
        value["minimum"] = option.about.minimum
    if option.container == "tuple":
        value = {"type": "array", "items": value}
    elif option.container == "mapping":
        value = {"type": "object", "additionalProperties": value}
    if option.is_optional:
        value["type"] = [value["type"], "null"]
        if "enum" in value:
            value["enum"] = [*value["enum"], None]
    off = "false: " if option.default is True else ""
    return {"description": off + option.about.help, **value, "default": _encode(option.default)}


def _encode(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, Mapping):
        return {key: _encode(element) for key, element in value.items()}
    return [_encode(element) for element in value] if isinstance(value, tuple) else value


def _decode(option: Option, value: Any) -> Any:
    if value is None:
        return None
    if option.container == "tuple":
        return tuple(_decode_one(option, element) for element in value)
    if option.container == "mapping":
        return {key: _decode_one(option, element) for key, element in value.items()}
    return _decode_one(option, value)


def _decode_one(option: Option, value: Any) -> Any:
    return Path(value) if option.kind is Path else value
