"""``python -m bench COMMAND``: each command is a module of this package, listed in ``COMMANDS``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from bench.conformance import command as conformance_command
from bench.decoder import command as decoder_command
from bench.engines import command as engines_command
from bench.exports import command as exports_command
from bench.extract import command as extract_command
from bench.fleets import command as fleets_command
from bench.fused import command as fused_command
from bench.fuzz import command as fuzz_command
from bench.gpu import command as gpu_command
from bench.kills import command as kills_command
from bench.mcts import command as mcts_command
from bench.mirage import command as mirage_command
from bench.models import command as models
from bench.modules import command as modules_command
from bench.motifs import command as motifs_command
from bench.mutations import command as mutations_command
from bench.opaque import command as opaque_command
from bench.paper import command as paper_command
from bench.peers import command as peers_command
from bench.public_egraphs import command as public_egraphs_command
from bench.runs import command as runs_command
from bench.scale import command as scale_command
from bench.search import command as search_command
from bench.synthesis import command as synthesis_command
from bench.synthesis import rule_search
from bench.view import command as view_command
from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.process import collect_rarely

#: Modules with ``add_parser``; what it returns runs the command and gives the exit code.
COMMANDS = (
    models,
    extract_command,
    public_egraphs_command,
    scale_command,
    engines_command,
    gpu_command,
    fleets_command,
    opaque_command,
    paper_command,
    peers_command,
    decoder_command,
    synthesis_command,
    rule_search,
    runs_command,
    conformance_command,
    mutations_command,
    fuzz_command,
    motifs_command,
    modules_command,
    exports_command,
    search_command,
    mcts_command,
    kills_command,
    mirage_command,
    fused_command,
    view_command,
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code, those of ``relational-tensat``."""
    options = build_parser().parse_args(arguments)
    try:
        exit_code: int = options.run(options)
    except RelationalTensatError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return exit_code


if __name__ == "__main__":
    collect_rarely()  # as in users' runs
    sys.exit(main())
