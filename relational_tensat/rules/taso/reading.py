"""A file of TASO's or TENSAT's, from its bytes to rules that are judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness import DEFAULT_TRIALS
from relational_tensat.rules.taso.files import read_file
from relational_tensat.rules.taso.repair import Judgement, judge
from relational_tensat.rules.taso.translate import translate


def read_rules(path: str | Path) -> list[Rule]:
    """Return the rules of a file in the project's language, as they stand: nothing is judged.

    Raises:
        RuleError: the file is missing or malformed, or has what the language cannot express.
    """
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
