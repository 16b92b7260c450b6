"""TASO's cost-based backtracking search, a strategy without an e-graph: the baseline of saturation.

Jia et al., "TASO: Optimizing Deep Learning Computation with Automatic Generation of Graph
Substitutions", SOSP 2019, section 5, and its ``Graph::optimize`` and ``GraphXfer::run``. A queue of
graphs, the cheapest first; the graph that is taken out is rewritten by every rule at every match,
one at a time; what costs less than alpha times the best so far goes into the queue, once; after n
graphs, or when none is left, the best is the answer. ``search.py`` is the place to begin.

As in TASO:

- a source's operators are distinct operators of the graph, and what is computed inside a match is
  used by nothing outside of it; pairs of a multi-pattern rule are tried in both orders;
- a rewritten graph that would depend on itself, or has twice as many operators as the original,
  is left out;
- the best is looked at when a graph is taken out of the queue.

Other than in TASO, each time to its favour: equal graphs are recognized by what they are and not by a hash
in which graphs may collide; what a rule adds and the graph computes already is not added again; what
depends on weights only is free from the start and not only in the answer; a graph is put together
when it is taken out of the queue, its cost being known before. A rule whose result has another type
than what it replaces is rejected.
"""

from relational_tensat.explore.strategies.backtracking.search import Moment, Outcome, backtrack

__all__ = ["Moment", "Outcome", "backtrack"]
