"""The search for kernels: terms of blocks by joins, pruned by abstract classes, equal by fingerprint."""
