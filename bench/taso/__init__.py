"""TASO: its sequential search on our rules and costs, and the files of its and TENSAT's rules."""
