"""Taking up the run of a process that was killed, from its database."""

from relational_tensat.resuming.model import FoundModel
from relational_tensat.resuming.record import RunRecord, remember_kept_original, write_record
from relational_tensat.resuming.stored import StoredRun, read_run

__all__ = [
    "FoundModel",
    "RunRecord",
    "StoredRun",
    "read_run",
    "remember_kept_original",
    "write_record",
]
