"""``run --fuse`` on the blocks in ``inputs/``, modelled; and a row of functions as C, timed."""
