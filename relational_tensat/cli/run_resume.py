"""``run --resume``: take up a run whose process was killed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError

if TYPE_CHECKING:
    from relational_tensat.run.progress import Progress
    from relational_tensat.run.result import Result

#: The flags of ``run`` that may be given beside ``--resume``: what the e-graph does not depend on.
WITH_RESUME = (
    "--output",
    "--time-limit",
    "--extract-time-limit",
    "--memory-limit",
    "--threads",
    "--json",
    "--json-events",
    "--profile",
    "--quiet",
)


def resumed(args: argparse.Namespace, progress: Progress) -> Result:
    """Bring the run to its end.

    Raises:
        UsageError: a flag is given that is the run's own to choose.
    """
    odd = [flag for flag in args.flags if flag not in (*WITH_RESUME, "-o", "--resume")]
    if odd:
        raise UsageError(
            f"{odd[0]} cannot be given with --resume: the run goes on with its own; expected at most "
            f"{', '.join(WITH_RESUME)}"
        )
    from relational_tensat.run.pipeline import resume

    chosen = {
        name: getattr(args, dest)
        for flag, dest, name in (
            ("--time-limit", "time_limit", "time_limit_s"),
            ("--extract-time-limit", "extract_time_limit", "extract_time_limit_s"),
            ("--memory-limit", "memory_limit", "memory_limit"),
            ("--threads", "threads", "threads"),
        )
        if flag in args.flags
    }
    return resume(args.resume, args.model, output=args.output, progress=progress, **chosen)
