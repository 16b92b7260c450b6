"""Rules from TASO's and TENSAT's files: read, translated, judged, mended where possible."""

from relational_tensat.importing.judging import STATUSES, Judgement, judge
from relational_tensat.importing.reading import import_rules, read_rules
from relational_tensat.importing.writing import counts, finding, judged_text, write_judged

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
