"""A file of TASO's or TENSAT's, from its bytes to rules that are judged, and a rule file of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.taso.file_rules import FileRule, read_sexprs, variables
from bench.taso.protobuf import read_protobuf
from bench.taso.repair import STATUSES, Judgement, judge
from bench.taso.translate import translate
from relational_tensat.base.errors import InputError, RuleError
from relational_tensat.base.files import read_bytes, write_aside
from relational_tensat.rules.library import read_rule_file
from relational_tensat.rules.model import Rule, expr_text, rule_text
from relational_tensat.rules.soundness import DEFAULT_TRIALS

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


def read_rules(path: str | Path) -> list[Rule]:
    """Return the rules of a file in the project's language, as they stand: nothing is judged.

    Raises:
        RuleError: the file is missing or malformed, or has what the language cannot express.
    """
    if Path(path).suffix == ".rules":
        return list(read_rule_file(Path(path)))
    return [translate(rule) for rule in read_file(Path(path))]


def import_rules(
    path: str | Path, *, seed: int = 0, trials: int = DEFAULT_TRIALS
) -> Iterator[Judgement]:
    """Read a file, then yield each rule judged, in order; see ``judge``.

    Raises:
        RuleError: as ``read_rules`` does, before the first rule is judged.
    """
    rules = read_rules(path)
    return (judge(rule, seed=seed, trials=trials) for rule in rules)


def judged_text(judgements: Sequence[Judgement], source: str) -> str:
    """Return a rule file: every rule with what was found out about it in a comment before it.

    Args:
        source: the file that the rules are from.
    """
    totals = ", ".join(f"{count} {status}" for status, count in counts(judgements).items() if count)
    head = f"; {source}, imported by python -m bench taso: {totals}.\n"
    return "\n".join([head, *(f"{_text(judgement)}\n" for judgement in judgements)])


def write_judged(path: Path, judgements: Sequence[Judgement], source: str) -> None:
    """Write a rule file; it appears complete or not at all.

    Raises:
        InputError: it cannot be written.
    """
    with write_aside(path) as aside:
        (aside / path.name).write_text(judged_text(judgements, source), "utf-8")


def counts(judgements: Sequence[Judgement]) -> dict[str, int]:
    """Return how many rules have each status."""
    return {
        status: sum(judgement.status == status for judgement in judgements) for status in STATUSES
    }


def finding(judgement: Judgement) -> str:
    """Return the condition, the counterexample or the reason in one line; "" for a sound rule."""
    if judgement.status == "sound if":
        return " ".join(map(expr_text, judgement.condition))
    return "" if judgement.status == "sound" else judgement.verdict.reason


def _text(judgement: Judgement) -> str:
    rule = judgement.rule
    file = Path(rule.file).name
    place = f"; {file}:{rule.line}" if rule.line else f"; {file}"
    status_text = f"{judgement.status} {finding(judgement)}".strip()
    return f"{place}: {status_text}\n{rule_text(replace(rule, file=''))}"
