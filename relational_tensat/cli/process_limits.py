"""Limits of a process: its memory, where the system limits it, and the threads of NumPy's matrix products.

A run that meets the limit of memory ends in one line and one code.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys

from relational_tensat.base.errors import NoSolutionError
from relational_tensat.base.watch import ignore_ctrl_c, passing_on


def limit_blas_threads(threads: int = 1) -> None:
    """Let them take so many, unless the environment says otherwise; NumPy must not be loaded yet.

    They wait for each other by spinning: on cores that are not idle, more are slower. Testing the
    kernel of MLP 1 took 3.8 CPU seconds with two, 0.4 with one.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(max(threads, 1)))


_MESSAGE = "relational-tensat: the memory that the system allows does not suffice (ulimit -v)\n"
#: How a process ends then; 127 is what glibc leaves with where a thread has no room for its data.
_ABORTS = frozenset({-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, 127})
_TEXT = re.compile(
    "bad_alloc|[Cc]annot allocate|[Uu]nable to allocate|failed to map|out of memory|start new thread"
    "|Resource temporarily unavailable",
    re.IGNORECASE,
)


def be_guarded() -> None:
    """Return in a child, or at once where nothing is limited."""
    if not _is_limited():
        return
    child = os.fork()
    if child == 0:
        return
    ignore_ctrl_c()  # the child has it, too
    with passing_on(signal.SIGTERM, child):
        _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code in _ABORTS:
        sys.stderr.write(_MESSAGE)
        sys.stderr.flush()
        code = NoSolutionError.exit_code
    os._exit(code if code >= 0 else 128 - code)


def _is_limited() -> bool:
    """Whether the system limits this process' memory."""
    try:
        import resource
    except ImportError:  # Windows
        return False
    limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    return any(resource.getrlimit(limit)[0] != resource.RLIM_INFINITY for limit in limits)


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error says that memory did not suffice, in the words of whichever library."""
    if error is None:
        return False
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    if _is_limited() and (isinstance(error, SystemError) or _TEXT.search(str(error))):
        return True
    return is_out_of_memory(error.__cause__ or error.__context__)
