"""``run --resume``: bring a run to its end whose process was killed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.base.option import options_in
from relational_tensat.cli.option_flags import written_values
from relational_tensat.run.options import Options

if TYPE_CHECKING:
    from relational_tensat.run.progress import Progress
    from relational_tensat.run.result import Result

#: The options that may be given beside ``--resume``: what the e-graph does not depend on.
_MAY_CHANGE = tuple(option for _, option in options_in(Options) if option.about.may_change)

#: The flags of ``run`` that may be given beside ``--resume``.
WITH_RESUME = (
    "--output",
    *(option.flag for option in _MAY_CHANGE),
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
            f"{odd[0]} cannot be given with --resume: the run resumes with its own; expected at most "
            f"{', '.join(WITH_RESUME)}"
        )
    from relational_tensat.run.pipeline import resume

    changes = written_values(args, _MAY_CHANGE)
    return resume(args.resume, args.model, output=args.output, progress=progress, **changes)
