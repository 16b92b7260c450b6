"""HiGHS beside its caller, so that Ctrl-C is answered whatever HiGHS is busy with.

HiGHS asks whether to stop only at certain points, on a large program seconds apart. It runs in a
thread; if it has not stopped within ``GRACE_S`` of a Ctrl-C, the caller continues with what HiGHS
has reported so far. The thread ends at HiGHS's next question; the command line does not wait for it
at its end.
"""

from __future__ import annotations

import threading

import highspy

from relational_tensat.base.clock import now_s
from relational_tensat.base.watch import Watch

GRACE_S = 0.8
_POLL_S = 0.1

_left_running: list[threading.Thread] = []


def run_highs(highs: highspy.Highs, watch: Watch) -> bool:
    """Run HiGHS; return whether it has ended, else it must not be touched any more.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed twice.
    """
    while _left_running:  # two at once would share what HiGHS keeps once a process
        _left_running.pop().join()
    thread = threading.Thread(target=highs.run, name="HiGHS")
    deadline = None
    with watch.solving():
        thread.start()
        while thread.is_alive():
            thread.join(_POLL_S)
            if deadline is None and watch.happened:
                deadline = now_s() + GRACE_S
            if deadline is not None and now_s() > deadline:
                _left_running.append(thread)
                break
    return not thread.is_alive()
