"""Options as JSON, by group and field, and the schema of that."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from relational_tensat.base.errors import InputError
from relational_tensat.base.option import Option, OptionTree, groups_of, options_in, options_of

_Tree = TypeVar("_Tree", bound=OptionTree)
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
