"""How many threads NumPy's matrix products take, which verify."""

from __future__ import annotations

import os


def limit_blas_threads(threads: int = 1) -> None:
    """Let them take so many, unless the environment says otherwise; NumPy must not be loaded yet.

    They wait for each other by spinning: on cores that are not idle, more are slower. Testing the
    kernel of MLP 1 took 3.8 CPU seconds with two, 0.4 with one.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(max(threads, 1)))
