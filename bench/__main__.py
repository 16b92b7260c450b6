"""``python -m bench COMMAND``: each command is a module of this package, listed in ``COMMANDS``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bench import (
    anytime_command,
    big_command,
    blocks_command,
    cpu_command,
    extract_command,
    gpu_command,
    models,
    onnx_command,
    paper_command,
    record_command,
    runs_command,
    scale_command,
    tensat,
)
from relational_tensat.base.errors import RelationalTensatError

#: Modules with ``add_parser``; what it returns runs the command and gives the exit code.
COMMANDS = (
    models,
    tensat,
    onnx_command,
    extract_command,
    big_command,
    scale_command,
    blocks_command,
    cpu_command,
    gpu_command,
    anytime_command,
    record_command,
    paper_command,
    runs_command,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code, those of ``relational-tensat``."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_parser(commands)
    options = parser.parse_args(arguments)
    try:
        exit_code: int = options.run(options)
    except RelationalTensatError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
