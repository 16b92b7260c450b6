"""``run --resume``: open the database of a run, and go on from what is there."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import UsageError
from relational_tensat.cli.option_flags import written_values
from relational_tensat.run.options import resumable_options

if TYPE_CHECKING:
    from relational_tensat.base.outputs import DefaultOutput
    from relational_tensat.run.progress import Progress
    from relational_tensat.run.result import Result

_MAY_CHANGE = tuple(resumable_options())

#: The flags of ``run`` that may be given beside ``--resume``.
_BESIDE = {
    *("--resume", "-o", "--output", "--json", "--json-events", "--profile", "--quiet"),
    *(flag for option in _MAY_CHANGE for flag in (option.flag, *option.former_flags)),
}


def resumed(args: argparse.Namespace, progress: Progress) -> Result:
    """Go on with the run, to its end.

    Raises:
        UsageError: a flag is given that is the run's own to choose.
    """
    odd = [flag for flag in args.flags if flag not in _BESIDE]
    if odd:
        raise UsageError(
            f"{odd[0]} cannot be given with --resume: the run has its own, expected flags of how it "
            "explores and extracts, of where it writes, --threads or --memory-limit"
        )
    from relational_tensat.run.pipeline import resume

    changes = written_values(args, _MAY_CHANGE)
    output = args.output or _default_output(args.resume, args.model)
    return resume(args.resume, args.model, output=output, progress=progress, **changes)


def _default_output(db: Path, model: Path | None) -> Path | DefaultOutput:
    """Return the place of a result that nobody named one for, called as the model or else the database.

    Raises:
        UsageError: something is there.
    """
    from relational_tensat.base.outputs import SUFFIXES, default_output
    from relational_tensat.run.resume import read_run

    if model is None:
        stored = read_run(db).record.model
        is_known = stored is not None and stored.suffix.lower() in SUFFIXES
        model = db.with_suffix(stored.suffix if stored is not None and is_known else SUFFIXES[0])
    return default_output(model)
