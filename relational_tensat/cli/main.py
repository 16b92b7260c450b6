"""The entry point: one subcommand, one exit code, one line for every error.

Exit codes: 0 done · 1 internal error · 2 usage · 3 bad input · 4 verification failed ·
5 no solution within the limits · 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from relational_tensat import __version__
from relational_tensat.cli import (
    convert,
    costs_clear,
    costs_export,
    costs_import,
    costs_show,
    explain,
    export,
    extract,
    inspect,
    rules,
    rules_derive,
    rules_functions,
    rules_import,
    rules_operators,
    rules_verify,
    run,
    sql,
)
from relational_tensat.cli.parser import Parser
from relational_tensat.errors import RelationalTensatError, UsageError, nearest

#: By name; a name of two words is a command with flags of its own.
_COMMANDS = {
    "run": run,
    "sql": sql,
    "inspect": inspect,
    "explain": explain,
    "rules": rules,
    "rules derive": rules_derive,
    "rules import": rules_import,
    "rules verify": rules_verify,
    "rules functions": rules_functions,
    "rules operators": rules_operators,
    "costs show": costs_show,
    "costs export": costs_export,
    "costs import": costs_import,
    "costs clear": costs_clear,
    "convert": convert,
    "export": export,
    "extract": extract,
}
_PROGRAM = "relational-tensat"
_DEBUG = "RELATIONAL_TENSAT_DEBUG"
_INTERNAL_ERROR = 1
_INTERRUPTED = 130

#: So many new objects are looked through for circles at a time. A run keeps nearly all that it makes:
#: at Python's 700, looking through 50,000 rules, forms and modules again and again took 3 % of it.
_NEW_OBJECTS = 100_000


def process() -> NoReturn:
    """Be the whole process: run its command line, and end it with the exit code.

    It ends at once. By then files are written and databases are closed; that Python takes its modules
    and objects apart one by one, which nobody would see, took 4 % of a run.
    """
    gc.set_threshold(_NEW_OBJECTS)
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code. Nothing but an exit code comes out of it."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except SystemExit as leaving:  # argparse, after --help and --version
        return int(leaving.code or 0)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as interruption:  # its text, if any, says what was kept
        return _fail(str(interruption) or "interrupted", _INTERRUPTED)
    except RelationalTensatError as error:
        _show_traceback()
        return _fail(str(error), error.exit_code)
    except Exception as error:  # the last boundary: users get a line, not a traceback
        shown = _show_traceback()
        hint = "" if shown else f" (set {_DEBUG}=1 for the traceback)"
        return _fail(f"internal error: {type(error).__name__}: {error}{hint}", _INTERNAL_ERROR)
    return code


def build_parser() -> Parser:
    """Return the parser of all subcommands."""
    parser = Parser(
        prog=_PROGRAM,
        description="Find the cheapest equivalent of a tensor graph, and prove it.",
    )
    parser.add_argument("--version", action="version", version=f"{_PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        command.add_arguments(
            commands.add_parser(name, help=command.HELP, description=command.HELP)
        )
    return parser


def _dispatch(arguments: list[str]) -> int:
    if " ".join(arguments[:2]) in _COMMANDS:
        arguments = [" ".join(arguments[:2]), *arguments[2:]]
    for argument in arguments:
        if argument.startswith("-"):
            continue
        if argument not in _COMMANDS:
            known = ", ".join(_COMMANDS)
            raise UsageError(
                f"unknown command {argument!r}, expected one of {known}"
                f"{nearest(argument, _COMMANDS)}"
            )
        break
    args = build_parser().parse_args(arguments)
    return int(_COMMANDS[args.command].execute(args))


def _fail(message: str, code: int) -> int:
    line = " ".join(message.split())
    print(f"{_PROGRAM}: {line}", file=sys.stderr)  # noqa: T201
    return code


def _show_traceback() -> bool:
    """Print the traceback if the environment asks for it; return whether it does."""
    asked = os.environ.get(_DEBUG, "") not in ("", "0")
    if asked:
        traceback.print_exc()
    return asked
