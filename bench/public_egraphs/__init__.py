"""Public e-graphs, or generated ones of the same kinds: ours beside what one would use instead."""
