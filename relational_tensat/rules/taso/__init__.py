"""Rules from TASO's and TENSAT's files: read, translated, judged, repaired where possible."""

from relational_tensat.rules.taso.reading import import_rules, read_rules
from relational_tensat.rules.taso.repair import STATUSES, Judgement, judge
from relational_tensat.rules.taso.writing import counts, finding, judged_text, write_judged

__all__ = [
    "STATUSES",
    "Judgement",
    "counts",
    "finding",
    "import_rules",
    "judge",
    "judged_text",
    "read_rules",
    "write_judged",
]
