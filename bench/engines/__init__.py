"""This engine beside egglog: the same graphs, explored by the same rules, to the same e-graphs.

``works`` says which; ``translation`` writes them as egglog programs; ``run_egglog`` and ``run_ours``
explore one, each in a process of its own.
"""
