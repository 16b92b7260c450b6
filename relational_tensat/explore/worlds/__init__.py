"""Worlds side by side: masks over one universe.

The universe is one e-graph that all worlds share. Every application of a rule is found and built once,
whichever world asks first (``universe``); a world is the set of e-nodes that it has, a bit in each e-node's
mask (``masks``), and a rule that fires in it adds the e-nodes of the applications whose sources it has
(``firing``), for all worlds at a time.

- ``node_arrays``: the universe's e-nodes as arrays.
- ``sources``, ``pairs``: the e-nodes that a match is made of; the matches of multi-pattern rules that some
  world has both of.
- ``templates``, ``applications``, ``building``: what an application builds, all of them, and building some.
- ``universe``: these together. ``masks`` and ``firing``: the worlds.
- ``node_costs``, ``moves``: the cheapest graph of a world that grows.
"""
