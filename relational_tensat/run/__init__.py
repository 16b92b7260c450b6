"""A run, from the options to the written file: one pipeline over one plan."""
