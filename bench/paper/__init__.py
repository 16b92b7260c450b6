"""The tables and figures of TENSAT's paper from runs of this system, beside what was published.

A *cell* is one run with its own time limit (``cells.py``, ``running.py``); its result is kept, so that
an interrupted ``python -m bench paper`` resumes where it was. ``tables.py`` makes tables of the
results, ``writing.py`` CSV and Markdown of these, ``plots.py`` the figures.
"""
