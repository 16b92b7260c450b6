"""Subgraphs side by side: masks over one universe.

The universe is one e-graph that all subgraphs share. Every application of a rule is found and built once,
for the first subgraph that asks (``universe``). A subgraph is the set of e-nodes that it has, a bit in each
e-node's mask (``node_arrays``). A rule that fires in it adds the e-nodes of the applications whose sources
it has (``firings``), for all subgraphs at a time.

- ``node_arrays``: the universe's e-nodes as arrays, and those that a match is made of.
- ``applications``: those that were found, and what each builds.
- ``pairs``: the matches of multi-pattern rules that some subgraph has both of.
- ``node_costs``, ``cheap_graph``: the cheapest graph of a subgraph that grows.
"""
