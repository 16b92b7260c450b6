"""The entry point: one subcommand, one exit code, one line for every error.

Exit codes: 0 done · 1 internal error · 2 usage · 3 bad input · 4 verification failed ·
5 no solution within the limits · 130 interrupted.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from types import FrameType
from typing import NoReturn, TextIO, cast

from relational_tensat.base.errors import (
    InputError,
    MissingDependencyError,
    NoSolutionError,
    RelationalTensatError,
    first_line,
)
from relational_tensat.base.folders import remove_folders
from relational_tensat.base.process import collect_rarely
from relational_tensat.base.watch import (
    ctrl_c_taken,
    ignore_ctrl_c,
    is_ctrl_c_ignored,
    is_importing,
)
from relational_tensat.cli.closed_output import ClosedOutput, DispensableOutput, shown_outputs
from relational_tensat.cli.commands import COMMANDS, PROGRAM, build_parser, command_and_rest
from relational_tensat.cli.process_limits import be_guarded, is_out_of_memory

#: The extras of this package that bring optional packages.
_EXTRAS = {
    "onnx": "onnx", "onnxruntime": "onnx", "z3": "proofs", "triton": "triton", "pycuda": "gpu",
    "cuda": "nvrtc",
}  # fmt: skip
_DEBUG = "RELATIONAL_TENSAT_DEBUG"
_INTERNAL_ERROR = 1
_INTERRUPTED = 130


def process() -> NoReturn:
    """Be the whole process: run its command line, and end it with the exit code."""
    be_guarded()
    collect_rarely()
    sys.stderr = cast("TextIO", DispensableOutput(sys.stderr))
    try:
        with nullcontext() if is_ctrl_c_ignored() else ctrl_c_taken(_interrupt):
            code = main()
    except KeyboardInterrupt:  # pressed again while what it means was being done
        code = _INTERRUPTED
    _end(code)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt``, or end the process where a module is imported."""
    if is_importing(frame):
        _end(_fail("interrupted", _INTERRUPTED))
    raise KeyboardInterrupt


def _end(code: int) -> NoReturn:
    """End the process at once.

    By then files are written and databases are closed. Python would take its modules and objects apart one
    by one, which nobody would see; that took 4 % of a run. What is to happen at exit (a profiler's report)
    does
    not: give ``main`` to a profiler.
    """
    ignore_ctrl_c()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # nobody reads it any more, or it is closed
            stream.flush()
    remove_folders()
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code. Nothing but an exit code comes out of it."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if sys.stdout is None:  # closed by who called
        sys.stdout = ClosedOutput()
    if sys.stderr is None:
        sys.stderr = cast("TextIO", DispensableOutput(None))
    with shown_outputs():
        try:
            if _is_debugging():
                import logging

                logging.basicConfig(level=logging.INFO)
            code = 0
            name, rest = command_and_rest(arguments)
            if name:
                args = build_parser([name]).parse_args([name, *rest])
                code = COMMANDS[name].load()(args)
            else:
                sys.stdout.write("".join(rest))
            sys.stdout.flush()
        except BaseException as error:  # the last boundary: users get a line, not a traceback
            code = _code_of(error)
    return code


def _code_of(error: BaseException) -> int:
    """Return the exit code of an error, and print its line, if it has one.

    Raises:
        BaseException: no command line ends with it.
    """
    if isinstance(error, SystemExit):  # argparse, after --help and --version
        return int(error.code or 0)
    if isinstance(error, BrokenPipeError):  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, KeyboardInterrupt):  # its text, if any, says what was kept
        return _fail(str(error) or "interrupted", _INTERRUPTED)
    if not isinstance(error, Exception):
        raise error
    if _is_debugging():
        traceback.print_exception(error)
    if isinstance(error, RelationalTensatError):
        return _fail(str(error), error.exit_code)
    if not isinstance(error, OSError) and _is_ctrl_c(error):
        return _fail("interrupted", _INTERRUPTED)
    if is_out_of_memory(error):
        return _fail(f"memory does not suffice: {first_line(error)}", NoSolutionError.exit_code)
    if isinstance(error, OSError):  # a full disk, a folder or an output that takes nothing
        reason = error.strerror or str(error) or type(error).__name__
        return _fail(f"{error.filename or 'the output'}: {reason}", InputError.exit_code)
    if trouble := _file_trouble(error):
        return _fail(trouble, InputError.exit_code)
    if isinstance(error, ModuleNotFoundError) and (extra := _EXTRAS.get(error.name or "")):
        needed = f"this needs {error.name}: pip install 'relational-tensat[{extra}]'"
        return _fail(needed, MissingDependencyError.exit_code)
    hint = "" if _is_debugging() else f" (set {_DEBUG}=1 for the traceback)"
    return _fail(f"internal error: {type(error).__name__}: {error}{hint}", _INTERNAL_ERROR)


def _is_ctrl_c(error: BaseException | None) -> bool:
    """Whether an error is what a library, or what was going on, has made of Ctrl-C."""
    if error is None:
        return False
    if isinstance(error, KeyboardInterrupt) or str(error) == "Query interrupted":  # DuckDB's
        return True
    return _is_ctrl_c(error.__cause__ or error.__context__)


def _file_trouble(error: Exception) -> str:
    """Return what is wrong with a database's file; "" where the error is another one."""
    if "duckdb" not in sys.modules:  # nothing was asked of it
        return ""
    from relational_tensat.egraph.database_file import file_trouble

    return file_trouble(error)


def _fail(message: str, code: int) -> int:
    line = " ".join(message.split())
    print(f"{PROGRAM}: {line}", file=sys.stderr)  # noqa: T201
    return code


def _is_debugging() -> bool:
    return os.environ.get(_DEBUG, "") not in ("", "0")
