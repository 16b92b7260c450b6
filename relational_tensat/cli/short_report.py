"""The report of a run that is printed by default: at most twelve lines for any model.

The file and its purpose, the gain, the changes, how all was verified, where it is; then what the reader
may want to do. The details have the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.text import Text

from relational_tensat.base.shown_text import escaped
from relational_tensat.run.account import search_text, size_text, verified_text
from relational_tensat.run.reports import FusionReport, span
from relational_tensat.run.result import Result

MOST_LINES, MOST_NOTES, MOST_WORDS = 12, 2, 20
#: Columns that a line fits into where names allow it.
_WIDTH = 100
_MOST_OPERATORS = 5


def short_report(result: Result, *, next_step: str = "") -> list[Text]:
    """Return the lines of the report.

    Args:
        next_step: advice to the reader; said only for a new result.
    """
    lines = _fitting([*_alarms(result), *_body(result)])
    notes = _ranked(result)
    has_step = next_step and not result.unchanged and not result.rejections
    room = MOST_LINES - 1 - sum(map(_rows, lines))  # the last line says what is left
    shown = 0
    for note in notes[:MOST_NOTES]:
        line = Text(f"note: {escaped(note.text)}")
        if _rows(line) > room:
            break
        lines.append(line)
        room -= _rows(line)
        shown += 1
    left = len(notes) - shown
    more = [f"{left} more note{'s' if left > 1 else ''}: -v"] if left else []
    last = "; ".join([*more, *([next_step] if has_step else [])])
    return [*lines, *([Text(last, style="dim")] if last else [])]


def _rows(line: Text) -> int:
    """Return how many rows a line takes that is not cut."""
    return max(1, -(-line.cell_len // _WIDTH))


def _fitting(lines: list[Text]) -> list[Text]:
    """Return lines without those that matter least, as far as there are too many."""
    for label in ("kernels: ", "rules: ", "changed: ", "search: "):
        if sum(map(_rows, lines)) < MOST_LINES:
            break
        lines = [line for line in lines if not line.plain.startswith(label)]
    return lines


def _alarms(result: Result) -> list[Text]:
    """Return the first lines of all: unsound rules, unproven outputs, rejected results."""
    texts = [untrusted_line(result)] if result.untrusted_rules else []
    texts += [unproven_line(result)] if result.verification.unproven else []
    if result.rejections:
        why, others = result.rejections[0].why, len(result.rejections) - 1
        texts.append(f"{_cut(why, MOST_WORDS)}{f' ({others} more: -v)' if others else ''}")
    return [Text(escaped(text), style="bold red") for text in texts]


def _body(result: Result) -> list[Text]:
    lines = [title_line(result), result.gain.text, size_text(result)]
    lines += [_operators_line(result), _rules_line(result)]
    if result.fusion is not None:
        lines.append(kernels_line(result.fusion))
    if result.library is not None:
        lines.append(result.library.outcome)
    if result.machine is not None:
        form = result.machine.taken
        standing = result.machine.standings[form or result.machine.winner]
        lines.append(f"saved for this machine: {'' if form else 'no, '}{span(standing)} as fast")
    if result.runtimes is not None:
        lines.append(f"fastest: {result.runtimes.chosen}, by {result.runtimes.usage}")
    lines += [f"search: {search_text(result)}", verified_text(result)]
    if result.output is not None:
        is_other = (result.machine and result.machine.taken) or (
            result.library and result.library.is_taken
        )
        is_copy = result.unchanged and not is_other
        same = "the written file is the original, byte for byte"
        exactly = ", byte for byte," if any(note.startswith(same) for note in result.notes) else ""
        whose = f"the original{exactly} is " if is_copy else ""
        lines.append(f"{whose}written to {result.output}")
    texts = [Text(escaped(line)) for line in lines if line]
    texts[0].stylize("bold")
    return texts


def title_line(result: Result) -> str:
    """Return the file, and what the run is for."""
    return f"{result.source}, for {result.runs_on or result.cost_profile}"


def kernels_line(fusion: FusionReport) -> str:
    """Return how many kernels of the model's own there are."""
    sought = f" for {fusion.parts:,} parts of the model" if fusion.parts else ""
    return f"kernels: {fusion.kernels:,} found{sought}, {len(fusion.used):,} in the result"


def _operators_line(result: Result) -> str:
    counts = result.operators
    changes = counts.changes
    texts = [f"{op} {before:,} → {after:,}" for op, before, after in changes[:_MOST_OPERATORS]]
    return _listed("changed", texts, len(changes)) if texts else ""


def _rules_line(result: Result) -> str:
    """Return the rules that made the most of the result; kernels have a line of their own."""
    used = {name: n for name, n in result.rules_used.items() if not name.startswith("fused-")}
    names = sorted(used, key=lambda name: (-used[name], name))
    return _listed("rules", names, len(names)) if names else ""


def _listed(label: str, texts: Sequence[str], total: int) -> str:
    """Return what fits into a line of as many as there are in all, the first at least."""
    shown = [texts[0]]
    for text in texts[1:]:
        if len(f"{label}: {', '.join([*shown, text])} and 999 more") > _WIDTH:
            break
        shown.append(text)
    left = total - len(shown)
    return f"{label}: {', '.join(shown)}{f' and {left} more' if left else ''}"


