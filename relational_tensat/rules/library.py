"""Rule files: those that ship, and a user's own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from relational_tensat.base.errors import InputError, RuleError, unknown
from relational_tensat.base.files import resource_dir, whole_content
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule

_SUFFIX = ".rules"
#: The most bytes of a rule file; those that ship have 0.2 MiB together.
_MOST_BYTES = 16 << 20


def load_rules(
    paths: Sequence[str | Path] | None = None,
    only: Iterable[str] = (),
    skip: Iterable[str] = (),
) -> list[Rule]:
    """Return the rules of files and folders, in order; of none, the rules that ship.

    Args:
        paths: files, or folders whose ``*.rules`` are read.
        only, skip: names of rules to keep or leave out; ``NAME`` also means every ``NAME[…]``.

    Raises:
        RuleError: a file is missing, not UTF-8 or malformed, or a name is used twice.
        UsageError: no rule has a name in ``only`` or ``skip``.
    """
    files = [f for path in paths for f in _files(Path(path))] if paths else shipped_files()
    rules: dict[str, Rule] = {}
    for file in files:
        for rule in read_rule_file(file):
            if rule.name in rules:
                first = rules[rule.name]
                raise RuleError(
                    f"{rule.file}:{rule.line}: the rule {rule.name!r} is already defined in"
                    f" {first.file}:{first.line}"
                )
            rules[rule.name] = rule
    selection, exclusions = named_rules(only, rules), named_rules(skip, rules)
    return [
        r
        for r in rules.values()
        if (not selection or r.name in selection) and r.name not in exclusions
    ]


def shipped_files() -> list[Path]:
    """Return the files of the rules that ship, by name."""
    return sorted(resource_dir("rules").glob(f"*{_SUFFIX}"))


def taso_rules() -> list[Rule]:
    """Return TASO's 139 rules as TENSAT applies them, unsound ones too: for comparison only."""
    return read_rule_file(resource_dir("rules") / "taso" / f"taso{_SUFFIX}")


def read_rule_file(path: Path) -> list[Rule]:
    """Return the rules of one file.

    Raises:
        RuleError: it cannot be read, is not UTF-8, or is malformed.
    """
    try:
        text = whole_content(path, _MOST_BYTES).decode("utf-8")
    except OSError as error:
        raise RuleError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise RuleError(f"{path}:{line}: not UTF-8") from error
    except InputError as error:
        raise RuleError(str(error)) from error
    return list(_parsed(text, str(path)))


@lru_cache(maxsize=256)
def _parsed(text: str, file: str) -> tuple[Rule, ...]:
    """Return the rules of a text; each text is read once a process, no matter which caller reads it."""
    return tuple(parse_rules(text, file))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob(f"*{_SUFFIX}"))
    if not files:
        raise RuleError(f"{path}: has no *{_SUFFIX} files")
    return files


def rules_meant_by(name: str, rules: Iterable[str]) -> set[str]:
    """Return the names of rules that a name means: ``NAME``, and every ``NAME[…]``."""
    return {rule for rule in rules if rule == name or rule.partition("[")[0] == name}


def named_rules(names: Iterable[str], rules: dict[str, Rule]) -> set[str]:
    """Return the names of the rules that are meant; ``NAME`` means ``NAME[…]`` too."""
    selection: set[str] = set()
    for name in names:
        matches = rules_meant_by(name, rules)
        if not matches:
            raise unknown("rule", name, rules)
        selection |= matches
    return selection
