"""Verdicts that are kept: those that ship with the rules, and those of a user's own rules.

Both are JSON files of verdicts by content hash. The user's is a cache: one that cannot be read, or that was
made by other code, is as good as empty, and is overwritten. The key of a verdict is two hashes: of the
rule's content, and of the code that gives rules their meaning.

``check_trust`` is the gate before a run: it lets only sound rules through.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError, RuleError
from relational_tensat.base.files import resource_dir, unless_full, whole_content, write_aside
from relational_tensat.base.folders import CACHE_VARIABLE as CACHE_VARIABLE
from relational_tensat.base.folders import user_cache
from relational_tensat.base.lazy import once_per_object
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.verdict import (
    EVIDENCE,
    STATUSES,
    TYPE_EVIDENCE,
    Shown,
    Verdict,
)
from relational_tensat.tensor.types import DTYPE_BYTES

_KEPT = ("rule", "status", "evidence", "trials", "reason", "types")
_LISTS = ("impossible", "missed", "untried")


@dataclass(frozen=True, slots=True)
class StoredVerdicts:
    """The content of a file of verdicts.

    Attributes:
        meaning: the ``meaning_hash`` of the code that judged.
        verdicts: by content hash, without counterexamples.
    """

    meaning: str
    verdicts: Mapping[str, Verdict]


def cache_file() -> Path:
    """Return where the verdicts on a user's own rules are kept."""
    return user_cache() / "verdicts.json"


def shipped_file() -> Path:
    """Return the file of the verdicts on the rules that ship."""
    return resource_dir("rules") / "verdicts.json"


def shipped_verdicts() -> Mapping[str, Verdict]:
    """Return the verdicts on the rules that ship, by content hash; read once, while the file stays."""
    path = shipped_file()
    try:
        state = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    return _read_once(path, state.st_mtime_ns, state.st_size).verdicts


def cached_verdicts() -> dict[str, Verdict]:
    """Return the verdicts that are kept from before, by content hash; only this code's own."""
    try:
        stored = read_verdicts(cache_file())
    except InputError:
        return {}
    return dict(stored.verdicts) if stored.meaning == meaning_hash() else {}


def keep_verdicts(verdicts: Mapping[str, Verdict]) -> None:
    """Add verdicts, by content hash, to the user's cache.

    A rule that could not be tested is looked at again next time: then z3 may be there, or more memory.

    Raises:
        InputError: the folder cannot be written.
    """
    judged = {key: verdict for key, verdict in verdicts.items() if verdict.status != "untested"}
    with unless_full():
        write_verdicts(cache_file(), {**cached_verdicts(), **judged})


@lru_cache(maxsize=1)
def _read_once(path: Path, mtime_ns: int, size_bytes: int) -> StoredVerdicts:
    """As ``read_verdicts``, for a file in a state that it was in before."""
    return read_verdicts(path)


def read_verdicts(path: Path) -> StoredVerdicts:
    """Return what a file of verdicts says.

    Raises:
        InputError: it cannot be read, or is no such file.
    """
    try:
        content = json.loads(whole_content(path))
        verdicts = {str(key): _verdict(entry) for key, entry in content["verdicts"].items()}
        return StoredVerdicts(str(content["meaning"]), verdicts)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: not a file of verdicts on rules ({error})") from error


def write_verdicts(path: Path, verdicts: Mapping[str, Verdict]) -> None:
    """Write a file of verdicts, by content hash, as those of the code that runs.

    It is written aside and renamed: readers see the old one until then.

    Raises:
        InputError: it cannot be written.
    """
    entries = {
        key: {name: getattr(verdict, name) for name in _KEPT} | {"shown": asdict(verdict.shown)}
        for key, verdict in sorted(verdicts.items(), key=lambda item: (item[1].rule, item[0]))
    }
    text = json.dumps({"meaning": meaning_hash(), "verdicts": entries}, indent=1) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: cannot be made: {error.strerror or error}") from error
    with write_aside(path) as folder:
        (folder / path.name).write_text(text, encoding="utf-8")


def _verdict(entry: Mapping[str, Any]) -> Verdict:
    status, evidence = str(entry["status"]), str(entry["evidence"])
    if status not in STATUSES or evidence not in EVIDENCE:
        raise ValueError(f"verdict {status!r} by {evidence!r}")
    return Verdict(
        rule=str(entry["rule"]),
        status=status,
        evidence=evidence,
        trials=int(entry["trials"]),
        reason=str(entry["reason"]),
        counterexample=None,
        types=_types(entry.get("types", {})),
        shown=_shown(entry["shown"]),
    )


def _shown(entry: Mapping[str, Any]) -> Shown:
    lists = {name: tuple(map(str, entry[name])) for name in _LISTS}
    values = {str(dtype): str(words) for dtype, words in entry["values"].items()}
    return Shown(outcomes=int(entry["outcomes"]), ones=int(entry["ones"]), values=values, **lists)


