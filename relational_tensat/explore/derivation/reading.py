"""What is to be derived: the rules of a file, each under the conditions that make it true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relational_tensat.rules.instance import attr_vars
from relational_tensat.rules.library import load_rules, named_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.taso import finding, judge, read_rules


@dataclass(frozen=True, slots=True)
class Subject:
    """A rule to derive.

    Attributes:
        condition: what was found and added, because the rule was not known to hold everywhere.
    """

    rule: Rule
    condition: str = ""


def read_subjects(path: Path, names: Sequence[str] = ()) -> list[Subject]:
    """Return the rules of a rule file or folder, or of a file of TASO's or TENSAT's.

    Rules that their file marks as unsound, and all that are not in the rule language, are judged as
    ``rules import`` does it: where a condition is found that repairs one, it is derived under that.

    Args:
        names: of the rules to return, the others are left out; none for all.

    Raises:
        RuleError: a file is missing or malformed.
        UsageError: there is no rule of a name.
    """
    if path.is_dir() or path.suffix == ".rules":
        rules = load_rules([path], only=names)
        return [_repaired(rule) if rule.unsound else Subject(rule) for rule in rules]
    file_rules = {rule.name: rule for rule in read_rules(path)}
    selection = named_rules(names, file_rules)
    return [
        _repaired(rule) for rule in file_rules.values() if not selection or rule.name in selection
    ]


def _repaired(rule: Rule) -> Subject:
    if attr_vars(rule):  # conditions are looked for where all attributes are constants
        return Subject(rule)
    judgement = judge(rule)
    return Subject(judgement.rule, finding(judgement) if judgement.status == "sound if" else "")
