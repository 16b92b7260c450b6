"""Resuming a run: its database is opened, and explored on from what is there.

The names below are imported when they are first used: runs without a database need none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.base.lazy import names_on_first_use

if TYPE_CHECKING:
    from relational_tensat.run.resume.stored import StoredRun, read_run, restore

__all__ = ["StoredRun", "read_run", "restore"]

__getattr__ = names_on_first_use(
    __name__,
    {
        "stored": ("StoredRun", "read_run", "restore"),
    },
)