def _types(entry: Mapping[str, Any]) -> dict[str, str]:
    types = {str(dtype): str(evidence) for dtype, evidence in entry.items()}
    for dtype, evidence in types.items():
        if dtype not in DTYPE_BYTES or evidence not in TYPE_EVIDENCE:
            raise ValueError(f"verdict {evidence!r} in {dtype!r}")
    return types


_PACKAGE = Path(__file__).resolve().parents[2]
#: The code that says what rules mean, and that judges them.
_MEANING = (
    "tensor", "tensor/operators", "rules", "rules/functions", "rules/soundness",
    "rules/backends", "rules/backends/cuda", "rules/backends/onnxruntime",
)  # fmt: skip
#: Modules of these folders that change no verdict: keeping, printing, loading, running and pricing.
_NO_MEANING = frozenset({
    "expand_to_onnx.py", "diagnosis.py", "failure_text.py", "kernel_choice.py", "library.py",
    "parallel.py", "quantized_convolutions.py", "smallest.py", "store.py",
})  # fmt: skip


@once_per_object
def content_hash(rule: Rule) -> str:
    """Return the hash of a rule's claim: its law, without its name, place and ``worth``."""
    claim = repr((rule.sources, rule.targets, rule.conditions, *["widened"] * rule.widened))
    return hashlib.sha256(claim.encode()).hexdigest()


@cache
def meaning_hash() -> str:
    """Return the hash of the code that gives rules their meaning: a verdict is good for no other."""
    digest = hashlib.sha256()
    for folder in _MEANING:
        for path in sorted((_PACKAGE / folder).glob("*.py")):
            if path.name not in _NO_MEANING:
                digest.update(f"{folder}/{path.name}\n".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Trust:
    """The rules of a run, and their verdicts.

    Attributes:
        untrusted: per rule that was let in although it is not known to be sound, why not.
    """

    untrusted: Mapping[str, str]


def check_trust(
    rules: Sequence[Rule],
    *,
    allow_unsound: bool = False,
    verify: Callable[[Sequence[Rule]], Sequence[Verdict]] | None = None,
) -> Trust:
    """Refuse rules that are not sound; rules not met before are verified now, and remembered.

    Args:
        allow_unsound: refuse none and verify none: only say which are not known to be sound.
        verify: judges rules; the verifier, unless a test says otherwise.

    Raises:
        RuleError: a rule is marked as unsound, was found to be, or could not be tested.
    """
    untrusted = {rule.name: "its file marks it as unsound" for rule in rules if rule.unsound}
    hashes = [content_hash(rule) for rule in rules]
    verdicts = _known_verdicts(hashes)
    if not allow_unsound:
        _refuse(rules, untrusted)
        unjudged_rules = [r for r, key in zip(rules, hashes, strict=True) if key not in verdicts]
        verdicts |= _judge(unjudged_rules, verify)
    for rule, key in zip(rules, hashes, strict=True):
        if (reason := _distrust(verdicts.get(key))) is not None:
            untrusted.setdefault(rule.name, reason)
    if not allow_unsound:
        _refuse(rules, untrusted)
    return Trust(untrusted)


def _known_verdicts(hashes: Sequence[str]) -> dict[str, Verdict]:
    """Return the verdicts at hand; the user's cache is only opened for what does not ship."""
    shipped = shipped_verdicts()
    if all(key in shipped for key in hashes):
        return dict(shipped)
    return {**cached_verdicts(), **shipped}


def _judge(
    rules: Sequence[Rule], verify: Callable[[Sequence[Rule]], Sequence[Verdict]] | None
) -> dict[str, Verdict]:
    if not rules:
        return {}
    if verify is None:
        from relational_tensat.rules.soundness import verify_rules

        verify = verify_rules
    verdicts = verify(rules)
    by_hash = {
        content_hash(rule): replace(verdict, counterexample=None)
        for rule, verdict in zip(rules, verdicts, strict=True)
    }
    keep_verdicts(by_hash)
    return by_hash


def _distrust(verdict: Verdict | None) -> str | None:
    """Return why a rule cannot be trusted; None where it can."""
    if verdict is None:
        return "it was not verified"
    return None if verdict.status == "sound" else f"it is {verdict.status}: {verdict.reason}"


def _refuse(rules: Sequence[Rule], untrusted: Mapping[str, str]) -> None:
    for rule in rules:
        if rule.name in untrusted:
            raise RuleError(
                f"{rule.file}:{rule.line}: the rule {rule.name!r} is refused: "
                f"{untrusted[rule.name]} (see rules verify {rule.name} --file {rule.file})"
            )
