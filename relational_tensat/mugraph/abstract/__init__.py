"""Abstract expressions: what prunes the search, an e-graph saturated by the engine of this package."""
