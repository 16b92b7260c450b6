"""Taking up the run of a process that was killed, from its database.

The names below are imported when they are first used: runs without a database need none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.base.lazy import names_on_first_use

if TYPE_CHECKING:
    from relational_tensat.run.resume.found_model import FoundModel
    from relational_tensat.run.resume.record import RunRecord, remember_kept_original, write_record
    from relational_tensat.run.resume.stored import StoredRun, read_run

__all__ = [
    "FoundModel",
    "RunRecord",
    "StoredRun",
    "read_run",
    "remember_kept_original",
    "write_record",
]

__getattr__ = names_on_first_use(
    __name__,
    {
        "found_model": ("FoundModel",),
        "record": ("RunRecord", "remember_kept_original", "write_record"),
        "stored": ("StoredRun", "read_run"),
    },
)
