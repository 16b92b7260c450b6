"""A file of rules, whichever of the known kinds it is."""

from __future__ import annotations

from pathlib import Path

from relational_tensat.base.errors import InputError, RuleError
from relational_tensat.base.files import read_bytes
from relational_tensat.rules.taso.operators import FileRule
from relational_tensat.rules.taso.protobuf import read_protobuf
from relational_tensat.rules.taso.sexpr import read_sexprs
from relational_tensat.rules.taso.trees import variables

_TEXT_CONTROLS = frozenset(b"\t\n\v\f\r")


def read_file(path: Path) -> list[FileRule]:
    """Return the rules of TASO's protocol buffers or of TENSAT's text; seen by the content.

    Raises:
        RuleError: the file is missing, empty, malformed or has no rules; names file and place.
    """
    try:
        data = read_bytes(path, "a file of rules")
    except InputError as error:
        raise RuleError(str(error)) from None
    text = _as_text(data)
    rules = read_protobuf(data, str(path)) if text is None else read_sexprs(text, str(path))
    if not rules:
        raise RuleError(f"{path}: has no rules, expected TASO's protocol buffers or TENSAT's text")
    for rule in rules:
        _check_bound(rule)
    return rules


def _check_bound(rule: FileRule) -> None:
    bound = {name for source in rule.sources for name in variables(source)}
    for target in rule.targets:
        for name in variables(target):
            if name not in bound:
                raise RuleError(
                    f"{rule.place}: a target uses the input {name!r}, expected only inputs that a"
                    f" source has: {', '.join(sorted(bound))}"
                )


def _as_text(data: bytes) -> str | None:
    """Return the text that the bytes are, if they are: UTF-8 without control characters."""
    if any(byte < 32 and byte not in _TEXT_CONTROLS for byte in data):
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
