"""The integer program, and HiGHS that solves it."""
