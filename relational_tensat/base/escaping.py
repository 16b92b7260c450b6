"""Text from files, shown: what is in a name is read by people, and by no terminal or compiler."""

from __future__ import annotations

import re

#: What terminals act on, or do not show: controls, C1 too, what changes the direction of text or has no
#: width, separators of lines, surrogates, and what Unicode has no characters for.
_HIDDEN = re.compile(r"[^\x20-\x7e]")
#: What neither ends a comment or a string in a language, nor begins an escape there.
_NOT_PLAIN = re.compile(r"[^ \w.,:=+<>()\[\]{}@→-]")


def escaped(text: str, keep: str = "") -> str:
    """Return a text with what is no visible character written as ``\\x1b`` or ``\\u202e``.

    Args:
        keep: characters that stay whatever they are.
    """
    return _HIDDEN.sub(lambda found: _shown(found[0], keep), text)


def escaped_in_code(text: str) -> str:
    """Return a text that can stand in a comment or a docstring of any language, on one line."""
    return _NOT_PLAIN.sub(lambda found: _numbered(found[0]).replace("\\", "%"), text)


def storable(text: str) -> str:
    """Return a text as a database may have it: paths may have bytes that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _shown(character: str, keep: str) -> str:
    return character if character.isprintable() or character in keep else _numbered(character)


def _numbered(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
