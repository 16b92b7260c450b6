"""Monte-Carlo tree search over subgraphs (Hartmann, He, Yoneki, PACT '24; "the paper").

A node of the tree is a subgraph; an edge is a rule, applied once to all its matches.

- ``tree``: selection, expansion, update.
- ``rollouts``: random rules, in subgraphs side by side. ``rewards``: the cost of each subgraph's cheapest
graph.
- ``decisions``: the outer loop. ``search_state``: where it is, and the tables of it.
"""