_UNTRUSTED_SHOWN = 5


def untrusted_line(result: Result) -> str:
    """Return the line that names the rules that are not known to be sound."""
    names = list(result.untrusted_rules)
    more = f" and {len(names) - _UNTRUSTED_SHOWN} more" if len(names) > _UNTRUSTED_SHOWN else ""
    return (
        f"UNSOUND RULES ALLOWED: {', '.join(names[:_UNTRUSTED_SHOWN])}{more} "
        f"({len(names)} of {len(result.rules)} rules are not known to be sound)"
    )


def unproven_line(result: Result) -> str:
    """Return the line that says of which output no comparison proves that it is the same."""
    return f"NOT PROVEN: {result.verification.unproven}"


class ShortNote(NamedTuple):
    """A note in few words; a lower rank is said before a higher one."""

    rank: int
    text: str


#: Kinds of notes: wrong or uncompared, a lost gain, the rest, and repeats of other lines.
_UNCOMPARED, _LOST, _REST, _SAID = range(4)


class _Kind(NamedTuple):
    """Notes of a kind, and what to do about them; "" where they say that themselves.

    The group ``said`` of the pattern is the part that other lines do not say.
    """

    pattern: str
    rank: int
    to_do: str


_KINDS = (
    _Kind(r"no cheaper graph was found|the file is already what would be written", _SAID, ""),
    _Kind(r"the written file is the original|kernels in |HiGHS: optimal$", _SAID, ""),
    _Kind(r"not raced: .*(--effort|--budget)", _LOST, ""),
    _Kind(r"not raced|racing was interrupted", _LOST, "--budget SECONDS races again"),
    _Kind(r"not run whole|run whole with kernels", _LOST, "-v says more"),
    _Kind(r"raced whole.*: (?P<said>not more .*): the original", _LOST, "--budget SECONDS times longer"),
    _Kind(r"raced whole|the extracted graph", _LOST, "--effort high looks for more"),
    _Kind(r"the file would have|as modelled, the result would", _LOST, "--effort high looks for more"),
    _Kind(r".*--static writes", _LOST, ""),
    _Kind(r"no dynamic result", _LOST, "--static writes one of fixed sizes"),
    _Kind(r".*(does not hold at all sizes|another graph is extracted)", _LOST, "--static keeps it"),
    _Kind(r"not saved for this machine", _LOST, "--budget SECONDS times longer"),
    _Kind(r".*ended the search of kernels", _LOST, "--set fuse-time-limit=SECONDS gives more"),
    _Kind(r"measuring was ended|.*(are|is) estimated by", _LOST, "-v names the estimates"),
    _Kind(r"onnxruntime is not installed|openvino is not installed", _LOST, ""),
    _Kind(r"runtimes not raced", _LOST, "--for onnxruntime needs no such race"),
    _Kind(r"versions raised", _REST, "--opset chooses"),
    _Kind(r"inputs with a default value", _REST, ""),
    _Kind(r"no --dim given", _REST, "--dim NAME=SIZE sets them"),
    _Kind(r"dynamic dimensions stay dynamic", _REST, "--dim NAME=SIZE optimizes at others"),
    _Kind(r"the file has .* it had", _REST, "--min-speedup 1.05 asks for more"),
)  # fmt: skip
_OTHER = _Kind("", _REST, "")
#: Of what the comparison does not prove.
_CAUTIONS = (
    _Kind(r".*weights have no data", _UNCOMPARED, "add them to the model"),
    _Kind(r"output |the original (itself|cannot)", _UNCOMPARED, "--inputs FILE gives other inputs"),
)
_CAUTION = _Kind("", _UNCOMPARED, "-v says how")


def _ranked(result: Result) -> list[ShortNote]:
    """Return all notes in few words, the most urgent first."""
    headlines = {rejection.why for rejection in result.rejections}
    found = [_short(text, _CAUTIONS, _CAUTION) for text in result.verification.warnings]
    found += [_short(text, _KINDS, _OTHER) for text in result.notes if text not in headlines]
    return sorted((note for note in found if note.rank < _SAID), key=lambda note: note.rank)


def _short(text: str, kinds: Iterable[_Kind], other: _Kind) -> ShortNote:
    text = " ".join(text.split())
    matches = ((kind, re.match(kind.pattern, text)) for kind in kinds)
    kind, match = next(((kind, match) for kind, match in matches if match), (other, None))
    to_do = kind.to_do
    if match and "said" in match.groupdict():
        text = match["said"]
    if not to_do and len(text.split()) > MOST_WORDS:
        to_do = "-v says all"
    most = MOST_WORDS - len(to_do.split())
    said = _cut(text, most)
    return ShortNote(kind.rank, f"{said}; {to_do}" if to_do else said)


def _cut(text: str, most_words: int) -> str:
    """Return a text up to the last clause within so many words, or else so many words of it."""
    words = text.split()
    if len(words) <= most_words:
        return text
    head = " ".join(words[:most_words])
    ends = [match.start() for match in re.finditer(r"[;:,]? \(|[;:] ", head)]
    enough = [end for end in ends if end > len(head) // 3]
    return head[: enough[-1]] if enough else f"{head.rstrip(';:,')} …"
