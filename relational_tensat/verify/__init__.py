"""Whether the optimized graph computes what the original computes."""

from relational_tensat.verify.comparison import OutputCheck, relative_error
from relational_tensat.verify.equivalence import verify
from relational_tensat.verify.runtime import verify_files
from relational_tensat.verify.verification import Verification, not_compared

__all__ = [
    "OutputCheck",
    "Verification",
    "not_compared",
    "relative_error",
    "verify",
    "verify_files",
]
