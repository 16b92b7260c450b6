"""Applying in arrays: targets are built, unions carried out and the e-graph closed; then all is written.

``building`` makes e-nodes, ``asking`` has the unions that roots ask for, ``closing`` closes the e-graph
under them, ``write_back`` writes what changed; ``whole`` is all of it. Ids, reasons and rows are those that
statements make (``direct``, ``targets``, ``egraph/rebuild``), which do it where arrays cannot.
"""
