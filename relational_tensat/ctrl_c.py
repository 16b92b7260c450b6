"""Ctrl-C ends a process of the command line while that is imported, from the first import on.

``_signal`` is the builtin part of ``signal``, which imports more. Once it is imported, ``cli.main`` takes
Ctrl-C as ``base.watch`` says.
"""

import _signal  # type: ignore[import-not-found]
import os
import sys


def end_at_ctrl_c() -> None:
    """End this process when Ctrl-C is pressed, unless it ignores it."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _end)


def _end(*_: object) -> None:
    try:
        os.write(2, b"relational-tensat: interrupted\n")
    finally:
        os._exit(130)


def _is_command_line() -> bool:
    """Whether this process is ``python -m relational_tensat`` or the script: then, all of it is ours."""
    argv: list[str] = getattr(sys, "argv", None) or [""]
    if argv[0] == "-m":  # what Python has there while it looks for the module
        return sys.orig_argv[-len(argv)] == "relational_tensat"
    return argv[0].endswith(("relational-tensat", "relational-tensat.exe"))


if _is_command_line():
    end_at_ctrl_c()
