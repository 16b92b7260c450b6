"""The stages of a run, each a function from its state to the next."""
