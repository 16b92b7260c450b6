"""Whether the optimized graph computes what the original computes.

The names below are imported when they are first used: code that only reads options needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.base.lazy import names_on_first_use

if TYPE_CHECKING:
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

__getattr__ = names_on_first_use(
    __name__,
    {
        "comparison": (
            "OutputCheck",
            "relative_error",
        ),
        "equivalence": ("verify",),
        "runtime": ("verify_files",),
        "verification": (
            "Verification",
            "not_compared",
        ),
    },
)
