"""E-graphs of other tools, and ours for them: the egraph-serialize format (JSON).

extraction-gym, egglog and the e-graph visualizer read and write it
(https://github.com/egraphs-good/egraph-serialize).
"""

from relational_tensat.extract.interchange.read import SerializedEGraph, read_egraph_json
from relational_tensat.extract.interchange.write import egraph_json, save_egraph_json

__all__ = ["SerializedEGraph", "egraph_json", "read_egraph_json", "save_egraph_json"]
