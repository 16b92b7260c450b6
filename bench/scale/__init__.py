"""How exploration grows: e-graphs of ten thousand to ten million e-nodes, transformers of 1,000 layers.

``families`` says which e-graphs; ``measure`` explores one in a process of its own; ``growth`` makes of
several the exponents and the table; ``limits`` asks whether the limits hold at that size.
"""
