"""HiGHS beside its caller, so that Ctrl-C and limits are kept whatever HiGHS is busy with.

HiGHS asks whether to stop only at certain points, on a large program seconds apart (its heuristics fix
variables for sub-programs without a question). It runs in a thread; if it has not stopped within
``GRACE_S`` of a Ctrl-C or of the end of its time, the caller continues with what HiGHS has reported so far.
The thread ends at HiGHS's next question; the command line does not wait for it at its end.
"""

from __future__ import annotations

import threading

import highspy

from relational_tensat.base.clock import now_s
from relational_tensat.base.watch import Watch

GRACE_S = 0.8
_POLL_S = 0.1

_left_running: list[threading.Thread] = []


def is_free(watch: Watch) -> bool:
    """Wait for what was left running, as long as there is time; return whether nothing runs any more.

    Two at once would share what HiGHS keeps once a process: before that, not even a model may be loaded.
    """
    while _left_running:
        if not _ends_in_time(_left_running[-1], watch):
            return False
        _left_running.pop()
    return True


def run_highs(highs: highspy.Highs, watch: Watch) -> bool:
    """Run HiGHS; return whether it has ended, else it must not be touched any more.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed twice.
    """
    with watch.solving():
        if not is_free(watch):
            return False
        thread = threading.Thread(target=highs.run, name="HiGHS")
        thread.start()
        if _ends_in_time(thread, watch):
            return True
        _left_running.append(thread)
        return False


def _ends_in_time(thread: threading.Thread, watch: Watch) -> bool:
    """Wait for a thread until ``GRACE_S`` after the watch is over; return whether it has ended."""
    deadline = None
    while thread.is_alive():
        thread.join(_POLL_S)
        if deadline is None:
            deadline = now_s() + GRACE_S if watch.is_over else None
        elif now_s() > deadline:
            break
    return not thread.is_alive()
